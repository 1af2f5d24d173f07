"""What readers trained side by side owe to the plain way: PYTHONPATH=src python benchmarks/checks.py STORE

Two figures for docs/performance.md, on the questions of a store, printed as JSON: how far the losses of the first steps
in float32 are from those of a reader that PyTorch's own GRU reads for, and how many questions a second are answered
where data lie on the device, in the batches of validation and in large ones.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from asreader.config import Config, DataSettings, TrainSettings
from asreader.data import vocabulary
from asreader.data.loading import load_store
from asreader.data.resident import resident
from asreader.data.store import Store
from asreader.kernels import gru
from asreader.predictor import pick_device
from asreader.readers import build
from asreader.run import Run
from asreader.training import loop, stacked
from asreader.training.stacked import Stack
from asreader.training.stacked_evaluation import Examiner
from asreader.training.together import train_together

BATCH, LARGE = 32, 2048


def losses(run: Run) -> np.ndarray:
    rows = (json.loads(line) for line in (run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return np.array([row["loss"] for row in rows if row["kind"] == "train"])


def float32(path: Path, steps: int, size: int) -> dict[str, object]:
    """The losses of a reader trained as one of a group against those of the plain reader."""
    questions = len(load_store(path))
    train = TrainSettings(
        epochs=-(-steps * BATCH // questions), patience=1000, log_every=1, precision="float32", tensorboard=False
    )
    settings = Config(DataSettings(str(path), str(path)), {"embedding": size, "hidden": size}, train)
    with tempfile.TemporaryDirectory() as folder:
        fast, torch.backends.cudnn.allow_tf32 = gru.side_by_side, False
        gru.side_by_side = gru.packed
        try:
            expected = losses(loop.train(settings, Path(folder) / "plain"))[:steps]
        finally:
            gru.side_by_side = fast
        (run,) = train_together([settings], [Path(folder) / "together"])
        found = losses(run)[:steps]
    apart = np.abs(found - expected)
    return {
        "benchmark": "float32",
        "what": f"losses of {len(apart)} steps against those of nn.GRU",
        "greatest_difference": float(apart.max()),
        "difference_at_the_end": float(apart[-1]),
        "loss_at_the_end": float(expected[-1]),
    }


def answering(store: Store, device: torch.device, size: int, seconds: float) -> dict[str, object]:
    """Questions a second, data on the device."""
    words = vocabulary.build(store.counts(), min_count=2, unknown=100)
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
            batch = data.batch(torch.from_numpy(numbers).to(device), sizes, widths)
            stacked.log_attention(weights, batch, widths.words, precision)

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
    parser.add_argument("--seconds", type=float, default=3.0, help="for each rate")
    options = parser.parse_args()
    device = pick_device("auto")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    for row in (
        float32(options.store, options.steps, options.size),
        answering(load_store(options.store), device, options.size, options.seconds),
    ):
        print(json.dumps({**row, "device": name}), flush=True)


if __name__ == "__main__":
    main()
