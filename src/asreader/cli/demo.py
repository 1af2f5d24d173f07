"""seed -> a whole small experiment in under three minutes: make stories, train, evaluate, ensemble, explain."""

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
from asreader.baselines import predict
from asreader.cloze.stories.generator import stories
from asreader.data.example import Example
from asreader.data.formats import jsonl
from asreader.data.reading import read
from asreader.data.store import encode
from asreader.evaluation import ensembles, metrics
from asreader.inference.answer import Answer
from asreader.inference.reader import Reader
from asreader.runs.folder import Run
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.system import atomic_files
from asreader.system.progress import waiting, watched
from asreader.training import loop

TRAIN, VALID = 12_000, 1_000
SEED = 7
WRITTEN = Path(asreader.__file__).parent / "cloze" / "stories" / "questions.jsonl"
UFO = "A UFO was observed above our city in January and again in March."
OBSERVER = "An observer has spotted a UFO in XXXXX."
MONTHS = ("January", "February", "March", "April", "May")


def demo(out: Path) -> None:
    """Run the demonstration; its data and run stay in `out`. A second time it goes on with the run that is there."""
    console = Console(highlight=False)
    torch.set_num_threads(1)  # the steps of so small a reader are slower on two threads than on one
    console.rule("1  stories with questions", align="left")
    train, valid = (write_stories(out / f"{name}.jsonl", count, seed) for name, count, seed in _PARTS)
    console.print(f"{TRAIN:,} stories to learn from, {VALID:,} others to be tested on: {train}, {valid}")
    _show_example(console, next(iter(stories(1, SEED + 1))))

    console.rule("2  training", align="left")
    chosen = settings(train, valid)
    with _second_reader(chosen, out) as second:
        run = loop.train(chosen, out / "run", resume=True)
        reader = Reader.load(run.folder, "cpu")

        console.rule("3  evaluation", align="left")
        console.print(_scores(reader))

        console.rule("4  two readers together", align="left")
        console.print(_together(run, second))

    console.rule("5  one question it got right and one it got wrong, and where it looked", align="left")
    for example, answer in _right_and_wrong(reader):
        console.print(Text(f"question: {' '.join(example.question)}   (right: {example.answer})"))
        console.print(terminal_view.render_terminal(answer, top=4))
        console.print()

    console.rule("6  January or March?", align="left")
    console.print(january_or_march(reader))

    console.rule("what next", align="left")
    console.print(
        "Ask it about a text of your own:\n\n"
        f"  asreader answer {run.folder} --document story.txt --question 'XXXXX gave the lantern to Marta.'\n\n"
        f"or train on your own questions: asreader train {run.folder}/config.toml "
        "--set data.train=FILE --set data.valid=FILE --out runs/mine",
        soft_wrap=True,
    )


@contextmanager
def _second_reader(chosen: Config, out: Path) -> Iterator[Callable[[], Run | None]]:
    """Train one with another seed beside the first, on another core; what is yielded waits for it, if there is one."""
    if (os.cpu_count() or 1) < 2:
        yield lambda: None
        return
    config = out / "second.toml"
    atomic_files.write_text(config, replace(chosen, train=replace(chosen.train, seed=chosen.train.seed + 1)).toml())
    command = [sys.executable, "-m", "asreader", "train", str(config), "--out", str(out / "second"), "--resume"]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=alone, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:

        def finished() -> Run | None:
            with waiting("the second reader"):
                return None if process.wait() else Run(out / "second")

        try:
            yield finished
        finally:
            process.terminate()  # it stops as after Ctrl-C, and goes on the next time


def _together(run: Run, second: Callable[[], Run | None]) -> RenderableType:
    """The average of two readers, on the validation stories."""
    other = second()
    if other is None:
        return Text("There was no second core, or no luck, for another one: `asreader train --readers 2` trains two.")
    said = ensembles.aligned([each.predictions("valid") for each in (run, other)])
    names = (f"{run.folder.name}, seed 1", f"{other.folder.name}, seed 2", "the mean of their probabilities")
    table = Table(box=None, pad_edge=False)
    for column in ("", "accuracy", "95% interval"):
        table.add_column(column, justify="right" if column else "left")
    for name, members in zip(names, ([0], [1], [0, 1]), strict=True):
        found = metrics.scores(said.predictions(members))
        table.add_row(name, f"{found.accuracy:.3f}", "{:.3f} to {:.3f}".format(*found.interval))
    return table


_PARTS = (("train", TRAIN, SEED), ("valid", VALID, SEED + 1))


def settings(train: Path, valid: Path) -> Config:
    """The demo's settings."""
    return Config(
        data=DataSettings(train=str(train), valid=str(valid), unknown=50, anonymise=0.1),
        reader={"name": "attention_sum", "embedding": 64, "hidden": 64},
        train=TrainSettings(epochs=6, learning_rate=0.004, patience=3, device="cpu"),
    )


def write_stories(path: Path, count: int, seed: int) -> Path:
    """Generated stories as a JSONL file."""
    with atomic_files.replacing(path) as scratch, scratch.open("w", encoding="utf-8") as file:
        for example in watched(stories(count, seed), f"writing {path.name}", count):
            file.write(jsonl.line(example))
    return path


def _show_example(console: Console, example: Example) -> None:
    console.print(Text(" ".join(example.words), style="dim"))
    console.print(Text(f"question: {' '.join(example.question)}\ncandidates: {', '.join(example.candidates)}"))


def _scores(reader: Reader) -> RenderableType:
    """The reader beside the strongest rule that learns nothing, on three kinds of questions."""
    written = [example for _, example in read(WRITTEN)]
    kinds = {
        f"{VALID:,} new stories": list(stories(VALID, SEED + 1)),
        "500 stories of unseen names": list(stories(500, SEED + 2, unseen=True)),
        f"{len(written)} questions on prose": written,
    }
    table = Table(box=None, pad_edge=False)
    for column in ("", "reader", "95% interval", "maximum frequency", "chance"):
        table.add_column(column, justify="left" if not column else "right")
    for name, examples in kinds.items():
        found = reader.evaluate(encode(examples)).scores
        low, high = found.interval
        rules = [f"{baseline(rule, examples):.3f}" for rule in ("maximum_frequency", "uniform")]
        table.add_row(name, f"{found.accuracy:.3f}", f"{low:.3f} to {high:.3f}", *rules)
    return table


def _right_and_wrong(reader: Reader) -> list[tuple[Example, Answer]]:
    """The first validation story that was answered right, and the first that was not."""
    found: dict[bool, tuple[Example, Answer]] = {}
    for example in stories(VALID, SEED + 1):
        answer = reader.answer(" ".join(example.words), " ".join(example.question), example.candidates)
        found.setdefault(answer.answer == example.answer, (example, answer))
        if len(found) == 2:
            break
    return [found[kind] for kind in sorted(found, reverse=True)]


def baseline(name: str, examples: Iterable[Example]) -> float:
    """Accuracy of a rule that learns nothing."""
    return metrics.scores(predict(name, examples), metrics.shared).accuracy


def january_or_march(reader: Reader) -> RenderableType:
    """Section 4.1 of the paper: an attention used for a pointer sum, and the same used to blend word vectors.

    The blend needs vectors that know the calendar: here months lie on a circle in the order of the year.
    """
    answer = reader.answer(UFO, OBSERVER, MONTHS)
    even = {"January": 0.5, "March": 0.5}
    rows = {
        "this reader, attention summed": {choice.word: choice.probability for choice in answer.candidates},
        "even attention, summed": even,
        "even attention, vectors blended": blended(even),
    }
    table = Table(box=None, pad_edge=False)
    for column in ("", *MONTHS):
        table.add_column(column, justify="right" if column else "left")
    for name, shares in rows.items():
        best = max(shares.values())
        cells = [(shares.get(month, 0.0), shares.get(month, 0.0) == best) for month in MONTHS]
        table.add_row(name, *(Text(f"{share:.0%}", style="bold" if bold else "") for share, bold in cells))
    grid = Table.grid()
    closing = "A sum of attention can only answer what the text says; a blend may fall between, on February."
    for row in (Text(f"{UFO} {OBSERVER}", style="dim"), table, Text(closing)):
        grid.add_row(row)
    return grid


def blended(attention: dict[str, float]) -> dict[str, float]:
    """P(month) proportional to exp(r . e(month)), r the blend of the vectors of the months that are attended to."""
    vector = {month: (math.cos(n * math.pi / 6), math.sin(n * math.pi / 6)) for n, month in enumerate(MONTHS)}
    mass = sum(attention.get(month, 0.0) for month in MONTHS) or 1.0
    r = [sum(attention.get(month, 0.0) / mass * vector[month][axis] for month in MONTHS) for axis in (0, 1)]
    # Longer vectors make the same preference clearer; eight is about what training gives.
    weights = {month: math.exp(8 * (r[0] * x + r[1] * y)) for month, (x, y) in vector.items()}
    return {month: weight / sum(weights.values()) for month, weight in weights.items()}
