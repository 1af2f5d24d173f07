"""prediction files, DATA -> Systems: what readers said beside what there is to know of the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asreader.data.example import Example
from asreader.data.loading import load_store
from asreader.data.store import Store
from asreader.data.vocabulary import Vocabulary
from asreader.errors import InputError
from asreader.evaluation import ensembles
from asreader.evaluation.breakdowns import slices
from asreader.evaluation.breakdowns.slices import Questions, Verdicts
from asreader.evaluation.ensembles import Aligned
from asreader.evaluation.predictions import Prediction
from asreader.evaluation.result_table import prediction_files

NONE = -1


@dataclass(frozen=True)
class Source:
    """Where a system's predictions lie (a prediction file, a run, a folder of runs) and the questions they are of."""

    predictions: Path
    data: Path
    name: str = ""


def source(text: str, data: Path) -> Source:
    """[NAME=]PRED[:DATA] -> Source, on `data` where it names none; a path may itself hold = and :."""
    given, equals, rest = text.partition("=")
    if not equals or Path(text.rpartition(":")[0] or text).exists() or Path(text).exists():
        given, rest = "", text
    before, colon, after = rest.rpartition(":")
    if not colon or Path(rest).exists():
        before, after = rest, ""
    if not before:
        raise InputError(f"--also {text}: names no predictions; write NAME=PRED or NAME=PRED:DATA")
    return Source(Path(before), Path(after) if after else data, given)


@dataclass(frozen=True, eq=False)
class Chosen:
    """The candidate chosen for each question, NONE where there is nothing to choose from, and its probability."""

    places: NDArray[np.intp]
    confidence: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class System:
    """One run, or several that are looked at together, on one data set; every question has a known answer."""

    name: str
    runs: tuple[str, ...]
    said: Aligned
    questions: Questions  # in the order of `said`
    vocabulary: Vocabulary | None = None

    @cached_property
    def alone(self) -> Chosen:
        """Runs by questions: what each run says."""
        return _chosen(self.said.probabilities)

    @cached_property
    def together(self) -> Chosen:
        """What the average of the runs says."""
        return _chosen(self.said.probabilities.mean(axis=0, dtype=np.float64).astype(np.float32))

    @cached_property
    def right(self) -> Verdicts:
        """Runs by questions: whether the answer is right."""
        return np.asarray((self.alone.places == self.said.answers) & (self.said.answers != NONE))

    @cached_property
    def answers(self) -> list[Prediction]:
        """What all runs say, one after another: the chosen candidates alone, since all else would only take time."""
        return [
            _only(question, place, sure)
            for places, confidence in zip(self.alone.places, self.alone.confidence, strict=True)
            for question, place, sure in zip(self.said.questions, places.tolist(), confidence.tolist(), strict=True)
        ]


def _only(question: Prediction, place: int, confidence: float) -> Prediction:
    """A prediction whose one candidate is the chosen one."""
    candidates = () if place == NONE else (question.candidates[place],)
    return Prediction(question.id, question.answer, candidates, np.full(len(candidates), confidence, dtype=np.float32))


def _chosen(probabilities: NDArray[np.float32]) -> Chosen:
    """The most probable of the candidates on the last axis, the first of equals; what does not count is below 0."""
    highest = probabilities.max(axis=-1)
    return Chosen(np.where(highest < 0, NONE, probabilities.argmax(axis=-1)), np.maximum(highest, 0))


def load(
    sources: Sequence[Source], *, split: str | None = None, format: str | None = None, skip_bad: bool = False
) -> list[System]:
    """Read every system; those on the same questions share what there is to know of them."""
    shelf = _Shelf(split, format, skip_bad)
    systems = [shelf.system(source) for source in sources]
    if len({system.name for system in systems}) < len(systems):
        names = ", ".join(system.name for system in systems)
        raise InputError(f"two systems have the same name ({names}); name them, as in --also NAME=PRED:DATA")
    return systems


class _Shelf:
    """Data that were read already."""

    def __init__(self, split: str | None, format: str | None, skip_bad: bool) -> None:
        self.split, self.format, self.skip_bad = split, format, skip_bad
        self.stores: dict[Path, Store] = {}
        self.known: dict[tuple[Path, tuple[str, ...]], Questions] = {}

    def system(self, source: Source) -> System:
        """Predictions beside their questions, both in the order of the first prediction file."""
        files = prediction_files(source.predictions, self.split or "valid")
        said = ensembles.aligned(files)
        if not said.known.any():
            raise InputError(f"{files[0]}: there is nothing to analyse: no question has a known answer")
        said = said.part(np.flatnonzero(said.known))
        asked = self.questions(source.data, said.questions, files[0])
        return System(source.name or name(source.predictions), tuple(map(name, files)), said, asked, _vocabulary(files))

    def questions(self, data: Path, said: Sequence[Prediction], origin: Path) -> Questions:
        """What there is to know of the questions that were answered."""
        key = data, tuple(prediction.id for prediction in said)
        if key not in self.known:
            self.known[key] = slices.questions(name(data), self._examples(data, said, origin))
        for prediction, answer in zip(said, self.known[key].answers, strict=True):
            _agree(prediction, answer, data, origin)
        return self.known[key]

    def _examples(self, data: Path, said: Sequence[Prediction], origin: Path) -> list[Example]:
        if data not in self.stores:
            self.stores[data] = load_store(data, split=self.split, format=self.format, skip_bad=self.skip_bad)
        store = self.stores[data]
        places = {id: number for number, id in enumerate(store.ids)}
        for prediction in said:
            if prediction.id not in places:
                raise InputError(f"{origin}: the question {prediction.id!r} is not in {data}; name the data it is of")
        examples = [store.example(places[prediction.id]) for prediction in said]
        for prediction, example in zip(said, examples, strict=True):
            _agree(prediction, example.answer, data, origin)
        return examples


def _agree(prediction: Prediction, answer: str | None, data: Path, origin: Path) -> None:
    if prediction.answer != answer:
        raise InputError(f"{origin}: the question {prediction.id!r} has another answer than in {data}")


def name(path: Path) -> str:
    """What to call a prediction file (its run if it lies in one), a folder or data: the name without endings."""
    resolved = path.resolve()
    if resolved.is_file() and resolved.parent.name == "predictions":
        resolved = resolved.parent.parent
    return resolved.name if resolved.is_dir() else resolved.name.split(".")[0] or resolved.name


def _vocabulary(files: Sequence[Path]) -> Vocabulary | None:
    """That of the runs the files lie in, if they all have the same."""
    folders = [file.resolve().parent for file in files]
    if any(folder.name != "predictions" for folder in folders):
        return None
    from asreader.runs.folder import Run  # brings torch along, which prediction files alone do not need

    runs = [Run(folder.parent) for folder in folders]
    found = [run.load_vocabulary() for run in runs if run.exists()]
    return found[0] if len(found) == len(files) and all(one == found[0] for one in found) else None
