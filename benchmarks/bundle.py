"""The reader that ships, from raw books to the files of src/asreader/pretrained: make bundle DATA=...

    python benchmarks/bundle.py WORK --data DATA [--stages data train bundle]

DATA holds books/cbt_train* and books/extra*, cbt/cbt_valid.txt*, cbt/cbtest_NE_valid* and lambada/*. Stages are `data`
(questions and stores), `train` (five readers side by side; the best on the official validation file is taken) and
`bundle` (weights in float16, calibration, card); what was done is not done again, so that a machine with a GPU may do
the second. The weights carry the hash of the settings that made them.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import torch
from cbt import KEEP as OFFICIAL
from cbt import LEAKS, ROOT, asreader
from recipes import curve

from asreader.cli import demo
from asreader.data.discovery import members
from asreader.data.formats import jsonl
from asreader.data.loading import load_store
from asreader.evaluation import calibration
from asreader.inference.reader import Reader
from asreader.inference.run_calibration import Calibrated, calibrate
from asreader.runs.folder import Run

PRETRAINED = ROOT / "src" / "asreader" / "pretrained"
STAGES = ("data", "train", "bundle")
READERS, STORIES, CALIBRATING = 5, 20_000, 1_000
KEEP = {"ne": "1.0", "cn": "0.36"}  # two named entities to one common noun
ABOUT = """Trained on {questions:,} questions: named entities and, half as many, common nouns from {books} public-domain
books (`books.txt`), and {stories:,} short stories of `asreader.cloze.stories.generator`. Left out were the books of the
Children's Book Test's validation and test sets, and two training books that repeat parts of them. Training and its
settings are in `config.toml`; these are the weights of step {step:,} of {steps:,}, the best of {readers} readers on the
first row of the table, which is therefore a little too good.

It is good for narrative prose in English: who or what a sentence of a story speaks of, given some hundred words before
it. Names need not be known: it has vectors for {words:,} words and treats all others alike. It is not made for news,
dialogue without prose, other languages, questions that take arithmetic or knowledge of the world, nor for words that do
not stand in the text: it can only point. Its books are old, and it shares their ways.
"""


class Work:
    """Where everything lies."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder, self.data = folder, data
        self.runs, self.train, self.valid = (folder / name for name in ("runs", "train", "valid"))
        self.calibration = folder / "calibration.jsonl"

    def given(self, pattern: str) -> list[Path]:
        found = sorted(self.data.glob(pattern))
        if not found:
            raise SystemExit(f"{self.data}: there is no {pattern}")
        return found

    def make_data(self) -> None:
        """Questions of both kinds and stories, the official validation file, questions to calibrate on."""
        self.folder.mkdir(parents=True, exist_ok=True)
        held_out = self.given("cbt/cbt_valid.txt*")[0]
        books = [*self.given("books/cbt_train*"), *self.given("books/extra*")]
        leaks = [word for pattern in LEAKS for word in ("--without", pattern)]
        made = []
        for kind, keep in KEEP.items():
            for out, texts, options in (
                (self.folder / f"{kind}.txt", books, ["--keep", keep, "--exclude", held_out, *leaks]),
                (self.folder / f"{kind}-held-out.txt", [held_out], ["--keep", OFFICIAL[kind]]),
            ):
                if not out.exists():
                    asreader("make", "books", *texts, "--type", kind, *options, "--out", out)
            made.append(self.folder / f"{kind}.txt")
        if not self.train.exists():
            stories = demo.write_stories(self.folder / "stories.jsonl", STORIES, seed=101)
            asreader("prepare", *made, stories, "--out", self.train)
        if not self.valid.exists():
            asreader("prepare", self.given("cbt/cbtest_NE_valid*")[0], "--out", self.valid)
        self.sample()

    def sample(self) -> None:
        """What people ask, without candidates: of the validation books, and of modern prose."""
        draw, chosen = random.Random(1), []
        books = [(self.folder / f"{kind}-held-out.txt", None) for kind in KEEP]
        for path, format in (*books, (self.given("lambada/*")[0], "lambada")):
            store = load_store(path, format=format)
            answerable = [number for number in range(len(store)) if store.answerable[number]]
            chosen += [store.example(number) for number in draw.sample(answerable, CALIBRATING)]
        lines = (jsonl.line(replace(example, candidates=())) for example in chosen)
        self.calibration.write_text("".join(lines), encoding="utf-8")

    def fit(self) -> None:
        """Five readers; a training that was stopped goes on."""
        data = ("--set", f"data.train={self.train}", "--set", f"data.valid={self.valid}")
        begun = ("--resume",) if self.runs.exists() else ()
        config = ROOT / "configs" / "bundled.toml"
        asreader("train", config, *data, "--readers", READERS, "--out", self.runs, *begun)

    def bundle(self) -> None:
        """The best of the readers, with all that belongs to it."""
        runs = [Run(path.parent) for path in sorted(self.runs.glob("seed-*/weights.safetensors"))]
        best = max(runs, key=lambda run: max(curve(run)))
        ships = shipped(best)
        found = calibrate(PRETRAINED, self.calibration, wanted=0.8, device="cpu")
        books = sorted(name for pattern in ("cbt_train*", "extra*") for name in self.books(pattern))
        (PRETRAINED / "books.txt").write_text("".join(f"{title(name)}\n" for name in books), encoding="utf-8")
        rows = map(json.loads, best.metrics.read_text(encoding="utf-8").splitlines())
        store, options = load_store(self.train, split="train"), best.load_config().train
        about = ABOUT.format(
            questions=len(store),
            steps=-(-int(store.answerable.sum()) // options.batch) * options.epochs,
            books=len(books),
            stories=STORIES,
            step=max(rows, key=lambda row: row.get("accuracy", 0))["step"],
            readers=len(list(self.runs.glob("seed-*"))),
            words=len(best.load_vocabulary().words),
        )
        checks = {
            "the official NE validation file of the Children's Book Test": (self.valid, False),
            "named entities of its five validation books, rebuilt": (self.folder / "ne-held-out.txt", False),
            "common nouns of the same, rebuilt": (self.folder / "cn-held-out.txt", False),
            "LAMBADA's development passages that hold their answer; no candidates": (self.given("lambada/*")[0], True),
            "sixty questions on eight new stories, made to need inference (`asreader/cloze/stories`)": (
                demo.PROSE_QUESTIONS,
                False,
            ),
        }
        ships.save_card(card(found, about, checks))
        print((PRETRAINED / "card.md").read_text(encoding="utf-8"))

    def books(self, pattern: str) -> list[str]:
        """Names of the books that were read."""
        names = [member.stem for path in self.given(f"books/{pattern}") for member in members(path)]
        return [name for name in names if name not in LEAKS]


def title(name: str) -> str:
    """The name of a book's file without its number."""
    return name.partition("_")[2].replace("_", " ")


def shipped(run: Run) -> Run:
    """The run's settings, vocabulary and halved weights, where the package has them."""
    PRETRAINED.mkdir(exist_ok=True)
    ships, settings = Run(PRETRAINED), run.load_config()
    named = replace(settings.data, train=Path(settings.data.train).name, valid=Path(settings.data.valid).name)
    ships.save_config(replace(settings, data=named))
    run.load_vocabulary().save(PRETRAINED / "vocabulary.txt")
    (PRETRAINED / "environment.json").write_bytes((run.folder / "environment.json").read_bytes())
    made_by = sha256((PRETRAINED / "config.toml").read_bytes()).hexdigest()
    half = {name: weight.to(torch.float16) for name, weight in run.load_weights().items()}
    ships.save_weights(half, {"config_sha256": made_by})
    return ships


def card(found: Calibrated, about: str, checks: dict[str, tuple[Path, bool]]) -> str:
    """What it is, how well it does, how far it can be trusted."""
    settings, megabytes = Run(PRETRAINED).load_config(), (PRETRAINED / "weights.safetensors").stat().st_size / 1e6
    sizes = ", ".join(f"{key} {value}" for key, value in settings.reader_options.items())
    lines = [f"# The bundled reader\n\nAn Attention Sum Reader ({sizes}), {megabytes:.1f} MB of weights.\n", about]
    heads = ("on", "questions", "accuracy", "95% interval", "calibration error", "unknown words")
    lines.append("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    reader = Reader.load(PRETRAINED, "cpu")
    for name, (data, answerable) in checks.items():
        store = load_store(data, format="lambada" if answerable else None)
        evaluation = reader.evaluate(store)
        evaluation = evaluation.answerable(store) if answerable else evaluation
        scores, error = evaluation.scores, calibration.calibration(evaluation.predictions).error
        low, high = scores.interval
        row = (name, f"{scores.questions:,}", f"{scores.accuracy:.3f}", f"{low:.3f} to {high:.3f}", f"{error:.3f}")
        lines.append("| " + " | ".join((*row, f"{scores.unknown_words:.1%}")) + " |")
    errors = f"expected calibration error there {found.error_before:.3f} before, {found.error_after:.3f} after"
    lines.append(
        f"\nIts confidence was calibrated on {found.questions:,} questions without candidates, a third each from\n"
        f"rows two to four (temperature {found.calibration.temperature:.2f}; {errors}).\n"
        f"Below a confidence of {found.calibration.threshold:.2f} it says that it is not sure. The rest of these\n"
        f"answers were {found.coverage:.0%} of all, and {found.accuracy or 0:.0%} of them right."
    )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    given = parser.parse_args()
    work = Work(given.work, given.data)
    for stage in given.stages:
        {"data": work.make_data, "train": work.fit, "bundle": work.bundle}[stage]()


if __name__ == "__main__":
    main()
