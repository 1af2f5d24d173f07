"""N readers trained together at the size of CBT NE: PYTHONPATH=src python benchmarks/together.py --engine stacked

Needs no data: a synthetic data set of the same size and length distribution is made on the device. For each N it takes
the same steps three times (setting up, capturing graphs, measuring) and prints one JSON row: what a step costs and what
that makes for a reader and an epoch.

It checks what it times. Before measuring, the first steps of two readers are taken by the engine and by the reference
implementations in float32; if their losses differ by more than two per cent, or are no numbers, it fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from asreader import ops, readers
from asreader.batches.batch import NO_CANDIDATE
from asreader.batches.device import DeviceDataset, FlatRows
from asreader.batches.plan import StepPlan, plan_epoch
from asreader.batches.unique_bound import FREQUENT, find_rare_rows
from asreader.data.vocabulary import FIRST_ANONYMOUS_ROW
from asreader.inference.reader import pick_device
from asreader.ops.row_adam import AdamRecipe
from asreader.runs.folder import describe_commit
from asreader.training.engines.fused_attention_sum import FusedStep
from asreader.training.engines.stacked import AutogradStep
from asreader.training.job import AdamMoments
from asreader.training.stacking.captured_step import CapturedStep
from asreader.training.stacking.parameter_stack import ParameterStack
from asreader.training.stacking.stacked_engine import StackedTask, StepComputation, pack_plan

CANDIDATES, ANONYMOUS, BATCH, PREFETCH, SKEW = 10, 100, 32, 10, 0.22
CHECKED_STEPS, CHECKED_RATE = 10, 0.01
"""Many and large enough that a wrong gradient shows in the losses."""
TOLERANCE = 0.02
"""bfloat16 products against float32 ones."""


@dataclass(frozen=True)
class DataShape:
    """What a data set and its readers look like."""

    questions: int
    mean: float
    deviation: float
    shortest: int
    longest: int
    vocabulary: int
    embedding: int
    hidden: int = 384
    question: int = 28

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        return -(-self.questions // BATCH)


SHAPES = {
    "ne": DataShape(108_719, 433, 110, 106, 1338, 53_000, 384),
    "cnn": DataShape(380_298, 762, 300, 100, 2000, 118_497, 128),
    "tiny": DataShape(640, 40, 10, 5, 90, 300, 16, hidden=64, question=8),
}


class SyntheticJob:
    """The part of a Job that a ParameterStack needs."""

    def __init__(self, network: torch.nn.Module) -> None:
        self.network = network
        self.ema = None
        self.moments = {
            name: AdamMoments(torch.zeros((), device=own.device), torch.zeros_like(own), torch.zeros_like(own))
            for name, own in ((name, own.detach()) for name, own in network.named_parameters())
        }


def make_data(shape: DataShape, device: torch.device) -> DeviceDataset:
    """Lengths are normal, words follow Zipf's law, some are unknown, every answer is mentioned."""
    random = np.random.default_rng(1)
    torch.manual_seed(1)
    lengths = random.normal(shape.mean, shape.deviation, shape.questions).clip(shape.shortest, shape.longest)
    asked = random.normal(shape.question, shape.question / 3, shape.questions).clip(3, 5 * shape.question)
    lengths, asked = lengths.astype(np.int64), asked.astype(np.int64)
    documents, questions = (_make_rows(part, shape, device) for part in (lengths, asked))
    candidates = _make_rows(np.full(shape.questions, CANDIDATES), shape, device)
    candidate_at = torch.randint(0, 12 * CANDIDATES, documents.rows.shape, dtype=torch.int16, device=device)
    candidate_at = torch.where(candidate_at < CANDIDATES, candidate_at, NO_CANDIDATE)
    answers = torch.randint(0, CANDIDATES, (shape.questions,), dtype=torch.int16, device=device)
    candidate_at[documents.starts] = answers  # each answer is mentioned, first of all
    frequent = np.arange(shape.vocabulary) < FIRST_ANONYMOUS_ROW + ANONYMOUS + FREQUENT
    flat = [(part.rows.cpu().numpy(), part.lengths.cpu().numpy()) for part in (documents, questions)]
    return DeviceDataset(
        documents=documents,
        questions=questions,
        candidates=candidates,
        eligible=torch.ones(len(candidates.rows) + 1, dtype=torch.bool, device=device),
        candidate_at=candidate_at,
        answers=answers,
        supported=torch.ones(shape.questions, dtype=torch.bool, device=device),
        document_lengths=lengths,
        question_lengths=asked,
        rare=find_rare_rows(*flat[0], *flat[1], frequent),
        frequent=int(frequent.sum()) + CANDIDATES * BATCH,
        anonymous=ANONYMOUS,
        candidate_count=CANDIDATES,
    )


def _make_rows(lengths: np.ndarray, shape: DataShape, device: torch.device) -> FlatRows:
    """The exponent gives a batch as many unique words as the rebuilt CBT NE questions have: 2,600 of 14,500."""
    total, fixed = int(lengths.sum()), FIRST_ANONYMOUS_ROW + ANONYMOUS
    known = shape.vocabulary - fixed
    drawn = torch.rand(total, device=device, dtype=torch.float64)
    rank = (1 - drawn * (1 - known**-SKEW)).pow(-1 / SKEW).int().clamp(max=known)
    rows = fixed + rank - 1
    unknown = torch.rand(total, device=device) < 0.02
    rows[unknown] = torch.randint(FIRST_ANONYMOUS_ROW, fixed, (int(unknown.sum()),), dtype=torch.int32, device=device)
    starts, short = np.cumsum(lengths) - lengths, lengths.astype(np.int32)
    return FlatRows(rows, torch.from_numpy(starts).to(device), torch.from_numpy(short).to(device))


def plan_steps(data: DeviceDataset, reader: int, count: int) -> Iterator[StepPlan]:
    """Each reader's own batches and shuffled rows."""
    examples = np.arange(len(data.document_lengths))
    batches = plan_epoch(data.document_lengths, examples, size=BATCH, prefetch=PREFETCH, seed=reader, epoch=0)
    pool = np.arange(FIRST_ANONYMOUS_ROW, FIRST_ANONYMOUS_ROW + ANONYMOUS, dtype=np.int32)
    for step in range(count):
        generator = np.random.default_rng([reader, 0, step])
        yield StepPlan(
            batches[step % len(batches)], generator.permutation(pool), int(generator.integers(1 << 31)), step
        )


class Group:
    """Fresh readers and the steps they are measured on."""

    def __init__(
        self,
        options: argparse.Namespace,
        shape: DataShape,
        data: DeviceDataset,
        count: int,
        *,
        steps: int,
        precision: torch.dtype,
        engine: str,
        capture: bool,
        rate: float = 0.001,
    ) -> None:
        device = data.answers.device
        sizes: dict[str, object] = {"embedding": shape.embedding, "hidden": shape.hidden}
        if options.layers > 1:
            sizes["layers"] = options.layers
        jobs = []
        for number in range(count):
            torch.manual_seed(number)
            jobs.append(SyntheticJob(readers.build(options.reader, shape.vocabulary, sizes).to(device)))
        is_fused = engine == "fused_attention_sum"
        stack = ParameterStack(jobs, paired=is_fused)
        task = StackedTask(stack, data, AdamRecipe([rate] * count), precision, jobs[0].network)
        computation: StepComputation = partial(FusedStep, dropout=0.0)(task) if is_fused else AutogradStep(task)
        packed = [[pack_plan(plan, BATCH) for plan in plan_steps(data, number, steps)] for number in range(count)]
        orders = np.stack(packed, axis=1)
        self.shapes = [data.choose_shape(order[:, :BATCH]) for order in orders]
        self.orders = torch.from_numpy(orders)
        if device.type == "cuda":
            self.orders = self.orders.pin_memory()
        like = torch.zeros(orders.shape[1:], dtype=torch.int32, device=device)
        self.step = CapturedStep(computation.prepare, computation.learn, like, capture=capture)

    def run(self) -> tuple[float, Tensor]:
        """Seconds for all steps, and the mean loss of each."""
        synchronize()
        start = time.perf_counter()
        losses = [
            self.step.take(order, shape).mean().clone() for order, shape in zip(self.orders, self.shapes, strict=True)
        ]
        synchronize()
        return time.perf_counter() - start, torch.stack(losses).cpu()


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def check_losses(options: argparse.Namespace, shape: DataShape, data: DeviceDataset) -> dict[str, float]:
    """Compare the first losses of two readers with those of the reference in float32; exits if they differ."""
    make = partial(Group, options, shape, data, min(2, max(options.readers)), steps=CHECKED_STEPS, rate=CHECKED_RATE)
    with ExitStack() as stack:
        if options.implementation:
            stack.enter_context(ops.using(options.implementation))
        _, timed = make(precision=getattr(torch, options.precision), engine=options.engine, capture=False).run()
    with ops.using("reference"):
        _, reference = make(precision=torch.float32, engine="stacked", capture=False).run()
    worst = float(((timed - reference) / reference).abs().max())
    if not worst <= TOLERANCE:  # also if it is not a number
        sys.exit(f"losses differ from the reference: {timed.tolist()} and {reference.tolist()}")
    return {"checked_steps": CHECKED_STEPS, "worst_difference": round(worst, 5)}


def measure(options: argparse.Namespace, shape: DataShape, data: DeviceDataset, count: int) -> dict[str, object]:
    """One row: this many readers."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    precision = getattr(torch, options.precision)
    group = Group(
        options, shape, data, count,
        steps=options.steps, precision=precision, engine=options.engine, capture=options.graphs,
    )  # fmt: skip
    setting_up, first = group.run()
    capturing, _ = group.run() if options.graphs else (0.0, None)
    seconds, losses = min((group.run() for _ in range(options.repeats)), key=lambda found: found[0])
    if not (torch.isfinite(losses).all() and losses.mean() < first[0] + 1):
        sys.exit(f"the readers do not learn: first loss {first[0]:.3f}, now {losses.mean():.3f}")
    step = seconds / options.steps
    memory = torch.cuda if torch.cuda.is_available() else None
    return {
        "readers": count,
        "ms_per_step": round(step * 1e3, 3),
        "seconds_per_reader_and_epoch": round(step * shape.steps / count, 3),
        "setting_up_s": round(setting_up, 2),
        "capturing_s": round(capturing, 2),
        "shapes": len(set(group.shapes)),
        "peak_GB": round(memory.max_memory_allocated() / 1e9, 2) if memory else 0,
        "reserved_GB": round(memory.max_memory_reserved() / 1e9, 2) if memory else 0,
        "first_loss": round(float(first[0]), 4),
        "loss": round(float(losses.mean()), 4),
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["stacked", "fused_attention_sum"], default="fused_attention_sum")
    parser.add_argument("--reader", default="attention_sum", help="a reader; fused_attention_sum knows one")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--readers", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="ne")
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--graphs", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--implementation", help="of all operations, such as triton or reference")
    parser.add_argument("--out", type=Path, help="append the rows to this file")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    device = pick_device("auto")
    shape = SHAPES[options.shape]
    data = make_data(shape, device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    about = {"benchmark": "together", "engine": options.engine, "reader": options.reader, "layers": options.layers}
    about |= {"shape": options.shape, "precision": options.precision, "device": name, "commit": describe_commit()}
    checked = check_losses(options, shape, data)
    for count in options.readers:
        with ExitStack() as stack:
            if options.implementation:
                stack.enter_context(ops.using(options.implementation))
            row = json.dumps(about | checked | measure(options, shape, data, count))
        print(row, flush=True)
        if options.out:
            with options.out.open("a", encoding="utf-8") as file:
                file.write(row + "\n")


if __name__ == "__main__":
    main()
