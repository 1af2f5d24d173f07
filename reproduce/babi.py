"""bAbI stores -> validation accuracy of each task: one setting for all tasks, several trained at a time.

    python reproduce/babi.py prepare DATA STORES            # bAbI files -> encoded stores
    python reproduce/babi.py train STORES RUNS [options]    # prints the accuracy of each task and their mean

Every run uses configs/babi.toml. --set adds settings, --seeds trains each task with several seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

TASKS = (1, 2, 4, 5, 11, 12, 13, 14, 15, 16)
CONFIG = Path(__file__).parent.parent / "configs" / "babi.toml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    prepare = commands.add_parser("prepare")
    prepare.add_argument("data", type=Path)
    prepare.add_argument("stores", type=Path)
    prepare.set_defaults(
        run=lambda options: start_asreader("prepare", str(options.data), "--out", str(options.stores)).wait()
    )
    train = commands.add_parser("train")
    train.add_argument("stores", type=Path)
    train.add_argument("runs", type=Path)
    train.add_argument("--tasks", type=int, nargs="*", default=list(TASKS))
    train.add_argument("--seeds", type=int, nargs="*", default=[1])
    train.add_argument("--set", dest="settings", action="append", default=[])
    train.add_argument("--seconds", type=float, default=3600, help="time limit: terminate trainings that still run")
    train.add_argument("--at-once", type=int, default=os.cpu_count() or 1)
    train.set_defaults(run=train_tasks)
    options = parser.parse_args()
    options.run(options)


def start_asreader(*arguments: str, **process_options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "asreader", *arguments], **process_options)  # type: ignore[call-overload, no-any-return]


def train_tasks(options: argparse.Namespace) -> None:
    waiting = [(task, seed) for task in options.tasks for seed in options.seeds]
    running: list[subprocess.Popen[bytes]] = []
    deadline = time.monotonic() + options.seconds
    options.runs.mkdir(parents=True, exist_ok=True)
    while waiting or running:
        running = [process for process in running if process.poll() is None]
        while waiting and len(running) < options.at_once and time.monotonic() < deadline:
            running.append(start_training(options, *waiting.pop(0)))
        if time.monotonic() > deadline:
            waiting = []
            for process in running:
                process.terminate()
        time.sleep(0.2)
    print_accuracies(options)


def start_training(options: argparse.Namespace, task: int, seed: int) -> subprocess.Popen[bytes]:
    settings = [f"data.train={options.stores}/qa{task}-train", f"data.valid={options.stores}/qa{task}-valid"]
    settings += [f"train.seed={seed}", *options.settings]
    overrides = [part for setting in settings for part in ("--set", setting)]
    run = options.runs / f"qa{task}-seed{seed}"
    log = (options.runs / f"{run.name}.log").open("wb")
    resume = ["--resume"] if (run / "config.toml").exists() else []
    command = ("train", str(CONFIG), *overrides, "--out", str(run), *resume)
    return start_asreader(*command, stdout=log, stderr=log, env=os.environ | {"OMP_NUM_THREADS": "1"})


def print_accuracies(options: argparse.Namespace) -> None:
    means = []
    for task in options.tasks:
        rows = [read_validations(options.runs / f"qa{task}-seed{seed}" / "metrics.jsonl") for seed in options.seeds]
        best = [max((row["accuracy"] for row in run), default=0.0) for run in rows]
        epochs = [run[-1]["epoch"] if run else 0 for run in rows]
        means.append(statistics.mean(best))
        print(f"qa{task:<3} {means[-1]:.3f}   " + " ".join(f"{value:.3f}" for value in best) + f"   epochs {epochs}")
    print(f"mean  {statistics.mean(means):.4f}")


def read_validations(path: Path) -> list[dict[str, float]]:
    if not path.exists():
        return []
    rows = map(json.loads, path.read_text().splitlines())
    return [row for row in rows if row["kind"] == "valid"]


if __name__ == "__main__":
    main()
