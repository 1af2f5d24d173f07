"""analyse: figures and numbers on where readers are right and where they fail."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, Data, Format, SkipBad, print_json


def analyse(
    pred: Annotated[Path, typer.Argument(help="a prediction file, a run, or a folder of runs", metavar="PRED")],
    data: Data,
    out: Annotated[Path, typer.Option(help="folder for figures, tables and index.md", metavar="DIR")],
    name: Annotated[str, typer.Option(help="name of the system in the figures; without it, the folder's name")] = "",
    also: Annotated[
        list[str],
        typer.Option(help="another system; without :DATA on the same data", metavar="[NAME=]PRED[:DATA]"),
    ] = [],  # noqa: B006
    split: Annotated[str | None, typer.Option(help="train, valid or test, if data or runs have several")] = None,
    format: Format = None,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Draw the figures of the paper's analysis, and more.

    Writes PNG, SVG and CSV of each figure, and index.md with captions.
    """
    from asreader.charts import export
    from asreader.evaluation.breakdowns import systems

    sources = [systems.SystemSource(pred, data, name), *(systems.parse_source(text, data) for text in also)]
    analysis = export.analyse_systems(sources, out, split=split, format=format, skip_bad=skip_bad)
    if as_json:
        print_json(analysis.as_json())
    else:
        print("\n".join(analysis.lines()))
