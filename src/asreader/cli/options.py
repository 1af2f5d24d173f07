"""options that several commands share, and JSON on stdout."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path, typer.Argument(help="a file, folder or archive of questions, or a prepared store", metavar="DATA")
]
Format = Annotated[str | None, typer.Option("--format", help="format of the data; without it, detected")]
Only = Annotated[str | None, typer.Option(help="read only files of a folder or archive that match, as '*NE*'")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="skip and count questions that cannot be read")]
Split = Annotated[str | None, typer.Option(help="train, valid or test, if the data has several")]
PredictionFile = Annotated[Path | None, typer.Option(help="write the predictions to this file")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON document")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps")]
SettingOverrides = Annotated[
    list[str], typer.Option("--set", metavar="SECTION.KEY=VALUE", help="override a setting; may be repeated")
]
ConfigFile = Annotated[Path, typer.Argument(help="settings file", metavar="CONFIG.toml")]
Executor = Annotated[str, typer.Option(help="local, or ray for a cluster (see asreader executors)")]
HtmlFile = Annotated[Path, typer.Option(help="page to write", metavar="FILE.html")]


class OutputFormat(StrEnum):
    """File formats that `convert` and `make books` write."""

    jsonl = "jsonl"
    cbt = "cbt"


class PaperDataset(StrEnum):
    """The data sets of the paper's tables."""

    cnn = "cnn"
    dailymail = "dailymail"
    cbt_ne = "cbt-ne"
    cbt_cn = "cbt-cn"


PaperResults = Annotated[
    PaperDataset | None, typer.Option(help="add the paper's results on this data set for comparison")
]


def print_json(document: object) -> None:
    """Print a document as one line of JSON."""
    print(json.dumps(document, ensure_ascii=False))
