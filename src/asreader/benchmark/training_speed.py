"""options -> the speed-up of a training step over the plain implementation, on the same batches in one process."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from asreader.batches.plan import plan_epoch, plan_step
from asreader.benchmark.plain_reader import PlainDataset, PlainReader, PlainTraining
from asreader.benchmark.synthetic_data import SyntheticData, make_synthetic_data
from asreader.benchmark.timing import Contender, choose_threads, describe_provenance, time_alternately
from asreader.inference.reader import pick_device
from asreader.runs.folder import Run
from asreader.settings import Config, TrainSettings
from asreader.training.engines import JobSpec
from asreader.training.engines.plain import PlainEngine
from asreader.training.job import Job, TrainingData
from asreader.training.ranks import Ranks


@dataclass(frozen=True)
class BenchmarkOptions:
    """Sizes of the reader, batch size, device, and the seconds to measure."""

    hidden: int = 128
    embedding: int = 128
    batch: int = 32
    device: str = "auto"
    seconds: float = 20.0


def measure_training(options: BenchmarkOptions, questions: int | None = None) -> dict[str, object]:
    """The row of `asreader benchmark train`."""
    device = pick_device(options.device)
    data = make_synthetic_data(questions or 10 * options.batch)
    ours, plain = _build_contenders(options, data, device)
    times = time_alternately(ours, plain, device, options.seconds)
    questions_a_round = _count_steps_a_round(device) * options.batch
    return describe_provenance("train", device) | {
        "ratio": round(times.ratio, 2),
        "seconds_per_question": _round_to_three_digits(times.our_median / questions_a_round),
        "yardstick_seconds_per_question": _round_to_three_digits(times.plain_median / questions_a_round),
        "hidden": options.hidden,
        "embedding": options.embedding,
        "batch": options.batch,
        "vocabulary": data.vocabulary.size,
        "threads": ours.threads,
        "yardstick_threads": plain.threads,
        "rounds": len(times.ours),
        "worst_round_ratio": round(times.worst_ratio, 2),
    }


def _build_contenders(
    options: BenchmarkOptions, data: SyntheticData, device: torch.device
) -> tuple[Contender, Contender]:
    """Our training steps and the plain ones, on the same batches."""
    reader: dict[str, object] = {"hidden": options.hidden, "embedding": options.embedding}
    settings = Config(train=TrainSettings(batch=options.batch, device=str(device)), reader=reader)
    # The run folder is created when something is saved; a benchmark saves nothing.
    spec, training_data = JobSpec(settings), TrainingData(data.vocabulary, data.store, None, None, None)
    engine = PlainEngine("plain", spec, device, Ranks())
    engine.attach([Job(Run(Path("nowhere")), settings, training_data, device)])
    torch.manual_seed(1)
    network = PlainReader(data.vocabulary.size, options.embedding, options.hidden).to(device)
    plain = PlainTraining(network, PlainDataset(data.store, data.vocabulary, device), spec.precision)
    batches = _plan_batches(data, options.batch)
    steps = _count_steps_a_round(device)
    our_numbers = count()
    plain_numbers = count()

    def take_our_steps() -> None:
        for _ in range(steps):
            number = next(our_numbers)
            examples = batches[number % len(batches)]
            step = plan_step(examples, data.vocabulary, seed=1, epoch=0, batch=number, step=number)
            engine.run([[step]], lambda: False)

    def take_plain_steps() -> None:
        for _ in range(steps):
            plain.take_step(batches[next(plain_numbers) % len(batches)])

    return choose_threads(take_our_steps, device), choose_threads(take_plain_steps, device)


def _plan_batches(data: SyntheticData, size: int) -> list[NDArray[np.intp]]:
    """The paper's batches (shuffled, ten at a time sorted by length), reordered to mix short and long ones."""
    examples = np.arange(len(data.store))
    batches = plan_epoch(data.store.lengths, examples, size=size, prefetch=10, seed=1, epoch=0)
    from_middle = sorted(range(len(batches)), key=lambda index: abs(index - len(batches) // 2))
    return [batches[index] for index in from_middle if len(batches[index]) == size] or batches


def _count_steps_a_round(device: torch.device) -> int:
    """Steps that are timed together: single steps on a GPU are too short."""
    return 20 if device.type == "cuda" else 1


def _round_to_three_digits(seconds: float) -> float:
    return float(f"{seconds:.3g}")
