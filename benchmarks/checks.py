"""Readers trained together, compared with nn.GRU: PYTHONPATH=src python benchmarks/checks.py STORE

Prints two rows for docs/performance.md and docs/notebook/gpu.md as JSON, measured on the questions of a store:

- float32: the greatest difference of losses between readers trained together and `nn.GRU` over the first steps, and
  between `nn.GRU` and itself when its initial weights change in the last bit;
- answering: questions per second with the data set on the device, in the batches of validation and in large batches.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from asreader.training.stacked import Stack
from asreader.training.stacked_evaluation import Examiner
from asreader.training.together import train_together
from plain import reading_by_nn_gru

from asreader import readers
from asreader.batches.device import resident
from asreader.data import vocabulary
from asreader.data.dataset import load_store
from asreader.data.store import Encoder, Store
from asreader.inference.reader import pick_device
from asreader.readers import build
from asreader.runs.folder import Run
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.training import loop, stacked

BATCH, LARGE = 32, 2048


def losses(run: Run, steps: int) -> np.ndarray:
    rows = (json.loads(line) for line in (run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return np.array([row["loss"] for row in rows if row["kind"] == "train"])[:steps]


def some(store: Store, number: int, folder: Path) -> Path:
    """At most so many questions from all over a store, as a store of their own."""
    folder.mkdir()
    encoder = Encoder(folder)
    for example in np.unique(np.linspace(0, len(store) - 1, number).astype(int)):
        encoder.add(store.decode_example(int(example)))
    encoder.close("some questions of a larger store")
    return folder


def float32(store: Store, steps: int, size: int, seeds: int) -> dict[str, object]:
    """The first losses of readers trained side by side, against those of readers that PyTorch's GRU reads for.

    Beside it, how far these come from themselves if their first weights are other in the last bit: learning makes small
    differences large, most of all where the loss leaps, so that no difference says anything without that one.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train, valid = (some(store, n, folder / str(n)) for n in (steps * BATCH, 2 * BATCH))
        epochs = math.ceil(steps / math.ceil(len(load_store(train)) / BATCH))
        recipe = TrainSettings(epochs=epochs, patience=1000, log_every=1, precision="float32", tensorboard=False)
        settings = Config(DataSettings(str(train), str(valid)), {"embedding": size, "hidden": size}, recipe)
        each = [replace(settings, train=replace(recipe, seed=seed)) for seed in range(1, seeds + 1)]
        runs = train_together(each, [folder / f"together-{own.train.seed}" for own in each])
        ours = [losses(run, steps) for run in runs]
        with reading_by_nn_gru():
            plain = [losses(loop.train(own, folder / f"plain-{own.train.seed}"), steps) for own in each]
            with nudged():
                other = [losses(loop.train(own, folder / f"nudged-{own.train.seed}"), steps) for own in each]
    return {
        "benchmark": "float32",
        "what": f"losses of {steps} steps against those of nn.GRU, readers of {seeds} seeds",
        "questions": len(store),
        "epochs": epochs,
        "greatest_differences": [apart(*pair) for pair in zip(ours, plain, strict=True)],
        "in_the_first_half": [
            apart(one[: steps // 2], two[: steps // 2]) for one, two in zip(ours, plain, strict=True)
        ],
        "nn_GRU_from_itself_nudged": [apart(*pair) for pair in zip(plain, other, strict=True)],
        "losses_at_the_end": [float(own[-1]) for own in plain],
    }


@contextmanager
def nudged(size: float = 1e-7) -> Iterator[None]:
    """First weights that differ from what they would be by about a rounding."""
    build = readers.build

    def other(*args: Any) -> torch.nn.Module:
        network, generator = build(*args), torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(1 + size * torch.randn(parameter.shape, generator=generator))
        return network

    readers.build = other  # type: ignore[assignment]
    try:
        yield
    finally:
        readers.build = build


def apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max())


def answering(store: Store, device: torch.device, size: int, seconds: float) -> dict[str, object]:
    """Questions a second, data on the device."""
    words = vocabulary.build_vocabulary(store.count_words(), min_count=2, unknown=100)
    network = build("attention_sum", words.size, {"embedding": size, "hidden": size})
    weights = Stack.zeros(1, network, device)
    for name, view in weights.views(0).items():
        view.copy_(network.get_parameter(name).detach())
    precision = torch.bfloat16 if device.type == "cuda" else torch.float32
    data = resident(store, words, device=device)
    examiner = Examiner(store, data, 0, precision)
    order = np.argsort(store.lengths, kind="stable")
    whole = np.resize(order, -(-len(order) // LARGE) * LARGE).reshape(-1, 1, LARGE)

    @torch.inference_mode()
    def in_large_batches() -> None:
        for numbers in whole:
            sizes, widths = torch.full((1,), LARGE, device=device), data.widths(numbers)
            batch = stacked.gathered(data, torch.from_numpy(numbers).to(device), sizes, widths)
            stacked.log_attention(weights, batch, widths, precision)

    return {
        "benchmark": "answering",
        "what": f"{len(store):,} questions, data on the device",
        "questions_per_second": rate(lambda: examiner.evaluations(weights), len(store), seconds),
        "in_batches_of_2048": rate(in_large_batches, whole.size, seconds),
    }


def rate(work: Callable[[], object], questions: int, seconds: float) -> int:
    """The best of several rounds, after one to get ready."""
    work()
    best, begin = 0.0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        synchronize()
        start = time.perf_counter()
        work()
        synchronize()
        best = max(best, questions / (time.perf_counter() - start))
    return round(best)


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--size", type=int, default=384, help="of embeddings and states")
    parser.add_argument("--seeds", type=int, default=3, help="readers in float32")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each rate")
    parser.add_argument("--only", choices=["float32", "answering"], help="one of the two figures")
    options = parser.parse_args()
    device = pick_device("auto")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    store = load_store(options.store)
    figures: dict[str, Callable[[], dict[str, object]]] = {
        "float32": lambda: float32(store, options.steps, options.size, options.seeds),
        "answering": lambda: answering(store, device, options.size, options.seconds),
    }
    for figure in [options.only] if options.only else figures:
        print(json.dumps({**figures[figure](), "device": name}), flush=True)


if __name__ == "__main__":
    main()
