"""stats, convert, prepare: from questions on disk to numbers, other files, stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, Data, Format, Kind, Only, SkipBad, print_json


def stats(
    data: Data, format: Format = None, only: Only = None, skip_bad: SkipBad = False, as_json: AsJson = False
) -> None:
    """Statistics of any data, split by split: Table 1 of the paper."""
    from asreader.data.loading import statistics

    found = statistics(data, format=format, only=only, skip_bad=skip_bad)
    if as_json:
        print_json({label: part.as_json() for label, part in found.items()})
    else:
        from asreader.cli import tables

        tables.print_renderable(tables.format_statistics(found))


def convert(
    data: Data,
    out: Annotated[Path, typer.Option(help="file to write")],
    to: Annotated[Kind, typer.Option("--to", help="what to write")] = Kind.jsonl,
    format: Format = None,
    only: Only = None,
    skip_bad: SkipBad = False,
) -> None:
    """Turn any known format into JSONL or CBT."""
    from asreader import plugins
    from asreader.data.loading import examples
    from asreader.system import atomic_files

    line = plugins.load("data.formats", to.value).line
    count = 0
    with atomic_files.replacing(out) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as file:
        for _, example in examples(data, format=format, only=only, skip_bad=skip_bad):
            file.write(line(example))
            count += 1
    print(f"{count:,} questions -> {out}")


def prepare(
    data: Annotated[list[Path], typer.Argument(help="files, folders or archives of questions", metavar="DATA...")],
    out: Annotated[Path, typer.Option(help="new folder to write")],
    format: Format = None,
    only: Only = None,
    skip_bad: SkipBad = False,
) -> None:
    """Read data once and encode it into memory-mapped stores, one a split: what training reads."""
    from asreader.data import loading

    for label, questions in loading.prepare(data, out, format=format, only=only, skip_bad=skip_bad).items():
        print(f"{questions:,} questions -> {out / label}")
