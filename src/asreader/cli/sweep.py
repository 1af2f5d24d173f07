"""sweep: many runs from one command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, print_json


def sweep(
    config: Annotated[Path, typer.Argument(help="settings", metavar="CONFIG.toml")],
    out: Annotated[Path, typer.Option(help="folder of all runs; a run's name is the hash of its settings and seed")],
    grid: Annotated[
        list[str],
        typer.Option(
            metavar="SECTION.KEY=VALUES",
            help="values to try, as reader.hidden=128,256; with --random also a range, as 0.0003..0.003",
        ),
    ] = [],  # noqa: B006
    settings: Annotated[list[str], typer.Option("--set", metavar="SECTION.KEY=VALUE", help="override a setting")] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(min=1, help="runs of each combination, with seeds in a row")] = 1,
    random: Annotated[int, typer.Option(min=0, help="draw so many combinations instead of trying all")] = 0,
    grow: Annotated[
        list[str],
        typer.Option(
            metavar="SECTION.KEY=STEP",
            help="as reader.hidden=128: raise the grid's upper bound by so much until accuracy keeps falling",
        ),
    ] = [],  # noqa: B006
    halving: Annotated[
        bool, typer.Option("--halving", help="after 1, 2, 4, ... epochs the worse half of the runs stops")
    ] = False,
    executor: Annotated[str, typer.Option(help="local, or ray for a cluster (see asreader executors)")] = "local",
    workers: Annotated[int, typer.Option(min=0, help="runs at a time; 0 is as many as there is room for")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="processors of each run; the last bits depend on them")] = 1,
    gpus: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="GPU, or part of one, of each worker; without it 1 if there is any"),
    ] = None,
    together: Annotated[int, typer.Option(min=1, help="runs of equal shape trained side by side on a GPU")] = 8,
    resume: Annotated[bool, typer.Option("--resume", help="go on with a sweep that was stopped")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a grid of settings, each with several seeds, here or on a cluster; go on whenever it was stopped."""
    from asreader.sweep import board
    from asreader.sweep import grid as grids
    from asreader.sweep.sweeping import Job, Order, sweep

    axes = tuple(map(grids.axis, grid))
    order = Order(
        config, tuple(settings), axes, tuple(grids.growth(text, axes) for text in grow), seeds, random, halving
    )
    job = Job(out, executor, workers, threads, gpus, together, ("asreader", *sys.argv[1:]))
    report = sweep(order, job, resume=resume)
    if as_json:
        print_json(report.as_json())
    else:
        from asreader import tables

        tables.show(board.table(report))
        print("\n".join(board.closing(report)))
    if report.failed:
        raise typer.Exit(1)
