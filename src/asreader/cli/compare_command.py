"""compare: a significance test between two readers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, Format, print_json


def compare(
    first: Annotated[Path, typer.Argument(help="predictions, a run, or a folder of runs (seeds)", metavar="A")],
    second: Annotated[Path, typer.Argument(help="another one on the same questions", metavar="B")],
    data: Annotated[
        Path | None, typer.Option(help="the questions, to show those that only one side answers", metavar="DATA")
    ] = None,
    split: Annotated[str | None, typer.Option(help="predictions of runs to use: valid (default) or test")] = None,
    format: Format = None,
    show: Annotated[int, typer.Option(min=0, help="number of questions of each kind to show")] = 5,
    as_json: AsJson = False,
) -> None:
    """Test which of two readers is better, and where they differ."""
    from asreader.evaluation import comparison

    result = comparison.compare_systems(first, second, split=split, data=data, format=format)
    if as_json:
        print_json(result.as_json())
    else:
        from asreader.cli.tables import format_comparison, print_renderable

        print_renderable(format_comparison(result, show))
