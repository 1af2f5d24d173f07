"""what commands share: options that mean the same everywhere, and JSON on stdout."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path, typer.Argument(help="a file, folder or archive of questions, or a prepared store", metavar="DATA")
]
Format = Annotated[str | None, typer.Option("--format", help="format of the data; detected without it")]
Only = Annotated[str | None, typer.Option(help="only files inside a folder or archive whose name fits, as '*NE*'")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="count and skip questions that cannot be read")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON document")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps")]


class Kind(StrEnum):
    """What `convert` writes."""

    jsonl = "jsonl"
    cbt = "cbt"


def print_json(document: object) -> None:
    print(json.dumps(document, ensure_ascii=False))
