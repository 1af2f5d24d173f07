"""Recipes compared on one validation set, several seeds each, trained side by side on one GPU; a row for each recipe.

    PYTHONPATH=src python reproduce/recipes.py --config configs/cbt-ne.toml --train STORE --valid STORE --out RUNS \\
      --recipe "paper" --recipe "average: train.average=0.999 train.decay=linear" [--seeds 4] [--append rows.jsonl]

A recipe is a name and what it changes of the settings. Its runs lie in RUNS/NAME/seed-N, so that tables, ensembles and
reports of them are made by the product's commands. A row says the accuracy after every validation, averaged over seeds,
the mean and deviation of the best, and the time.
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
from asreader.training import together


def train(given: argparse.Namespace, recipe: str) -> dict[str, object]:
    """One recipe: its runs, and the row of them."""
    name, _, changes = recipe.partition(":")
    data = [f"data.train={given.train}", f"data.valid={given.valid}"]
    common = ["train.tensorboard=false", "train.checkpoint_seconds=100000.0", "train.log_every=100"]
    settings = load_settings(given.config, [*data, *common, *given.settings, *changes.split()])
    folder, begin = given.out / name.strip(), time.monotonic()
    runs = together.train(settings, folder, count=given.seeds, resume=folder.exists())
    curves = list(map(curve, runs))
    best = [max(own) for own in curves]
    shared = min(map(len, curves))  # a run that got worse stopped before others
    return {
        "benchmark": "recipe",
        "recipe": name.strip(),
        "changes": changes.strip(),
        "train": given.train.name,
        "seeds": given.seeds,
        "accuracy": round(statistics.mean(best), 4),
        "deviation": round(statistics.stdev(best), 4) if len(best) > 1 else None,
        "best": round(max(best), 4),
        "curve": [round(statistics.mean(own[place] for own in curves), 4) for place in range(shared)],
        "seconds": round(time.monotonic() - begin, 1),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def curve(run: Run) -> list[float]:
    """The accuracy of each validation."""
    rows = map(json.loads, run.metrics.read_text(encoding="utf-8").splitlines())
    return [row["accuracy"] for row in rows if "accuracy" in row]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("config", "train", "valid", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--recipe", dest="recipes", action="append", required=True)
    parser.add_argument("--set", dest="settings", action="append", default=[], help="for all recipes")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--append", type=Path, help="also add the rows to this file")
    given = parser.parse_args()
    for recipe in given.recipes:
        row = json.dumps(train(given, recipe))
        print(row, flush=True)
        if given.append:
            with given.append.open("a", encoding="utf-8") as file:
                file.write(row + "\n")


if __name__ == "__main__":
    main()
