"""benchmark train, benchmark answer: speed compared with a plain PyTorch implementation, in one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, Device, print_json

Hidden = Annotated[int, typer.Option(min=1, help="hidden units of the GRUs")]
Embedding = Annotated[int, typer.Option(min=1, help="size of the word vectors")]
Seconds = Annotated[float, typer.Option(min=0, help="time to measure; each implementation runs at least once")]
Append = Annotated[Path | None, typer.Option(help="append the row to this file of JSON lines", metavar="FILE")]


def train(
    device: Device = "auto",
    hidden: Hidden = 128,
    embedding: Embedding = 128,
    batch: Annotated[int, typer.Option(min=1, help="questions in a batch")] = 32,
    seconds: Seconds = 20.0,
    append: Append = None,
    as_json: AsJson = False,
) -> None:
    """Measure seconds per training question, and the speed-up."""
    from asreader.benchmark.training_speed import BenchmarkOptions, measure_training

    _print_row(measure_training(BenchmarkOptions(hidden, embedding, batch, device, seconds)), append, as_json)


def answer(
    device: Device = "auto",
    hidden: Hidden = 128,
    embedding: Embedding = 128,
    seconds: Seconds = 20.0,
    append: Append = None,
    as_json: AsJson = False,
) -> None:
    """Measure answering: in batches, one question, a further one.

    The time of another question is that on a document which is already read.
    """
    from asreader.benchmark.answering_speed import measure_answering
    from asreader.benchmark.training_speed import BenchmarkOptions

    options = BenchmarkOptions(hidden, embedding, device=device, seconds=seconds)
    _print_row(measure_answering(options), append, as_json)


def _print_row(row: dict[str, object], append: Path | None, as_json: bool) -> None:
    if append is not None:
        with append.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(row) + "\n")
    if as_json:
        print_json(row)
    else:
        print("\n".join(f"{name.replace('_', ' '):<32} {value}" for name, value in row.items()))
