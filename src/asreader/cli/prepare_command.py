"""prepare: questions to memory-mapped stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import Format, Only, SkipBad


def prepare(
    data: Annotated[list[Path], typer.Argument(help="files, folders or archives of questions", metavar="DATA...")],
    out: Annotated[Path, typer.Option(help="new folder to write")],
    format: Format = None,
    only: Only = None,
    skip_bad: SkipBad = False,
) -> None:
    """Encode data into memory-mapped stores, one for each split.

    Training reads stores; data prepared once need not be parsed again.
    """
    from asreader.data import dataset

    for label, questions in dataset.prepare_stores(data, out, format=format, only=only, skip_bad=skip_bad).items():
        print(f"{questions:,} questions -> {out / label}")
