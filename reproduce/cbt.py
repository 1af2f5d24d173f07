"""raw books -> the paper's table, figures and report of the Children's Book Test, by `asreader` commands.

    python reproduce/cbt.py ne --books BOOKS --valid cbtest_NE_valid_2000ex.txt --exclude cbt_valid.txt --out DIR
    python reproduce/cbt.py ne --train cbtest_NE_train.txt --valid cbtest_NE_valid_2000ex.txt --out DIR
    python reproduce/cbt.py ne --out DIR --test cbtest_NE_test_2500ex.txt     # later: score the trained readers

Stages are `data` (questions and stores), `train` (the sweep), `test` and `show`. Finished stages are skipped, so `data`
may run on one machine and `train` on another that has a GPU. The sweep uses configs/cbt-ne.toml or cbt-cn.toml and the
grid below; options after `--` are passed to `asreader sweep`, such as `-- --seeds 8 --set train.epochs=3`.
DIR/stages.json records seconds, device and commit of each stage.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
STAGES = ("data", "train", "test", "show")
GRID = ("--grid", "reader.hidden=256,384", "--grid", "reader.embedding=256,384", "--seeds", "4", "--together", "16")
KEPT_FRACTION = {"ne": "1.0", "cn": "0.74"}
"""Fraction of all possible questions that gives a set of the official size (docs/cloze.md)."""

LEAKED_BOOKS = ("064_Nathaniel_Hawthorne_Twice_Told_Tales", "020_Lewis_Carroll_Alice_s_Adventures_Under_Ground")
"""Training books that contain a whole validation book, and the first draft of a test book."""


@dataclass(frozen=True)
class Reproduction:
    """Inputs, options and output folder of one reproduction."""

    kind: str
    out: Path
    books: list[Path]
    train: Path | None
    valid: Path | None
    valid_books: list[Path]
    test: Path | None
    exclude: list[Path]
    without: list[str]
    sweep: list[str]

    @property
    def runs(self) -> Path:
        return self.out / "runs"

    def make_data(self) -> None:
        """Make questions from books, or take the given file; encode both splits."""
        if not (self.valid or self.valid_books):
            raise SystemExit("name the official validation file with --valid, or other books with --valid-books")
        sources = {
            "train": self.train or self._make_questions(self.out / "questions.txt", self.books, self.exclude),
            "valid": self.valid or self._make_questions(self.out / "questions-valid.txt", self.valid_books, []),
        }
        for split, source in sources.items():
            if not (self.out / split).exists():
                run_asreader("prepare", source, "--out", self.out / split)

    def _make_questions(self, questions: Path, books: list[Path], exclude: list[Path]) -> Path:
        if not questions.exists():
            options = [argument for path in exclude for argument in ("--exclude", path)]
            options += [argument for pattern in self.without for argument in ("--without", pattern)]
            kind = ("--type", self.kind, "--keep", KEPT_FRACTION[self.kind])
            run_asreader("make", "books", *books, *kind, *options, "--out", questions)
        return questions

    def train_readers(self) -> None:
        """Train the grid of readers; continue a sweep that was stopped."""
        settings = [f"data.{split}={self.out / split}" for split in ("train", "valid")]
        overrides = [argument for setting in settings for argument in ("--set", setting)]
        resume = ["--resume"] if self.runs.exists() else []
        config = ROOT / "configs" / f"cbt-{self.kind}.toml"
        run_asreader("sweep", config, *overrides, *GRID, *self.sweep, "--out", self.runs, *resume)

    def score_test(self) -> None:
        """Write the predictions of every reader for the test file, next to those for the validation file."""
        for run in sorted(path.parent for path in self.runs.glob("*/config.toml")):
            predictions = run / "predictions" / "test.jsonl"
            if self.test is not None and not predictions.exists():
                run_asreader("evaluate", run, self.test, "--predictions", predictions)

    def write_results(self) -> None:
        """Write table, figures and report."""
        paper = ("--paper", f"cbt-{self.kind}")
        table = run_asreader("table", self.runs, *paper, "--style", "markdown", quiet=True)
        (self.out / "table.md").write_text(table, encoding="utf-8")
        print(run_asreader("table", self.runs, *paper, quiet=True))
        run_asreader("analyse", self.runs, self.out / "valid", "--out", self.out / "analysis")
        run_asreader("report", self.runs, *paper, "--data", self.out / "valid", "--out", self.out / "report.html")


def run_asreader(*arguments: object, quiet: bool = False) -> str:
    """Run an `asreader` command; with `quiet` its output is returned instead of shown."""
    print("asreader " + " ".join(map(str, arguments)), file=sys.stderr, flush=True)
    process = subprocess.run(
        [sys.executable, "-m", "asreader", *map(str, arguments)], stdout=subprocess.PIPE if quiet else None, text=True
    )
    if process.returncode:
        raise SystemExit(process.returncode)
    return process.stdout or ""


def run_timed_stage(reproduction: Reproduction, stage: str, run_stage: Callable[[], None]) -> None:
    start = time.monotonic()
    run_stage()
    path = reproduction.out / "stages.json"
    stages = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    seconds = round(time.monotonic() - start, 1)
    stages[stage] = {"seconds": seconds, "device": name_device(), "commit": describe_commit()}
    path.write_text(json.dumps(stages, indent=1) + "\n", encoding="utf-8")


def name_device() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()


def describe_commit() -> str:
    described = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return described.stdout.strip() or "unknown"


def main() -> None:
    own_arguments, sweep_arguments = split_arguments(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(KEPT_FRACTION))
    parser.add_argument("--books", type=Path, nargs="+", default=[])
    parser.add_argument("--train", type=Path)
    parser.add_argument("--valid", type=Path)
    parser.add_argument(
        "--valid-books", type=Path, nargs="+", default=[], help="books to make the validation questions from"
    )
    parser.add_argument("--test", type=Path)
    parser.add_argument("--exclude", type=Path, nargs="+", default=[])
    parser.add_argument(
        "--without",
        nargs="*",
        default=list(LEAKED_BOOKS),
        metavar="PATTERN",
        help="books to leave out; without a pattern all books are used",
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    options = parser.parse_args(own_arguments)
    reproduction = Reproduction(
        kind=options.kind,
        out=options.out,
        books=options.books,
        train=options.train,
        valid=options.valid,
        valid_books=options.valid_books,
        test=options.test,
        exclude=options.exclude,
        without=options.without,
        sweep=sweep_arguments,
    )
    if not (options.books or options.train or (options.out / "train").exists()):
        parser.error("name raw books with --books, or a file of questions with --train")
    options.out.mkdir(parents=True, exist_ok=True)
    run_stage = {
        "data": reproduction.make_data,
        "train": reproduction.train_readers,
        "test": reproduction.score_test,
        "show": reproduction.write_results,
    }
    has_data = all((options.out / split).exists() for split in ("train", "valid"))
    for stage in options.stages:
        if not (stage == "data" and has_data):
            run_timed_stage(reproduction, stage, run_stage[stage])


def split_arguments(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Arguments before and after `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:end], arguments[end + 1 :]


if __name__ == "__main__":
    main()
