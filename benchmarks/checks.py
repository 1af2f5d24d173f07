"""Questions answered per second on a GPU: PYTHONPATH=src python benchmarks/checks.py STORE

Reads a whole store with a fresh reader by the path of validation (the engine `stacked` with one reader) and prints one
JSON row.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

from asreader.batches.device import load_on_device
from asreader.data.dataset import load_store
from asreader.data.vocabulary import build_vocabulary
from asreader.inference.reader import pick_device
from asreader.inference.store_evaluation import PredictionTemplates
from asreader.ops.row_adam import AdamRecipe
from asreader.readers import build
from asreader.runs.folder import describe_commit
from asreader.training.engines.stacked import AutogradStep
from asreader.training.stacking.parameter_stack import ParameterStack
from asreader.training.stacking.stacked_engine import StackedTask
from asreader.training.stacking.stacked_evaluation import StackedEvaluator

try:
    from together import SyntheticJob
except ImportError:  # imported as a module of a package
    from benchmarks.together import SyntheticJob


def measure_answering(path: Path, size: int, repeats: int) -> dict[str, object]:
    """Questions per second, best of some rounds."""
    device, store = pick_device("auto"), load_store(path)
    vocabulary = build_vocabulary(store.count_words(), min_count=2, unknown=100)
    job = SyntheticJob(build("attention_sum", vocabulary.size, {"embedding": size, "hidden": size}).to(device))
    stack = ParameterStack([job], paired=False)
    data = load_on_device(store, vocabulary, device=device)
    precision = torch.bfloat16 if device.type == "cuda" else torch.float32
    computation = AutogradStep(StackedTask(stack, data, AdamRecipe([0.001]), precision, job.network))
    evaluator = StackedEvaluator(data, PredictionTemplates(store, vocabulary), computation.read_batch)
    seconds = []
    for _ in range(repeats + 1):  # the first round sets libraries and templates up
        start = time.perf_counter()
        evaluator.evaluate(stack.weights(averaged=False), 1)
        seconds.append(time.perf_counter() - start)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    rate = round(len(store) / min(seconds[1:]))
    return {"benchmark": "answering", "questions": len(store), "per_second": rate, "size": size, "device": name}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--size", type=int, default=384, help="of embeddings and states")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    row = measure_answering(options.store, options.size, options.repeats)
    print(json.dumps(row | {"commit": describe_commit()}))


if __name__ == "__main__":
    main()
