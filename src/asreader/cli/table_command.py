"""table: the result table of a set of runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, PaperResults, print_json


class TableStyle(StrEnum):
    """Output formats of a table."""

    terminal = "terminal"
    markdown = "markdown"
    latex = "latex"


def table(
    folders: Annotated[list[Path], typer.Argument(help="runs, or folders of runs on the same data", metavar="DIR...")],
    paper: PaperResults = None,
    style: Annotated[TableStyle, typer.Option(help="format of the table")] = TableStyle.terminal,
    as_json: AsJson = False,
) -> None:
    """Print the paper's result table for a set of runs.

    Best run, mean of the best runs, ensembles and standard deviation over seeds, in per cent.
    """
    from dataclasses import asdict

    from asreader.evaluation import result_table
    from asreader.runs.run_search import find_predicted_runs

    rows = result_table.build_rows(find_predicted_runs(folders), paper.value if paper else None)
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        from asreader.cli.tables import format_results, print_renderable

        print_renderable(format_results(rows, style.value))
