"""prediction files, DATA -> Systems: the predictions of readers and the facts of the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asreader.data.dataset import load_store
from asreader.data.example import Example
from asreader.data.store import Store
from asreader.data.vocabulary import Vocabulary
from asreader.errors import InputError
from asreader.evaluation import ensembles
from asreader.evaluation.breakdowns import slices
from asreader.evaluation.breakdowns.slices import CorrectAnswers, QuestionFacts
from asreader.evaluation.ensembles import AlignedPredictions
from asreader.evaluation.predictions import Prediction
from asreader.evaluation.result_table import find_prediction_files
from asreader.runs.run_search import load_vocabulary, locate_run

NO_CANDIDATE = -1


@dataclass(frozen=True)
class SystemSource:
    """The predictions of a system (a prediction file, a run or a folder of runs) and the data they belong to."""

    predictions: Path
    data: Path
    name: str = ""


def parse_source(text: str, data: Path) -> SystemSource:
    """[NAME=]PRED[:DATA] -> SystemSource, with `data` as the default; paths may contain = and :."""
    name, equals, rest = text.partition("=")
    if not equals or Path(text.rpartition(":")[0] or text).exists() or Path(text).exists():
        name, rest = "", text
    before, colon, after = rest.rpartition(":")
    if not colon or Path(rest).exists():
        before, after = rest, ""
    if not before:
        raise InputError(f"--also {text}: names no predictions; write NAME=PRED or NAME=PRED:DATA")
    return SystemSource(Path(before), Path(after) if after else data, name)


@dataclass(frozen=True, eq=False)
class ChosenCandidates:
    """Index and probability of the chosen candidate of each question; NO_CANDIDATE if there are no candidates."""

    indices: NDArray[np.intp]
    confidence: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class System:
    """One run, or several runs that are averaged, on one data set; every question has a known answer."""

    name: str
    runs: tuple[str, ...]
    aligned: AlignedPredictions
    questions: QuestionFacts  # in the order of `aligned`
    vocabulary: Vocabulary | None = None

    @cached_property
    def run_choices(self) -> ChosenCandidates:
        """The choices of each run: runs by questions."""
        return _choose_candidates(self.aligned.probabilities)

    @cached_property
    def average_choices(self) -> ChosenCandidates:
        """The choices of the average of the runs."""
        return _choose_candidates(self.aligned.probabilities.mean(axis=0, dtype=np.float64).astype(np.float32))

    @cached_property
    def correct(self) -> CorrectAnswers:
        """Runs by questions: whether the run's choice is the answer."""
        return np.asarray((self.run_choices.indices == self.aligned.answers) & (self.aligned.answers != NO_CANDIDATE))

    @cached_property
    def chosen_predictions(self) -> list[Prediction]:
        """The predictions of all runs, concatenated, with the chosen candidate only: the others are not needed."""
        return [
            _keep_choice(question, index, confidence)
            for run, run_confidence in zip(self.run_choices.indices, self.run_choices.confidence, strict=True)
            for question, index, confidence in zip(
                self.aligned.questions, run.tolist(), run_confidence.tolist(), strict=True
            )
        ]


def _keep_choice(question: Prediction, index: int, confidence: float) -> Prediction:
    """A prediction whose only candidate is the chosen one."""
    candidates = () if index == NO_CANDIDATE else (question.candidates[index],)
    return Prediction(question.id, question.answer, candidates, np.full(len(candidates), confidence, dtype=np.float32))


def _choose_candidates(probabilities: NDArray[np.float32]) -> ChosenCandidates:
    """The first most probable candidate on the last axis; padding is negative."""
    highest = probabilities.max(axis=-1)
    return ChosenCandidates(np.where(highest < 0, NO_CANDIDATE, probabilities.argmax(axis=-1)), np.maximum(highest, 0))


def load_systems(
    sources: Sequence[SystemSource], *, split: str | None = None, format: str | None = None, skip_bad: bool = False
) -> list[System]:
    """Load every system; systems on the same questions share their QuestionFacts."""
    loader = _SystemLoader(split, format, skip_bad)
    systems = [loader.load_system(source) for source in sources]
    if len({system.name for system in systems}) < len(systems):
        names = ", ".join(system.name for system in systems)
        raise InputError(f"two systems have the same name ({names}); name them, as in --also NAME=PRED:DATA")
    return systems


class _SystemLoader:
    """Loads systems and caches the data they share."""

    def __init__(self, split: str | None, format: str | None, skip_bad: bool) -> None:
        self.split = split
        self.format = format
        self.skip_bad = skip_bad
        self.stores: dict[Path, Store] = {}
        self.facts: dict[tuple[Path, tuple[str, ...]], QuestionFacts] = {}

    def load_system(self, source: SystemSource) -> System:
        """Predictions and their questions, both in the order of the first prediction file."""
        files = find_prediction_files(source.predictions, self.split or "valid")
        aligned = ensembles.align_predictions(files)
        if not aligned.has_answer.any():
            raise InputError(f"{files[0]}: there is nothing to analyse: no question has a known answer")
        aligned = aligned.select_questions(np.flatnonzero(aligned.has_answer))
        return System(
            name=source.name or derive_name(source.predictions),
            runs=tuple(map(derive_name, files)),
            aligned=aligned,
            questions=self._load_facts(source.data, aligned.questions, files[0]),
            vocabulary=_load_shared_vocabulary(files),
        )

    def _load_facts(self, data: Path, predictions: Sequence[Prediction], origin: Path) -> QuestionFacts:
        """The facts of the predicted questions."""
        key = data, tuple(prediction.id for prediction in predictions)
        if key not in self.facts:
            examples = self._load_examples(data, predictions, origin)
            self.facts[key] = slices.describe_questions(derive_name(data), examples)
        for prediction, answer in zip(predictions, self.facts[key].answers, strict=True):
            _check_answer(prediction, answer, data, origin)
        return self.facts[key]

    def _load_examples(self, data: Path, predictions: Sequence[Prediction], origin: Path) -> list[Example]:
        if data not in self.stores:
            self.stores[data] = load_store(data, split=self.split, format=self.format, skip_bad=self.skip_bad)
        store = self.stores[data]
        indices = {id: index for index, id in enumerate(store.ids)}
        for prediction in predictions:
            if prediction.id not in indices:
                raise InputError(f"{origin}: the question {prediction.id!r} is not in {data}; name the data it is of")
        examples = [store.decode_example(indices[prediction.id]) for prediction in predictions]
        for prediction, example in zip(predictions, examples, strict=True):
            _check_answer(prediction, example.answer, data, origin)
        return examples


def _check_answer(prediction: Prediction, answer: str | None, data: Path, origin: Path) -> None:
    if prediction.answer != answer:
        raise InputError(f"{origin}: the question {prediction.id!r} has another answer than in {data}")


def derive_name(path: Path) -> str:
    """The name of a folder or of data without suffixes; for a prediction file of a run, the name of the run."""
    resolved = path.resolve()
    if resolved.is_file():
        resolved = locate_run(resolved) or resolved
    return resolved.name if resolved.is_dir() else resolved.name.split(".")[0] or resolved.name


def _load_shared_vocabulary(files: Sequence[Path]) -> Vocabulary | None:
    """The vocabulary of the runs that the files belong to; None unless all have the same one."""
    runs = [locate_run(file) for file in files]
    if None in runs:
        return None
    vocabularies = [load_vocabulary(run) for run in runs if run is not None]
    return vocabularies[0] if all(one is not None and one == vocabularies[0] for one in vocabularies) else None
