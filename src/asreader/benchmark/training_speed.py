"""sizes -> how many times as fast as the yardstick a training step is, on the same batches in one run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from asreader.batches.host import plan
from asreader.benchmark.plain_reader import PlainDataset, PlainReader, PlainTraining
from asreader.benchmark.synthetic_data import SyntheticData, make_synthetic_data
from asreader.benchmark.timing import Contender, Times, choose_threads, describe_provenance, time_alternately
from asreader.inference.reader import pick_device
from asreader.runs.folder import Run
from asreader.settings import Config, TrainSettings
from asreader.training.loop import Training


@dataclass(frozen=True)
class BenchmarkOptions:
    """What is trained or asked, and for how long it is measured."""

    hidden: int = 128
    embedding: int = 128
    batch: int = 32
    device: str = "auto"
    seconds: float = 20.0


def measure_training(sizes: BenchmarkOptions, questions: int | None = None) -> dict[str, object]:
    """The row of `asreader benchmark train`."""
    device = pick_device(sizes.device)
    made = make_synthetic_data(questions or 10 * sizes.batch)
    ours, yardstick = _ways(sizes, made, device)
    times = time_alternately(ours, yardstick, device, sizes.seconds)
    taken = times.seconds
    steps = _steps_a_round(device)
    return describe_provenance("train", device) | {
        "ratio": round(times.ratio, 2),
        "seconds_per_question": _rounded(taken[0] / steps / sizes.batch),
        "yardstick_seconds_per_question": _rounded(taken[1] / steps / sizes.batch),
        "hidden": sizes.hidden,
        "embedding": sizes.embedding,
        "batch": sizes.batch,
        "vocabulary": made.vocabulary.size,
        "threads": ours.threads,
        "yardstick_threads": yardstick.threads,
        "rounds": len(times.ours),
        "worst_round_ratio": round(_worst(times), 2),
    }


def _ways(sizes: BenchmarkOptions, made: SyntheticData, device: torch.device) -> tuple[Contender, Contender]:
    options: dict[str, object] = {"hidden": sizes.hidden, "embedding": sizes.embedding}
    settings = Config(train=TrainSettings(batch=sizes.batch, device=str(device)), reader=options)
    # A run is a folder only once something is saved; a benchmark saves nothing.
    trained = Training(Run(Path("nowhere")), settings, made.vocabulary, made.store, None)
    torch.manual_seed(1)
    network = PlainReader(made.vocabulary.size, sizes.embedding, sizes.hidden).to(device)
    plain = PlainTraining(network, PlainDataset(made.store, made.vocabulary, device), trained.reader.precision)
    batches = _batches(made, sizes.batch)
    steps = _steps_a_round(device)
    numbers = count()

    def our_steps() -> None:
        for _ in range(steps):
            number = next(numbers)
            trained.step(batches[number % len(batches)], number)

    plain_numbers = count()

    def plain_steps() -> None:
        for _ in range(steps):
            plain.step(batches[next(plain_numbers) % len(batches)])

    return choose_threads(our_steps, device), choose_threads(plain_steps, device)


def _batches(made: SyntheticData, size: int) -> list[NDArray[np.intp]]:
    """The paper's: shuffled, ten batches at a time sorted by length; here in an order that mixes short and long."""
    numbers = np.arange(len(made.store))
    batches = plan(made.store.lengths, numbers, size=size, prefetch=10, seed=1, epoch=0)
    middle = sorted(range(len(batches)), key=lambda place: abs(place - len(batches) // 2))
    return [batches[place] for place in middle if len(batches[place]) == size] or batches


def _steps_a_round(device: torch.device) -> int:
    """On a GPU single steps are too short to be timed one by one."""
    return 20 if device.type == "cuda" else 1


def _worst(times: Times) -> float:
    """The smallest ratio of a single round."""
    return min(yardstick / ours for ours, yardstick in zip(times.ours, times.yardstick, strict=True))


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.3g}")
