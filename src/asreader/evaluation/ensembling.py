"""prediction files of many readers -> the predictions of one ensemble: section 5.2 of the paper, on saved files only.

Files are aligned by question and candidate, whatever order each has them in; the first file's order is the data's own
and decides ties, never the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.predictions import Prediction, real


@dataclass(frozen=True)
class Aligned:
    """What M readers said of the same questions: probabilities padded with -1, which is below anything said."""

    questions: tuple[Prediction, ...]  # as the first reader has them: ids, answers, candidates in order
    probabilities: NDArray[np.float32]  # readers by questions by candidates
    answers: NDArray[np.intp]  # the answer's place among the candidates, or -1

    def accuracy(self, probabilities: NDArray[np.floating]) -> float:
        """The share of answered questions whose most probable candidate, the first of equals, is the answer."""
        known = np.array([question.answer is not None for question in self.questions])
        if not known.any():
            raise InputError("there is nothing to choose by: no question has a known answer")
        return float((probabilities.argmax(axis=-1) == self.answers)[known].mean())

    def accuracies(self) -> NDArray[np.float64]:
        """Of each reader alone."""
        return np.array([self.accuracy(own) for own in self.probabilities])

    def averaged(self, members: Sequence[int]) -> NDArray[np.float64]:
        """The mean of some readers' probabilities, padding below all."""
        means: NDArray[np.float64] = self.probabilities[list(members)].mean(axis=0, dtype=np.float64)
        return means

    def predictions(self, members: Sequence[int]) -> list[Prediction]:
        """What the ensemble of these readers says."""
        means = self.averaged(members)
        return [
            Prediction(
                question.id, question.answer, question.candidates, np.maximum(own[: len(question.candidates)], 0)
            )
            for question, own in zip(self.questions, means, strict=True)
        ]


def aligned(paths: Sequence[Path]) -> Aligned:
    """Read the files of several readers and bring them into the order of the first."""
    first = predictions.read(paths[0])
    if not first:
        raise InputError(f"{paths[0]}: holds no predictions")
    widest = max(len(question.candidates) for question in first)
    everything = np.full((len(paths), len(first), widest), -1, dtype=np.float32)
    for number, path in enumerate(paths):
        said = first if number == 0 else predictions.read(path)
        _fill(everything[number], first, {prediction.id: prediction for prediction in said}, paths[0], path)
    never = np.ones((len(first), widest), dtype=np.bool_)  # padding, empty candidates, copies
    for row, question in enumerate(first):
        never[row, : len(question.candidates)] = ~real(question.candidates)
    everything[:, never] = -1
    answers = [_place(question) for question in first]
    return Aligned(tuple(first), everything, np.array(answers))


def _fill(
    room: NDArray[np.float32], first: Sequence[Prediction], said: dict[str, Prediction], origin: Path, path: Path
) -> None:
    """One reader's probabilities in the first file's order; an InputError names the question that does not fit."""
    for row, question in enumerate(first):
        own = said.get(question.id)
        if own is None:
            raise InputError(f"{path}: the question {question.id!r} of {origin} is missing; use files of the same data")
        if own.candidates == question.candidates:
            values = own.probabilities
        elif sorted(own.candidates) == sorted(question.candidates):
            values = own.probabilities[_order(own.candidates, question.candidates)]
        else:
            raise InputError(f"{path}: the question {question.id!r} has other candidates than in {origin}")
        if own.answer != question.answer:
            raise InputError(f"{path}: the question {question.id!r} has another answer than in {origin}")
        room[row, : len(values)] = values
    if len(said) != len(first):
        other = next(iter(said.keys() - {question.id for question in first}))
        raise InputError(f"{path}: the question {other!r} is not in {origin}; use files of the same data")


def _order(own: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where each wanted candidate stands; copies of one keep their order."""
    places: dict[str, list[int]] = {}
    for place, candidate in enumerate(own):
        places.setdefault(candidate, []).append(place)
    return [places[candidate].pop(0) for candidate in wanted]


def _place(question: Prediction) -> int:
    if question.answer is None or not question.answer.strip() or question.answer not in question.candidates:
        return -1
    return question.candidates.index(question.answer)


def best_share(valid: Aligned, top: float) -> list[int]:
    """*Average ensemble*: the best part of all readers by validation accuracy; of equals the first named."""
    ranked = _ranked(valid)
    return ranked[: max(1, round(top * len(ranked)))]


def greedy(valid: Aligned) -> list[int]:
    """*Greedy ensemble*: the best reader, then each next best once, kept if validation accuracy improves."""
    chosen: list[int] = []
    total = np.zeros(valid.probabilities.shape[1:])
    best = -1.0
    for reader in _ranked(valid):
        candidate = total + valid.probabilities[reader]
        accuracy = valid.accuracy(candidate)  # a sum ranks candidates as a mean does
        if accuracy > best:
            chosen.append(reader)
            total, best = candidate, accuracy
    return chosen


def _ranked(valid: Aligned) -> list[int]:
    return [int(reader) for reader in np.argsort(-valid.accuracies(), kind="stable")]
