"""report: one page about runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import HtmlFile, PaperResults


def report(
    path: Annotated[Path, typer.Argument(help="a run, or a folder of runs on the same data", metavar="RUN|DIR")],
    out: HtmlFile,
    paper: PaperResults = None,
    data: Annotated[
        Path | None, typer.Option(help="validation data, if it is not where the runs say", metavar="DATA")
    ] = None,
) -> None:
    """Write one HTML page about a run or a folder of runs.

    Results, learning curves, settings, data, figures, examples and the commands that reproduce it, in one file.
    """
    from asreader.pages import report_page as reports

    reports.write_report(path, out, paper.value if paper else None, data)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB; open it in a browser")
