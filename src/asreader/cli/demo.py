"""seed -> a complete small experiment in under three minutes: stories, training, evaluation, ensemble, attention."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

import asreader
from asreader.attention import terminal_view
from asreader.baselines import predict_answers
from asreader.cloze.stories.generator import generate_stories
from asreader.data.dataset import read_examples
from asreader.data.example import Example
from asreader.data.formats import jsonl
from asreader.data.store import encode_examples
from asreader.evaluation import ensembles, metrics
from asreader.inference.answer import Answer
from asreader.inference.reader import Reader
from asreader.runs.file_names import CONFIG_FILE
from asreader.runs.folder import Run
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.system import atomic_files
from asreader.system.progress import show_spinner, track_progress
from asreader.training import loop

TRAIN_STORIES, VALID_STORIES = 12_000, 1_000
SEED = 7
PROSE_QUESTIONS = Path(asreader.__file__).parent / "cloze" / "stories" / "questions.jsonl"
UFO = "A UFO was observed above our city in January and again in March."
UFO_QUESTION = "An observer has spotted a UFO in XXXXX."
MONTHS = ("January", "February", "March", "April", "May")


def run_demo(out: Path) -> None:
    """Run the demonstration in `out`; a second call resumes the runs that are there."""
    console = Console(highlight=False)
    torch.set_num_threads(1)  # a reader this small trains faster on one thread than on two
    console.rule("1  stories with questions", align="left")
    train, valid = (write_stories(out / f"{name}.jsonl", count, seed) for name, count, seed in _SPLITS)
    console.print(f"{TRAIN_STORIES:,} stories for training, {VALID_STORIES:,} others for validation: {train}, {valid}")
    _print_example(console, next(iter(generate_stories(1, SEED + 1))))

    console.rule("2  training", align="left")
    settings = build_settings(train, valid)
    with _train_second_reader(settings, out) as wait_for_second:
        run = loop.train_run(settings, out / "run", resume=True)
        reader = Reader.load(run.folder, "cpu")

        console.rule("3  evaluation", align="left")
        console.print(_build_score_table(reader))

        console.rule("4  two readers together", align="left")
        console.print(_build_ensemble_table(run, wait_for_second()))

    console.rule("5  one right and one wrong answer, and the attention", align="left")
    for example, answer in _find_right_and_wrong(reader):
        console.print(Text(f"question: {' '.join(example.question)}   (correct answer: {example.answer})"))
        console.print(terminal_view.render_terminal(answer, top=4))
        console.print()

    console.rule("6  January or March?", align="left")
    console.print(compare_january_and_march(reader))

    console.rule("next steps", align="left")
    console.print(
        "Ask about a text of your own:\n\n"
        f"  asreader answer {run.folder} --document story.txt --question 'XXXXX gave the lantern to Marta.'\n\n"
        f"or train on your own questions: asreader train {run.folder / CONFIG_FILE} "
        "--set data.train=FILE --set data.valid=FILE --out runs/mine",
        soft_wrap=True,
    )


@contextmanager
def _train_second_reader(settings: Config, out: Path) -> Iterator[Callable[[], Run | None]]:
    """Train a reader with another seed in a second process; yields a function that waits for its run.

    The function returns None if there is no second core or training failed.
    """
    if (os.cpu_count() or 1) < 2:
        yield lambda: None
        return
    config = out / "second.toml"
    atomic_files.write_text(
        config, replace(settings, train=replace(settings.train, seed=settings.train.seed + 1)).toml()
    )
    command = [sys.executable, "-m", "asreader", "train", str(config), "--out", str(out / "second"), "--resume"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:

        def wait_for_run() -> Run | None:
            with show_spinner("the second reader"):
                return None if process.wait() else Run(out / "second")

        try:
            yield wait_for_run
        finally:
            process.terminate()  # it stops at a checkpoint and resumes the next time


def _build_ensemble_table(first: Run, second: Run | None) -> RenderableType:
    """The average of two readers on the validation stories."""
    if second is None:
        return Text(
            "No second reader: no second CPU core, or training failed. `asreader train --readers 2` trains two."
        )
    aligned = ensembles.align_predictions([run.predictions("valid") for run in (first, second)])
    names = (f"{first.folder.name}, seed 1", f"{second.folder.name}, seed 2", "the mean of their probabilities")
    table = Table(box=None, pad_edge=False)
    for column in ("", "accuracy", "95% interval"):
        table.add_column(column, justify="right" if column else "left")
    for name, members in zip(names, ([0], [1], [0, 1]), strict=True):
        scores = metrics.score_predictions(aligned.average_predictions(members))
        table.add_row(name, f"{scores.accuracy:.3f}", "{:.3f} to {:.3f}".format(*scores.interval))
    return table


_SPLITS = (("train", TRAIN_STORIES, SEED), ("valid", VALID_STORIES, SEED + 1))


def build_settings(train: Path, valid: Path) -> Config:
    """The settings of the demo."""
    return Config(
        data=DataSettings(train=str(train), valid=str(valid), unknown=50, anonymise=0.1),
        reader={"name": "attention_sum", "embedding": 64, "hidden": 64},
        train=TrainSettings(epochs=6, learning_rate=0.004, patience=3, device="cpu"),
    )


def write_stories(path: Path, count: int, seed: int) -> Path:
    """Write generated stories to a JSONL file."""
    with atomic_files.atomic_write(path) as scratch, scratch.open("w", encoding="utf-8") as file:
        for example in track_progress(generate_stories(count, seed), f"writing {path.name}", count):
            file.write(jsonl.format_example(example))
    return path


def _print_example(console: Console, example: Example) -> None:
    console.print(Text(" ".join(example.words), style="dim"))
    console.print(Text(f"question: {' '.join(example.question)}\ncandidates: {', '.join(example.candidates)}"))


def _build_score_table(reader: Reader) -> RenderableType:
    """The reader and two baselines on three kinds of questions."""
    prose = [example for _, example in read_examples(PROSE_QUESTIONS)]
    kinds = {
        f"{VALID_STORIES:,} new stories": list(generate_stories(VALID_STORIES, SEED + 1)),
        "500 stories of unseen names": list(generate_stories(500, SEED + 2, unseen=True)),
        f"{len(prose)} questions on prose": prose,
    }
    table = Table(box=None, pad_edge=False)
    for column in ("", "reader", "95% interval", "maximum frequency", "chance"):
        table.add_column(column, justify="left" if not column else "right")
    for name, examples in kinds.items():
        scores = reader.evaluate(encode_examples(examples)).scores
        low, high = scores.interval
        baselines = [f"{measure_baseline(baseline, examples):.3f}" for baseline in ("maximum_frequency", "uniform")]
        table.add_row(name, f"{scores.accuracy:.3f}", f"{low:.3f} to {high:.3f}", *baselines)
    return table


def _find_right_and_wrong(reader: Reader) -> list[tuple[Example, Answer]]:
    """The first validation story answered correctly, and the first answered wrongly."""
    first: dict[bool, tuple[Example, Answer]] = {}
    for example in generate_stories(VALID_STORIES, SEED + 1):
        answer = reader.answer(" ".join(example.words), " ".join(example.question), example.candidates)
        first.setdefault(answer.answer == example.answer, (example, answer))
        if len(first) == 2:
            break
    return [first[is_right] for is_right in sorted(first, reverse=True)]


def measure_baseline(name: str, examples: Iterable[Example]) -> float:
    """The accuracy of a baseline."""
    return metrics.score_predictions(predict_answers(name, examples), metrics.share_ties).accuracy


def compare_january_and_march(reader: Reader) -> RenderableType:
    """Section 4.1 of the paper: the same attention used for a pointer sum and for a blend of word vectors.

    The blend needs vectors that encode the calendar: here months lie on a circle in the order of the year.
    """
    answer = reader.answer(UFO, UFO_QUESTION, MONTHS)
    even = {"January": 0.5, "March": 0.5}
    rows = {
        "this reader, attention summed": {choice.word: choice.probability for choice in answer.candidates},
        "even attention, summed": even,
        "even attention, vectors blended": blend_months(even),
    }
    table = Table(box=None, pad_edge=False)
    for column in ("", *MONTHS):
        table.add_column(column, justify="right" if column else "left")
    for name, probabilities in rows.items():
        best = max(probabilities.values())
        values = [probabilities.get(month, 0.0) for month in MONTHS]
        table.add_row(name, *(Text(f"{value:.0%}", style="bold" if value == best else "") for value in values))
    grid = Table.grid()
    closing = "A sum of attention can only answer words of the text; a blend may fall between them, on February."
    for row in (Text(f"{UFO} {UFO_QUESTION}", style="dim"), table, Text(closing)):
        grid.add_row(row)
    return grid


def blend_months(attention: dict[str, float]) -> dict[str, float]:
    """P(month) proportional to exp(r . e(month)), where r is the attention-weighted mean of the months' vectors."""
    vector = {month: (math.cos(n * math.pi / 6), math.sin(n * math.pi / 6)) for n, month in enumerate(MONTHS)}
    mass = sum(attention.get(month, 0.0) for month in MONTHS) or 1.0
    r = [sum(attention.get(month, 0.0) / mass * vector[month][axis] for month in MONTHS) for axis in (0, 1)]
    # Longer vectors sharpen the preference; a factor of eight is about what training gives.
    weights = {month: math.exp(8 * (r[0] * x + r[1] * y)) for month, (x, y) in vector.items()}
    return {month: weight / sum(weights.values()) for month, weight in weights.items()}
