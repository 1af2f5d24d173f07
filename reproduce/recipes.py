"""recipes -> one row of accuracies each: several seeds, trained together on one GPU, one validation set.

    PYTHONPATH=src python reproduce/recipes.py --config configs/cbt-ne.toml --train STORE --valid STORE --out RUNS \\
      --recipe "paper" --recipe "average: train.average=0.999 train.decay=linear" [--seeds 4] [--append rows.jsonl]

A recipe is a name and the settings that it changes. Its runs are in RUNS/NAME/seed-N, where `asreader table`,
`ensemble` and `report` find them. A row has the accuracy after every validation (mean over seeds), the mean and
standard deviation of the best validations, and the time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

from asreader.runs.folder import Run
from asreader.settings import load_settings
from asreader.training import loop


def train_recipe(options: argparse.Namespace, recipe: str) -> dict[str, object]:
    """Train the runs of one recipe and summarize them in a row."""
    name, _, changes = recipe.partition(":")
    data = [f"data.train={options.train}", f"data.valid={options.valid}"]
    common = ["train.tensorboard=false", "train.checkpoint_seconds=100000.0", "train.log_every=100"]
    settings = load_settings(options.config, [*data, *common, *options.settings, *changes.split()])
    folder, begin = options.out / name.strip(), time.monotonic()
    runs = loop.train(settings, folder, count=options.seeds, resume=folder.exists())
    curves = list(map(read_accuracies, runs))
    best = [max(curve) for curve in curves]
    validations = min(map(len, curves))  # a run without improvement stops earlier than others
    return {
        "benchmark": "recipe",
        "recipe": name.strip(),
        "changes": changes.strip(),
        "train": options.train.name,
        "seeds": options.seeds,
        "accuracy": round(statistics.mean(best), 4),
        "deviation": round(statistics.stdev(best), 4) if len(best) > 1 else None,
        "best": round(max(best), 4),
        "curve": [round(statistics.mean(curve[index] for curve in curves), 4) for index in range(validations)],
        "seconds": round(time.monotonic() - begin, 1),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def read_accuracies(run: Run) -> list[float]:
    """Accuracy of each validation."""
    rows = map(json.loads, run.metrics.read_text(encoding="utf-8").splitlines())
    return [row["accuracy"] for row in rows if "accuracy" in row]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("config", "train", "valid", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--recipe", dest="recipes", action="append", required=True)
    parser.add_argument("--set", dest="settings", action="append", default=[], help="for all recipes")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--append", type=Path, help="also append the rows to this file")
    options = parser.parse_args()
    for recipe in options.recipes:
        row = json.dumps(train_recipe(options, recipe))
        print(row, flush=True)
        if options.append:
            with options.append.open("a", encoding="utf-8") as file:
                file.write(row + "\n")


if __name__ == "__main__":
    main()
