"""convert: questions of any format to JSONL or CBT."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import Data, Format, Only, OutputFormat, SkipBad


def convert(
    data: Data,
    out: Annotated[Path, typer.Option(help="file to write")],
    to: Annotated[OutputFormat, typer.Option("--to", help="format to write")] = OutputFormat.jsonl,
    format: Format = None,
    only: Only = None,
    skip_bad: SkipBad = False,
) -> None:
    """Convert any known format to JSONL or CBT."""
    from asreader import plugins
    from asreader.data.dataset import load_examples
    from asreader.system import atomic_files

    format_example = plugins.load_plugin("data.formats", to.value).format_example
    count = 0
    with atomic_files.atomic_write(out) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as file:
        for _, example in load_examples(data, format=format, only=only, skip_bad=skip_bad):
            file.write(format_example(example))
            count += 1
    print(f"{count:,} questions -> {out}")
