"""sweep: many runs from one command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, ConfigFile, Executor, SettingOverrides, print_json

GRID_HELP = "values to try, as reader.hidden=128,256; with --random also a range, as 0.0003..0.003"
GROW_HELP = "as reader.hidden=128: raise the upper bound of the grid by this step until accuracy keeps falling"
OUT_HELP = "folder of all runs; the name of a run is a hash of its settings, data and seed"

Out = Annotated[Path, typer.Option(help=OUT_HELP, metavar="DIR")]
Grid = Annotated[list[str], typer.Option(metavar="SECTION.KEY=VALUES", help=GRID_HELP)]
Seeds = Annotated[int, typer.Option(min=1, help="runs of each combination, with consecutive seeds")]
Random = Annotated[int, typer.Option(min=0, help="number of random combinations to train instead of all")]
Grow = Annotated[list[str], typer.Option(metavar="SECTION.KEY=STEP", help=GROW_HELP)]
Halving = Annotated[bool, typer.Option("--halving", help="stop the worse half of the runs after 1, 2, 4, ... epochs")]
Workers = Annotated[int, typer.Option(min=0, help="runs, or packs of runs, at a time; 0 is as many as fit")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads of each run; the last bits of results depend on it")]
Gpus = Annotated[
    float | None, typer.Option(min=0, max=1, help="GPUs of each worker, may be a fraction; 1 if there is a GPU")
]
Together = Annotated[int, typer.Option(min=1, help="runs of equal shape to train together on a GPU")]
Resume = Annotated[bool, typer.Option("--resume", help="continue a sweep that was stopped")]


def sweep(
    config: ConfigFile,
    out: Out,
    grid: Grid = [],  # noqa: B006
    settings: SettingOverrides = [],  # noqa: B006
    seeds: Seeds = 1,
    random: Random = 0,
    grow: Grow = [],  # noqa: B006
    halving: Halving = False,
    executor: Executor = "local",
    workers: Workers = 0,
    threads: Threads = 1,
    gpus: Gpus = None,
    together: Together = 8,
    resume: Resume = False,
    as_json: AsJson = False,
) -> None:
    """Train a grid of settings, each with several seeds.

    Runs on this machine or a cluster. A sweep that was stopped can be resumed; finished runs are not trained again.
    """
    from asreader.sweep.driver import ExecutionOptions, SweepSpec, run_sweep
    from asreader.sweep.search_space import parse_axis, parse_growth

    axes = tuple(map(parse_axis, grid))
    growths = tuple(parse_growth(text, axes) for text in grow)
    spec = SweepSpec(config, tuple(settings), axes, growths, seeds, random, halving)
    command = ("asreader", *sys.argv[1:])
    options = ExecutionOptions(out, executor, workers, threads, gpus, together, command)
    report = run_sweep(spec, options, resume=resume)
    if as_json:
        print_json(report.as_json())
    else:
        from asreader.cli.tables import print_renderable
        from asreader.sweep.terminal import build_sweep_table, format_closing_lines

        print_renderable(build_sweep_table(report))
        print("\n".join(format_closing_lines(report)))
    if report.failed:
        raise typer.Exit(1)
