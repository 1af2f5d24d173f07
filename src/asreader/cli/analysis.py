"""analyse: where readers are right and where they fail, as pictures and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, Data, Format, SkipBad, print_json


def analyse(
    pred: Annotated[Path, typer.Argument(help="a prediction file, a run, or a folder of runs", metavar="PRED")],
    data: Data,
    out: Annotated[Path, typer.Option(help="folder for the pictures, tables and index.md", metavar="DIR")],
    name: Annotated[str, typer.Option(help="what to call it in the figures; without it the folder's name")] = "",
    also: Annotated[
        list[str],
        typer.Option(help="one more system; without :DATA on the same data", metavar="[NAME=]PRED[:DATA]"),
    ] = [],  # noqa: B006
    split: Annotated[str | None, typer.Option(help="train, valid or test, where data or runs hold several")] = None,
    format: Format = None,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Figures of the paper's analysis and more: PNG, SVG and CSV of each, and index.md with captions."""
    from asreader.charts import export
    from asreader.evaluation.breakdowns import systems

    sources = [systems.Source(pred, data, name), *(systems.source(text, data) for text in also)]
    made = export.analyse_systems(sources, out, split=split, format=format, skip_bad=skip_bad)
    if as_json:
        print_json(made.as_json())
    else:
        print("\n".join(made.lines()))
