"""benchmark train, benchmark answer: this product against the plain PyTorch way, in one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, Device, print_json

Hidden = Annotated[int, typer.Option(min=1, help="units of the GRUs")]
Embedding = Annotated[int, typer.Option(min=1, help="numbers in a word vector")]
Seconds = Annotated[float, typer.Option(min=0, help="how long to measure; each way runs at least once")]
Append = Annotated[Path | None, typer.Option(help="add the row to this file of JSON lines", metavar="FILE")]


def train(
    device: Device = "auto",
    hidden: Hidden = 128,
    embedding: Embedding = 128,
    batch: Annotated[int, typer.Option(min=1, help="questions in a step")] = 32,
    seconds: Seconds = 20.0,
    append: Append = None,
    as_json: AsJson = False,
) -> None:
    """Training: seconds per question, and how many times as fast as the plain PyTorch way."""
    from asreader.benchmark.training_speed import BenchmarkOptions, measure_training

    _show(measure_training(BenchmarkOptions(hidden, embedding, batch, device, seconds)), append, as_json)


def answer(
    device: Device = "auto",
    hidden: Hidden = 128,
    embedding: Embedding = 128,
    seconds: Seconds = 20.0,
    append: Append = None,
    as_json: AsJson = False,
) -> None:
    """Answering: in batches, one question alone, a further question on a document already read."""
    from asreader.benchmark.answering_speed import measure_answering
    from asreader.benchmark.training_speed import BenchmarkOptions

    _show(measure_answering(BenchmarkOptions(hidden, embedding, device=device, seconds=seconds)), append, as_json)


def _show(row: dict[str, object], append: Path | None, as_json: bool) -> None:
    if append is not None:
        with append.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(row) + "\n")
    if as_json:
        print_json(row)
    else:
        print("\n".join(f"{name.replace('_', ' '):<32} {value}" for name, value in row.items()))
