"""sweep: many runs from one command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, print_json

GRID = "values to try, as reader.hidden=128,256; with --random also a range, as 0.0003..0.003"
GROW = "as reader.hidden=128: raise the grid's upper bound by so much until accuracy keeps falling"
OUT = "folder of all runs; a run's name is the hash of its settings, data and seed"

Config = Annotated[Path, typer.Argument(help="settings", metavar="CONFIG.toml")]
Out = Annotated[Path, typer.Option(help=OUT, metavar="DIR")]
Grid = Annotated[list[str], typer.Option(metavar="SECTION.KEY=VALUES", help=GRID)]
Settings = Annotated[list[str], typer.Option("--set", metavar="SECTION.KEY=VALUE", help="override a setting")]
Seeds = Annotated[int, typer.Option(min=1, help="runs of each combination, with seeds in a row")]
Random = Annotated[int, typer.Option(min=0, help="draw so many combinations instead of trying all")]
Grow = Annotated[list[str], typer.Option(metavar="SECTION.KEY=STEP", help=GROW)]
Halving = Annotated[bool, typer.Option("--halving", help="after 1, 2, 4, ... epochs the worse half of the runs stops")]
Executor = Annotated[str, typer.Option(help="local, or ray for a cluster (see asreader executors)")]
Workers = Annotated[
    int, typer.Option(min=0, help="runs, or packs of runs, at a time; 0 is as many as there is room for")
]
Threads = Annotated[int, typer.Option(min=1, help="processors of each run; the last bits depend on them")]
Gpus = Annotated[
    float | None, typer.Option(min=0, max=1, help="GPU, or part of one, of each worker; 1 if there is any")
]
Together = Annotated[int, typer.Option(min=1, help="runs of equal shape trained side by side on a GPU")]
Resume = Annotated[bool, typer.Option("--resume", help="go on with a sweep that was stopped")]


def sweep(
    config: Config,
    out: Out,
    grid: Grid = [],  # noqa: B006
    settings: Settings = [],  # noqa: B006
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
    """Train a grid of settings, each with several seeds, here or on a cluster; go on whenever it was stopped."""
    from asreader.sweep import search_space as grids
    from asreader.sweep import terminal
    from asreader.sweep.driver import ExecutionOptions, SweepSpec, run_sweep

    axes = tuple(map(grids.parse_axis, grid))
    growths = tuple(grids.parse_growth(text, axes) for text in grow)
    order = SweepSpec(config, tuple(settings), axes, growths, seeds, random, halving)
    job = ExecutionOptions(out, executor, workers, threads, gpus, together, ("asreader", *sys.argv[1:]))
    report = run_sweep(order, job, resume=resume)
    if as_json:
        print_json(report.as_json())
    else:
        from asreader.cli import tables

        tables.print_renderable(terminal.build_sweep_table(report))
        print("\n".join(terminal.format_closing_lines(report)))
    if report.failed:
        raise typer.Exit(1)
