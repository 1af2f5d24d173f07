"""bAbI 10k with one setting for all tasks: trains each task, several at a time, and prints validation accuracies.

    python reproduce/babi.py prepare DATA STORES            # a copy of the bAbI tasks -> encoded stores
    python reproduce/babi.py train STORES RUNS [options]    # a table: accuracy of each task and their mean

Every run uses configs/babi.toml; --set passes further settings on, --seeds trains each task several times.
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
    prepare.set_defaults(run=lambda given: asreader("prepare", str(given.data), "--out", str(given.stores)).wait())
    train = commands.add_parser("train")
    train.add_argument("stores", type=Path)
    train.add_argument("runs", type=Path)
    train.add_argument("--tasks", type=int, nargs="*", default=list(TASKS))
    train.add_argument("--seeds", type=int, nargs="*", default=[1])
    train.add_argument("--set", dest="settings", action="append", default=[])
    train.add_argument("--seconds", type=float, default=3600, help="stop what is still training then")
    train.add_argument("--at-once", type=int, default=os.cpu_count() or 1)
    train.set_defaults(run=train_all)
    given = parser.parse_args()
    given.run(given)


def asreader(*arguments: str, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "asreader", *arguments], **options)  # type: ignore[call-overload, no-any-return]


def train_all(given: argparse.Namespace) -> None:
    waiting = [(task, seed) for task in given.tasks for seed in given.seeds]
    running: list[subprocess.Popen[bytes]] = []
    until = time.monotonic() + given.seconds
    given.runs.mkdir(parents=True, exist_ok=True)
    while waiting or running:
        running = [process for process in running if process.poll() is None]
        while waiting and len(running) < given.at_once and time.monotonic() < until:
            running.append(begin(given, *waiting.pop(0)))
        if time.monotonic() > until:
            waiting = []
            for process in running:
                process.terminate()
        time.sleep(0.2)
    report(given)


def begin(given: argparse.Namespace, task: int, seed: int) -> subprocess.Popen[bytes]:
    settings = [f"data.train={given.stores}/qa{task}-train", f"data.valid={given.stores}/qa{task}-valid"]
    settings += [f"train.seed={seed}", *given.settings]
    options = [part for setting in settings for part in ("--set", setting)]
    run = given.runs / f"qa{task}-seed{seed}"
    log = (given.runs / f"{run.name}.log").open("wb")
    resume = ["--resume"] if (run / "config.toml").exists() else []
    return asreader(
        "train", str(CONFIG), *options, "--out", str(run), *resume,
        stdout=log, stderr=log, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def report(given: argparse.Namespace) -> None:
    means = []
    for task in given.tasks:
        rows = [validations(given.runs / f"qa{task}-seed{seed}" / "metrics.jsonl") for seed in given.seeds]
        best = [max((row["accuracy"] for row in run), default=0.0) for run in rows]
        epochs = [run[-1]["epoch"] if run else 0 for run in rows]
        means.append(statistics.mean(best))
        print(f"qa{task:<3} {means[-1]:.3f}   " + " ".join(f"{value:.3f}" for value in best) + f"   epochs {epochs}")
    print(f"mean  {statistics.mean(means):.4f}")


def validations(path: Path) -> list[dict[str, float]]:
    if not path.exists():
        return []
    rows = map(json.loads, path.read_text().splitlines())
    return [row for row in rows if row["kind"] == "valid"]


if __name__ == "__main__":
    main()
