"""raw books -> the bundled reader in src/asreader/pretrained: make bundle DATA=...

    python reproduce/bundle.py WORK --data DATA [--stages data train bundle]

DATA holds books/cbt_train* and books/extra*, cbt/cbt_valid.txt*, cbt/cbtest_NE_valid* and lambada/*. Stages are `data`
(questions and stores), `train` (five readers together; the best on the official validation file is selected) and
`bundle` (weights in float16, calibration, card). Existing files are not made again, so `train` may run on another
machine with a GPU. The weights carry the hash of their settings.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import torch
from cbt import KEPT_FRACTION as OFFICIAL_FRACTION
from cbt import LEAKED_BOOKS, ROOT, run_asreader
from recipes import read_accuracies

from asreader.cli import demo
from asreader.data.dataset import load_store
from asreader.data.discovery import find_files
from asreader.data.formats import jsonl
from asreader.evaluation import calibration
from asreader.inference.reader import Reader
from asreader.inference.run_calibration import Calibrated, calibrate_run
from asreader.runs.folder import Run

PRETRAINED = ROOT / "src" / "asreader" / "pretrained"
STAGES = ("data", "train", "bundle")
READERS = 5
STORIES = 20_000
CALIBRATION_QUESTIONS = 1_000  # of each kind
TRAIN_FRACTION = {"ne": "1.0", "cn": "0.36"}  # two named entities to one common noun
ABOUT = """Trained on {questions:,} questions: named entities and, half as many, common nouns from {books} public-domain
books (`books.txt`), and {stories:,} short stories of `asreader.cloze.stories.generator`. The books of the validation
and test sets of the Children's Book Test were left out, and two training books that repeat parts of them. `config.toml`
has the training settings. These are the weights of step {step:,} of {steps:,}, the best of {readers} readers on the
first row of the table, which is therefore a little optimistic.

It is meant for narrative prose in English: who or what a sentence refers to, given some hundred words before it. Names
need not be known: it has vectors for {words:,} words and treats all others as unknown words. It is not meant for news,
dialogue without prose, other languages, or questions that need arithmetic or world knowledge. It can only answer with
words of the text. Its books are old, and it reproduces their biases.
"""


class BundleBuild:
    """Input and output paths of a build, and its stages."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder = folder
        self.data = data
        self.runs = folder / "runs"
        self.train = folder / "train"
        self.valid = folder / "valid"
        self.calibration = folder / "calibration.jsonl"

    def find_inputs(self, pattern: str) -> list[Path]:
        paths = sorted(self.data.glob(pattern))
        if not paths:
            raise SystemExit(f"{self.data}: there is no {pattern}")
        return paths

    def make_data(self) -> None:
        """Make questions of both kinds and stories; encode them and the official validation file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        held_out = self.find_inputs("cbt/cbt_valid.txt*")[0]
        books = [*self.find_inputs("books/cbt_train*"), *self.find_inputs("books/extra*")]
        leaks = [argument for pattern in LEAKED_BOOKS for argument in ("--without", pattern)]
        questions = []
        for kind, fraction in TRAIN_FRACTION.items():
            for out, texts, options in (
                (self.folder / f"{kind}.txt", books, ["--keep", fraction, "--exclude", held_out, *leaks]),
                (self.folder / f"{kind}-held-out.txt", [held_out], ["--keep", OFFICIAL_FRACTION[kind]]),
            ):
                if not out.exists():
                    run_asreader("make", "books", *texts, "--type", kind, *options, "--out", out)
            questions.append(self.folder / f"{kind}.txt")
        if not self.train.exists():
            stories = demo.write_stories(self.folder / "stories.jsonl", STORIES, seed=101)
            run_asreader("prepare", *questions, stories, "--out", self.train)
        if not self.valid.exists():
            run_asreader("prepare", self.find_inputs("cbt/cbtest_NE_valid*")[0], "--out", self.valid)
        self.write_calibration_questions()

    def write_calibration_questions(self) -> None:
        """Sample questions without candidates, as users ask them: from the validation books and from modern prose."""
        generator = random.Random(1)
        chosen = []
        books = [(self.folder / f"{kind}-held-out.txt", None) for kind in TRAIN_FRACTION]
        for path, format in (*books, (self.find_inputs("lambada/*")[0], "lambada")):
            store = load_store(path, format=format)
            answerable = [number for number in range(len(store)) if store.answerable[number]]
            chosen += [store.decode_example(number) for number in generator.sample(answerable, CALIBRATION_QUESTIONS)]
        lines = (jsonl.format_example(replace(example, candidates=())) for example in chosen)
        self.calibration.write_text("".join(lines), encoding="utf-8")

    def train_readers(self) -> None:
        """Train the readers; continue a training that was stopped."""
        data = ("--set", f"data.train={self.train}", "--set", f"data.valid={self.valid}")
        resume = ("--resume",) if self.runs.exists() else ()
        config = ROOT / "configs" / "bundled.toml"
        run_asreader("train", config, *data, "--readers", READERS, "--out", self.runs, *resume)

    def write_bundle(self) -> None:
        """Export the best reader with its calibration, book list and card."""
        runs = [Run(path.parent) for path in sorted(self.runs.glob("seed-*/weights.safetensors"))]
        best = max(runs, key=lambda run: max(read_accuracies(run)))
        bundled = export_run(best)
        calibrated = calibrate_run(PRETRAINED, self.calibration, wanted=0.8, device="cpu")
        books = sorted(name for pattern in ("cbt_train*", "extra*") for name in self.list_books(pattern))
        (PRETRAINED / "books.txt").write_text("".join(f"{format_title(name)}\n" for name in books), encoding="utf-8")
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
            "LAMBADA's development passages that hold their answer; no candidates": (
                self.find_inputs("lambada/*")[0],
                True,
            ),
            "sixty questions on eight new stories, made to need inference (`asreader/cloze/stories`)": (
                demo.PROSE_QUESTIONS,
                False,
            ),
        }
        bundled.save_card(format_card(calibrated, about, checks))
        print((PRETRAINED / "card.md").read_text(encoding="utf-8"))

    def list_books(self, pattern: str) -> list[str]:
        """Names of the training books."""
        names = [member.stem for path in self.find_inputs(f"books/{pattern}") for member in find_files(path)]
        return [name for name in names if name not in LEAKED_BOOKS]


def format_title(name: str) -> str:
    """The file name of a book without its number."""
    return name.partition("_")[2].replace("_", " ")


def export_run(run: Run) -> Run:
    """Copy settings, vocabulary and float16 weights of a run into the package."""
    PRETRAINED.mkdir(exist_ok=True)
    bundled = Run(PRETRAINED)
    settings = run.load_config()
    data = replace(settings.data, train=Path(settings.data.train).name, valid=Path(settings.data.valid).name)
    bundled.save_config(replace(settings, data=data))
    run.load_vocabulary().save(PRETRAINED / "vocabulary.txt")
    (PRETRAINED / "environment.json").write_bytes((run.folder / "environment.json").read_bytes())
    settings_hash = sha256((PRETRAINED / "config.toml").read_bytes()).hexdigest()
    half = {name: weight.to(torch.float16) for name, weight in run.load_weights().items()}
    bundled.save_weights(half, {"config_sha256": settings_hash})
    return bundled


def format_card(calibrated: Calibrated, about: str, checks: dict[str, tuple[Path, bool]]) -> str:
    """The card: description, accuracies, calibration."""
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
        scores, error = evaluation.scores, calibration.measure_reliability(evaluation.predictions).error
        low, high = scores.interval
        row = (name, f"{scores.questions:,}", f"{scores.accuracy:.3f}", f"{low:.3f} to {high:.3f}", f"{error:.3f}")
        lines.append("| " + " | ".join((*row, f"{scores.unknown_words:.1%}")) + " |")
    errors = (
        f"expected calibration error there {calibrated.error_before:.3f} before, {calibrated.error_after:.3f} after"
    )
    lines.append(
        f"\nIts confidence was calibrated on {calibrated.questions:,} questions without candidates, a third each from\n"
        f"rows two to four (temperature {calibrated.calibration.temperature:.2f}; {errors}).\n"
        f"Answers below a confidence of {calibrated.calibration.threshold:.2f} are marked as not sure. The other\n"
        f"answers were {calibrated.coverage:.0%} of all, and {calibrated.accuracy or 0:.0%} of them right."
    )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    options = parser.parse_args()
    build = BundleBuild(options.work, options.data)
    run_stage = {"data": build.make_data, "train": build.train_readers, "bundle": build.write_bundle}
    for stage in options.stages:
        run_stage[stage]()


if __name__ == "__main__":
    main()
