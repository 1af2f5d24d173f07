"""The Children's Book Test from raw books to the paper's table, figures and report, by the product's own commands.

    python reproduce/cbt.py ne --books BOOKS --valid cbtest_NE_valid_2000ex.txt --exclude cbt_valid.txt --out DIR
    python reproduce/cbt.py ne --train cbtest_NE_train.txt --valid cbtest_NE_valid_2000ex.txt --out DIR
    python reproduce/cbt.py ne --out DIR --test cbtest_NE_test_2500ex.txt     # later: score what was trained

Stages are `data` (questions and stores), `train` (the sweep), `test` and `show`; what was done is not done again, so
the first may run on one machine and the second on another that has the GPU. What a sweep trains is decided by
configs/cbt-ne.toml or cbt-cn.toml and the grid below; whatever comes behind `--` goes to `asreader sweep`, as
`-- --seeds 8 --set train.epochs=3`. DIR/stages.json says how long each stage took, on what, from which commit.
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
KEEP = {"ne": "1.0", "cn": "0.74"}
"""The share of all possible questions that makes a set of the official size (docs/cloze.md)."""

LEAKS = ("064_Nathaniel_Hawthorne_Twice_Told_Tales", "020_Lewis_Carroll_Alice_s_Adventures_Under_Ground")
"""Training books that hold a whole validation story, and the first draft of a test book."""


@dataclass(frozen=True)
class Work:
    """What was asked for, and where everything of it lies."""

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

    def data(self) -> None:
        """Questions from the books, or the file that was given; both splits encoded."""
        if not (self.valid or self.valid_books):
            raise SystemExit("name the official validation file with --valid, or other books with --valid-books")
        sources = {
            "train": self.train or self._made(self.out / "questions.txt", self.books, self.exclude),
            "valid": self.valid or self._made(self.out / "questions-valid.txt", self.valid_books, []),
        }
        for split, source in sources.items():
            if not (self.out / split).exists():
                asreader("prepare", source, "--out", self.out / split)

    def _made(self, questions: Path, books: list[Path], exclude: list[Path]) -> Path:
        if not questions.exists():
            options = [word for path in exclude for word in ("--exclude", path)]
            options += [word for pattern in self.without for word in ("--without", pattern)]
            kind = ("--type", self.kind, "--keep", KEEP[self.kind])
            asreader("make", "books", *books, *kind, *options, "--out", questions)
        return questions

    def fit(self) -> None:
        """The grid of readers; a sweep that was begun goes on."""
        settings = [f"data.{split}={self.out / split}" for split in ("train", "valid")]
        named = [word for setting in settings for word in ("--set", setting)]
        begun = ["--resume"] if self.runs.exists() else []
        config = ROOT / "configs" / f"cbt-{self.kind}.toml"
        asreader("sweep", config, *named, *GRID, *self.sweep, "--out", self.runs, *begun)

    def score(self) -> None:
        """What every reader says of the test file, beside what it says of the validation file."""
        for run in sorted(path.parent for path in self.runs.glob("*/config.toml")):
            said = run / "predictions" / "test.jsonl"
            if self.test is not None and not said.exists():
                asreader("evaluate", run, self.test, "--predictions", said)

    def show(self) -> None:
        """Table, figures, report."""
        paper = ("--paper", f"cbt-{self.kind}")
        table = asreader("table", self.runs, *paper, "--style", "markdown", quiet=True)
        (self.out / "table.md").write_text(table, encoding="utf-8")
        print(asreader("table", self.runs, *paper, quiet=True))
        asreader("analyse", self.runs, self.out / "valid", "--out", self.out / "analysis")
        asreader("report", self.runs, *paper, "--data", self.out / "valid", "--out", self.out / "report.html")


def asreader(*words: object, quiet: bool = False) -> str:
    """Run a command of the product; its progress is shown, its result too unless it is wanted."""
    print("asreader " + " ".join(map(str, words)), file=sys.stderr, flush=True)
    found = subprocess.run(
        [sys.executable, "-m", "asreader", *map(str, words)], stdout=subprocess.PIPE if quiet else None, text=True
    )
    if found.returncode:
        raise SystemExit(found.returncode)
    return found.stdout or ""


def timed(work: Work, stage: str, act: Callable[[], None]) -> None:
    begin = time.monotonic()
    act()
    place = work.out / "stages.json"
    known = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    known[stage] = {"seconds": round(time.monotonic() - begin, 1), "device": device(), "commit": commit()}
    place.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def device() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()


def commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def main() -> None:
    given, beyond = (sys.argv[1:], []) if "--" not in sys.argv else split(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(KEEP))
    parser.add_argument("--books", type=Path, nargs="+", default=[])
    parser.add_argument("--train", type=Path)
    parser.add_argument("--valid", type=Path)
    parser.add_argument(
        "--valid-books", type=Path, nargs="+", default=[], help="make the validation questions of these"
    )
    parser.add_argument("--test", type=Path)
    parser.add_argument("--exclude", type=Path, nargs="+", default=[])
    parser.add_argument(
        "--without",
        nargs="*",
        default=list(LEAKS),
        metavar="PATTERN",
        help="books that are not trained on; none: use all",
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    asked = parser.parse_args(given)
    files = (asked.train, asked.valid, asked.valid_books, asked.test, asked.exclude, asked.without)
    work = Work(asked.kind, asked.out, asked.books, *files, beyond)
    if not (asked.books or asked.train or (asked.out / "train").exists()):
        parser.error("name raw books with --books, or a file of questions with --train")
    asked.out.mkdir(parents=True, exist_ok=True)
    acts = {"data": work.data, "train": work.fit, "test": work.score, "show": work.show}
    stored = all((asked.out / part).exists() for part in ("train", "valid"))
    for stage in asked.stages:
        if not (stage == "data" and stored):
            timed(work, stage, acts[stage])


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """What comes before and what behind `--`."""
    at = words.index("--")
    return words[:at], words[at + 1 :]


if __name__ == "__main__":
    main()
