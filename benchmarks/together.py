"""N readers trained together at the size of CBT NE -> ms per step: PYTHONPATH=src python benchmarks/together.py

Needs no data: a generated data set of the same size and length distribution is on the device from the start. For each N
the same batches are run three times (warm-up, graph capture, measurement). Prints the time per step and per reader and
epoch, then a table of the kernels of one step. Every row is also printed as JSON. With `--store STORE` the batches are
those of real questions.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import traceback
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from asreader.kernels import recurrence
from asreader.training.stacked import Stack
from asreader.training.stacked_adam import Moments, Recipe
from asreader.training.stacked_step import Step
from torch import Tensor

from asreader.batches.device import NOBODY, FlatWords, Resident, Widths, resident
from asreader.batches.host import plan
from asreader.batches.unique_bound import FREQUENT, RareWords, rare_words
from asreader.data import vocabulary
from asreader.data.dataset import load_store
from asreader.data.vocabulary import FIRST_ANONYMOUS_ROW
from asreader.inference.reader import pick_device
from asreader.readers import build

CANDIDATES, ANONYMOUS, BATCH, PREFETCH, SKEW = 10, 100, 32, 10, 0.22
PROFILED = (
    ("softmax and sums in log space", ("softmax", "logsumexp")),
    ("recurrence", ("gru_forward", "gru_backward", "_forward", "_backward")),  # also what Triton calls its kernels
    ("Adam", ("fusedadam", "fused_adam")),
    ("norm", ("lpnorm", "norm")),
    ("matrix products", ("gemm", "cutlass", "nvjet", "xmma", "cublas", "splitk", "gemv")),
    ("gradient of the embedding", ("compute_grad_weight", "embedding", "sum_and_scatter", "krn_", "sort", "unique")),
    ("sums", ("reduce",)),
    ("filling and copying", ("fill", "memset", "memcpy", "copy", "cat")),
    ("gathering", ("index", "gather", "scatter")),
    ("element by element", ("elementwise", "where")),
)


@dataclass(frozen=True)
class Shape:
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
    "ne": Shape(108_719, 433, 110, 106, 1338, 53_000, 384),
    "cnn": Shape(380_298, 762, 300, 100, 2000, 118_497, 128),
    "tiny": Shape(640, 40, 10, 5, 90, 300, 16, hidden=64, question=8),
}


def made(shape: Shape, device: torch.device) -> Resident:
    """A data set on the device: lengths normal, words as Zipf has them, some unknown, every answer mentioned."""
    random = np.random.default_rng(1)
    torch.manual_seed(1)
    lengths = random.normal(shape.mean, shape.deviation, shape.questions).clip(shape.shortest, shape.longest)
    asked = random.normal(shape.question, shape.question / 3, shape.questions).clip(3, 5 * shape.question)
    documents, questions = (_flat(part.astype(np.int64), shape, device) for part in (lengths, asked))
    at = torch.randint(0, 12 * CANDIDATES, documents.rows.shape, dtype=torch.int16, device=device)
    at = torch.where(at < CANDIDATES, at, NOBODY)
    at[documents.starts] = 0
    frequent, rare = _frequent_and_rare(documents, questions, shape)
    return Resident(
        documents=documents,
        questions=questions,
        candidate_at=at,
        answers=torch.zeros(shape.questions, dtype=torch.int16, device=device),
        supported=torch.ones(shape.questions, dtype=torch.bool, device=device),
        document_lengths=lengths.astype(np.int64),
        question_lengths=asked.astype(np.int64),
        rare=rare,
        frequent=frequent,
        anonymous=ANONYMOUS,
        choices=CANDIDATES,
    )


def held(path: Path, min_count: int, shape: Shape, device: torch.device) -> tuple[Shape, Resident]:
    """A store's questions, for readers of this shape."""
    store = load_store(path, split="train")
    words = vocabulary.build_vocabulary(store.count_words(), min_count=min_count, unknown=ANONYMOUS)
    lengths = store.lengths
    real = replace(
        shape,
        questions=len(store),
        mean=float(lengths.mean()),
        deviation=float(lengths.std()),
        longest=int(lengths.max()),
        vocabulary=words.size,
    )
    return real, resident(store, words, device=device)


def _flat(lengths: np.ndarray, shape: Shape, device: torch.device) -> FlatWords:
    total, fixed = int(lengths.sum()), FIRST_ANONYMOUS_ROW + ANONYMOUS
    known = shape.vocabulary - fixed
    # Zipf's law, with the exponent that gives a batch as many different words as the rebuilt CBT NE questions have in
    # one: 2,600 of 14,500.
    drawn = torch.rand(total, device=device, dtype=torch.float64)
    rank = (1 - drawn * (1 - known**-SKEW)).pow(-1 / SKEW).int().clamp(max=known)
    rows = fixed + rank - 1
    unknown = torch.rand(total, device=device) < 0.02
    rows[unknown] = torch.randint(FIRST_ANONYMOUS_ROW, fixed, (int(unknown.sum()),), dtype=torch.int32, device=device)
    ends = np.cumsum(lengths)
    return FlatWords(
        rows, torch.from_numpy(ends - lengths).to(device), torch.from_numpy(lengths.astype(np.int32)).to(device)
    )


def _frequent_and_rare(documents: FlatWords, questions: FlatWords, shape: Shape) -> tuple[int, RareWords]:
    """What `Resident` knows of distinct words: here the first rows are the frequent ones."""
    frequent = np.arange(shape.vocabulary) < FIRST_ANONYMOUS_ROW + ANONYMOUS + FREQUENT
    flat = [(part.rows.cpu().numpy(), part.lengths.cpu().numpy()) for part in (documents, questions)]
    return int(frequent.sum()), rare_words(*flat[0], *flat[1], frequent)


def orders(data: Resident, readers: range, steps: int) -> tuple[np.ndarray, list[Widths]]:
    """What a group asks for: each reader's own plan and dealt rows."""
    numbers = np.arange(len(data.document_lengths))
    made = np.zeros((steps, len(readers), BATCH + 2 + ANONYMOUS), np.int32)
    for place, reader in enumerate(readers):
        batches = plan(data.document_lengths, numbers, size=BATCH, prefetch=PREFETCH, seed=reader, epoch=0)
        for step in range(steps):
            batch = batches[step % len(batches)]
            made[step, place, :BATCH] = batch[0]
            made[step, place, : len(batch)] = batch
            made[step, place, BATCH] = len(batch)
            generator = np.random.default_rng([reader, 0, step])
            pool = np.arange(FIRST_ANONYMOUS_ROW, FIRST_ANONYMOUS_ROW + ANONYMOUS, dtype=np.int32)
            made[step, place, BATCH + 2 :] = generator.permutation(pool)
    return made, [data.widths(order[:, :BATCH]) for order in made]


class Lane:
    """Fresh readers and the steps they are measured on."""

    def __init__(self, shape: Shape, data: Resident, readers: range, options: Measure, number: int) -> None:
        device = data.documents.rows.device
        sizes = {"embedding": shape.embedding, "hidden": shape.hidden}
        network = build("attention_sum", shape.vocabulary, sizes)
        weights, first, second = (Stack.zeros(len(readers), network, device) for _ in range(3))
        with torch.no_grad():
            for reader in range(len(readers)):
                for name, view in weights.views(reader).items():
                    view.copy_(network.get_parameter(name))
        parameters = sum(1 for _ in network.parameters())
        moments = Moments(first, second, torch.zeros(len(readers), parameters, device=device))
        recipe = Recipe([0.001] * len(readers), 10.0, options.precision)
        self.step = Step(weights, moments, data, batch=BATCH, recipe=recipe, graphs=options.graphs, lane=number)
        begin = time.perf_counter()
        made, self.widths = orders(data, readers, options.steps)
        self.host_ms = (time.perf_counter() - begin) / options.steps * 1e3
        self.orders = torch.from_numpy(made).pin_memory() if device.type == "cuda" else torch.from_numpy(made)
        self.stream = torch.cuda.Stream() if number else None

    def take(self, step: int) -> Tensor:
        with torch.cuda.stream(self.stream) if self.stream else nullcontext():
            return self.step.take(self.orders[step], self.widths[step])


@dataclass(frozen=True)
class Measure:
    """How it is measured."""

    steps: int
    precision: torch.dtype
    graphs: bool
    lanes: int = 1


class Bench:
    """N readers, in one lane or several that run beside each other."""

    def __init__(self, shape: Shape, data: Resident, count: int, options: Measure):
        size, self._steps = -(-count // options.lanes), options.steps
        parts = [range(first, min(first + size, count)) for first in range(0, count, size)]
        self.lanes = [Lane(shape, data, part, options, number) for number, part in enumerate(parts)]

    @property
    def widths(self) -> list[Widths]:
        return [widths for lane in self.lanes for widths in lane.widths]

    def go(self) -> tuple[float, Tensor]:
        """Seconds for all steps, and the last losses."""
        synchronize()
        begin = time.perf_counter()
        for step in range(self._steps):
            losses = [lane.take(step) for lane in self.lanes]
        synchronize()
        return time.perf_counter() - begin, torch.cat(losses)


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measured(shape: Shape, data: Resident, count: int, options: argparse.Namespace) -> dict[str, object]:
    """One row: this many readers."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    how = Measure(options.steps, getattr(torch, options.precision), options.graphs, options.lanes)
    bench = Bench(shape, data, count, how)
    ready, _ = bench.go()
    recording, _ = bench.go() if options.graphs else (0.0, None)
    seconds, losses = min((bench.go() for _ in range(options.repeats)), key=lambda found: found[0])
    step = seconds / options.steps
    return {
        "readers": count,
        "ms_per_step": round(step * 1e3, 3),
        "seconds_per_reader_and_epoch": round(step * shape.steps / count, 3),
        "us_per_time_step": round(step * 1e6 / np.mean([widths.document for widths in bench.widths]), 2),
        "getting_ready_s": round(ready, 2),
        "recording_s": round(recording, 2),
        "widths": len(set(bench.widths)),
        "host_ms_per_step": round(sum(lane.host_ms for lane in bench.lanes), 3),
        "peak_GB": round(torch.cuda.max_memory_allocated() / 1e9, 2) if torch.cuda.is_available() else 0,
        "reserved_GB": round(torch.cuda.max_memory_reserved() / 1e9, 2) if torch.cuda.is_available() else 0,
        "loss": round(float(losses.mean()), 4),
    }


def profile(shape: Shape, data: Resident, count: int, options: argparse.Namespace) -> None:
    """What an ordinary step of this many readers is spent on, by class of kernel and by the longest kernels."""
    bench = Bench(shape, data, count, Measure(PREFETCH, getattr(torch, options.precision), False))
    bench.go()
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities if torch.cuda.is_available() else activities[1:]) as found:
        bench.go()
    spent: defaultdict[str, float] = defaultdict(float)
    kernels: defaultdict[str, float] = defaultdict(float)
    calls: defaultdict[str, int] = defaultdict(int)
    for event in found.events():
        if torch.cuda.is_available() and event.device_type != torch.autograd.DeviceType.CUDA:
            continue
        name = event.name.lower()
        kind = next((kind for kind, parts in PROFILED if any(part in name for part in parts)), "other")
        duration = event.self_device_time_total if torch.cuda.is_available() else event.self_cpu_time_total
        spent[kind] += duration / 1e3 / PREFETCH
        kernels[event.name] += duration / 1e3 / PREFETCH
        calls[event.name] += 1
    total = sum(spent.values()) or 1.0
    print(f"\none step of {count} readers, {total:.3f} ms on the device (not as a graph)", flush=True)
    for kind, time_ms in sorted(spent.items(), key=lambda pair: -pair[1]):
        print(f"  {kind:30s} {time_ms:8.3f} ms  {time_ms / total:6.1%}", flush=True)
    print("longest kernels", flush=True)
    for name, time_ms in sorted(kernels.items(), key=lambda pair: -pair[1])[: options.longest]:
        print(f"  {time_ms:8.3f} ms {calls[name] / PREFETCH:6.1f} calls  {name[:110]}", flush=True)


def choose_recurrence(name: str) -> None:
    """Let `recurrence.run` take one way, whatever is fastest."""
    if name == "auto":
        return
    way = None
    if name != "stepwise":
        from importlib import import_module

        way = import_module(f"asreader.kernels.{name}")
    recurrence.fastest = lambda device, dtype, hidden: way  # type: ignore[assignment]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="ne")
    parser.add_argument("--lanes", type=int, default=1, help="groups of readers that run beside each other")
    parser.add_argument("--store", type=Path, help="measure on these questions")
    parser.add_argument("--min-count", type=int, default=2, help="of the words of --store")
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--graphs", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--recurrence", default="auto", help="auto, stepwise, or a module of asreader.kernels")
    parser.add_argument("--profile", type=int, nargs="*", default=[1, 16], help="readers of the profiled steps")
    parser.add_argument("--longest", type=int, default=15, help="kernels named in a profile")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    choose_recurrence(options.recurrence)
    device = pick_device("auto")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    begin, shape = time.perf_counter(), SHAPES[options.shape]
    if options.store:
        shape, data = held(options.store, options.min_count, shape, device)
    else:
        data = made(shape, device)
    synchronize()
    print(f"{name}, torch {torch.__version__}, {options}; data made in {time.perf_counter() - begin:.1f} s", flush=True)
    work = [(measured, count) for count in options.readers] + [(profile, count) for count in options.profile]
    for task, count in work:
        try:
            row = task(shape, data, count, options)  # type: ignore[operator]
            if row is not None:
                common = {
                    "shape": options.shape + (", real questions" if options.store else ""),
                    "precision": options.precision,
                    "graphs": options.graphs,
                }
                print(json.dumps({"device": name, **common, "recurrence": options.recurrence, **row}), flush=True)
        except Exception:
            print(f"{task.__name__} with {count} readers failed:\n{traceback.format_exc(limit=-6)}", flush=True)
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
