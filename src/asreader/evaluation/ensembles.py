"""prediction files of many readers -> the predictions of one ensemble (section 5.2 of the paper).

Files are aligned by question and candidate. The order of the first file breaks ties, independently of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asreader.errors import InputError
from asreader.evaluation.metrics import Scores, score_predictions
from asreader.evaluation.predictions import (
    Prediction,
    PredictionLine,
    iterate_predictions,
    mask_distinct_candidates,
    read_predictions,
)

FOLDS = 5
"""Folds of cross-validation. Each is a block of consecutive questions, because neighbours may share a document."""
TOLERANCE = 1e-5
"""Largest distance of the fitted weights from the maximum mean log likelihood."""
MAX_ITERATIONS = 5000
MIN_WEIGHT = 0.1
"""Fitted weights below MIN_WEIGHT / questions become 0; one answer that only this reader knows gives 1 / questions."""


@dataclass(frozen=True, eq=False)
class AlignedPredictions:
    """Predictions of several readers for the same questions; padding is -1, below every probability."""

    questions: tuple[Prediction, ...]  # those of the first reader: ids, answers, order of the candidates
    probabilities: NDArray[np.float32]  # readers by questions by candidates
    answers: NDArray[np.intp]  # index of the answer among the candidates, or -1
    has_answer: NDArray[np.bool_]  # whether the answer is known

    def mark_correct(self, probabilities: NDArray[np.floating], top: int = 1) -> NDArray[np.bool_]:
        """For each question with a known answer: whether it is among the `top` most probable; ties keep their order."""
        if not self.has_answer.any():
            raise InputError("there is nothing to choose by: no question has a known answer")
        if top == 1:
            first: NDArray[np.bool_] = (probabilities.argmax(axis=-1) == self.answers)[self.has_answer]
            return first
        of_answer = np.take_along_axis(probabilities, np.maximum(self.answers, 0)[:, None], axis=-1)
        before = np.arange(probabilities.shape[-1]) < self.answers[:, None]
        ahead = ((probabilities > of_answer) | ((probabilities == of_answer) & before)).sum(axis=-1)
        among: NDArray[np.bool_] = ((ahead < top) & (self.answers >= 0))[self.has_answer]
        return among

    def compute_accuracy(self, probabilities: NDArray[np.floating]) -> float:
        """The fraction of questions with a known answer whose first most probable candidate is the answer."""
        return float(self.mark_correct(probabilities).mean())

    def mark_correct_by_reader(self) -> NDArray[np.bool_]:
        """Readers by questions with a known answer: whether each single reader is correct."""
        return np.array([self.mark_correct(probabilities) for probabilities in self.probabilities])

    def compute_accuracies(self) -> NDArray[np.float64]:
        """The accuracy of each reader."""
        return np.asarray(self.mark_correct_by_reader().mean(axis=1))

    def select_questions(self, rows: NDArray[np.intp]) -> AlignedPredictions:
        """The same readers on these questions only."""
        questions = tuple(self.questions[row] for row in rows)
        return AlignedPredictions(questions, self.probabilities[:, rows], self.answers[rows], self.has_answer[rows])

    def average_predictions(self, members: Sequence[int]) -> list[Prediction]:
        """Predictions of the unweighted mean of these readers."""
        return weight_equally(members).predict(self)


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Indices of the chosen readers, in the order of choice, and their weights, which sum to 1."""

    members: tuple[int, ...]
    weights: tuple[float, ...]

    def mix_probabilities(self, data: AlignedPredictions) -> NDArray[np.float32]:
        """The weighted mean of the members' probabilities; padding stays negative."""
        # Weights are relative to the largest, so that equal weights sum exactly. Readers are added one at a time, so
        # that every candidate goes through the same operations and ties stay ties.
        total = np.zeros(data.probabilities.shape[1:])
        for member, weight in zip(self.members, self.weights, strict=True):
            total += data.probabilities[member] * np.float64(weight / max(self.weights))
        means: NDArray[np.float32] = (total / sum(weight / max(self.weights) for weight in self.weights)).astype("f4")
        return means

    def predict(self, data: AlignedPredictions) -> list[Prediction]:
        """The predictions of the ensemble."""
        return [
            Prediction(
                question.id, question.answer, question.candidates, np.maximum(mixed[: len(question.candidates)], 0)
            )
            for question, mixed in zip(data.questions, self.mix_probabilities(data), strict=True)
        ]


EnsembleMethod = Callable[[AlignedPredictions], Ensemble]
"""Chooses an ensemble of readers by their predictions of validation data."""


@dataclass(frozen=True, eq=False)
class EnsembleResult:
    """An ensemble of prediction files and its scores."""

    method: str
    readers: int  # to choose from
    members: tuple[str, ...]  # their validation files
    weights: tuple[float, ...]
    best_single: float  # accuracy of the best reader alone, on validation data
    cross_validated: float | None
    scores: dict[str, Scores]  # of valid and, if given, test
    predictions: list[Prediction]  # of test data if given, else of validation data

    def as_json(self) -> dict[str, object]:
        """The document that `ensemble --json` prints."""
        return {
            "method": self.method,
            "members": list(self.members),
            "weights": list(self.weights),
            "best_single": self.best_single,
            "cross_validated": self.cross_validated,
        } | {split: scores.as_json() for split, scores in self.scores.items()}


def build_ensemble(valid: Sequence[Path], test: Sequence[Path], method: str, top: float) -> EnsembleResult:
    """Choose readers by their validation files with one of METHODS; score them on these and on the test files."""
    if test and len(test) != len(valid):
        raise InputError(f"--valid names {len(valid)} files and --test {len(test)}; name both of each reader, in order")
    on_valid = align_predictions(valid)
    select = METHODS[method](top)
    chosen = select(on_valid)
    predictions = {"valid": chosen.predict(on_valid)}
    if test:
        predictions["test"] = chosen.predict(align_predictions(test))
    crossed = cross_validate(on_valid, select)
    return EnsembleResult(
        method=method,
        readers=len(valid),
        members=tuple(str(valid[member]) for member in chosen.members),
        weights=chosen.weights,
        best_single=float(on_valid.compute_accuracies().max()),
        cross_validated=None if crossed is None else float(crossed.mean()),
        scores={split: score_predictions(rows) for split, rows in predictions.items()},
        predictions=predictions["test" if test else "valid"],
    )


def weight_equally(members: Sequence[int]) -> Ensemble:
    """An ensemble of these readers with equal weights."""
    return Ensemble(tuple(members), (1 / len(members),) * len(members))


def align_predictions(paths: Sequence[Path]) -> AlignedPredictions:
    """Read the files of several readers, in the order of questions and candidates of the first."""
    first = read_predictions(paths[0])
    if not first:
        raise InputError(f"{paths[0]}: holds no predictions")
    widest = max(len(question.candidates) for question in first)
    probabilities = np.full((len(paths), len(first), widest), -1, dtype=np.float32)
    rows = {question.id: row for row, question in enumerate(first)}
    for row, question in enumerate(first):
        probabilities[0, row, : len(question.candidates)] = question.probabilities
    for values, path in zip(probabilities[1:], paths[1:], strict=True):
        _fill_probabilities(values, first, rows, paths[0], path)
    ignored = np.ones((len(first), widest), dtype=np.bool_)  # padding, empty and repeated candidates
    for row, question in enumerate(first):
        ignored[row, : len(question.candidates)] = ~mask_distinct_candidates(question.candidates)
    probabilities[:, ignored] = -1
    answers = np.array([_find_answer(question) for question in first])
    has_answer = np.array([question.answer is not None for question in first])
    return AlignedPredictions(tuple(first), probabilities, answers, has_answer)


def _fill_probabilities(
    values: NDArray[np.float32], first: Sequence[Prediction], rows: dict[str, int], origin: Path, path: Path
) -> None:
    """Write the probabilities of one file in the first file's order; an InputError names a question that differs."""
    missing = dict(rows)
    for line in iterate_predictions(path):
        row = missing.pop(line.id, None)
        if row is None:
            raise InputError(f"{path}: the question {line.id!r} is not in {origin}; use files of the same data")
        ordered = _order_probabilities(line, first[row], origin, path)
        values[row, : len(ordered)] = ordered
    if len(missing) == len(first):
        raise InputError(f"{path}: holds no predictions")
    if missing:
        id = next(iter(missing))
        raise InputError(f"{path}: the question {id!r} of {origin} is missing; use files of the same data")


def _order_probabilities(line: PredictionLine, question: Prediction, origin: Path, path: Path) -> list[float]:
    """The probabilities of a line in the order of the first file's candidates."""
    if line.answer != question.answer:
        raise InputError(f"{path}: the question {line.id!r} has another answer than in {origin}")
    if tuple(line.candidates) == question.candidates:
        return line.probabilities
    if sorted(line.candidates) != sorted(question.candidates):
        raise InputError(f"{path}: the question {line.id!r} has other candidates than in {origin}")
    return [line.probabilities[index] for index in _find_order(line.candidates, question.candidates)]


def _find_order(candidates: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The index of each wanted candidate; copies keep their order."""
    indices: dict[str, list[int]] = {}
    for index, candidate in enumerate(candidates):
        indices.setdefault(candidate, []).append(index)
    return [indices[candidate].pop(0) for candidate in wanted]


def _find_answer(question: Prediction) -> int:
    """The index of the answer among the candidates, or -1."""
    if question.answer is None or not question.answer.strip() or question.answer not in question.candidates:
        return -1
    return question.candidates.index(question.answer)


def average_best_readers(valid: AlignedPredictions, top: float) -> Ensemble:
    """*Average ensemble* of the best `top` (a fraction) of the readers by validation accuracy; ties keep file order."""
    best = rank_readers(valid)
    return weight_equally(best[: max(1, round(top * len(best)))])


def average_all_readers(valid: AlignedPredictions) -> Ensemble:
    """The average of all readers."""
    return weight_equally(rank_readers(valid))


def select_greedily(valid: AlignedPredictions) -> Ensemble:
    """*Greedy ensemble*: try readers from best to worst, keep those that improve validation accuracy."""
    chosen: list[int] = []
    total = np.zeros(valid.probabilities.shape[1:])
    best = -1.0
    for reader in rank_readers(valid):
        summed = total + valid.probabilities[reader]
        accuracy = valid.compute_accuracy((summed / (len(chosen) + 1)).astype(np.float32))
        if accuracy > best:
            chosen.append(reader)
            total, best = summed, accuracy
    return weight_equally(chosen)


def fit_weights(valid: AlignedPredictions) -> Ensemble:
    """Mixture weights that maximize the likelihood of the validation answers, by EM; readers of weight 0 are left out.

    Answers to which every reader gives probability 0 are skipped. Members are sorted by falling weight.
    """
    indices = np.maximum(valid.answers, 0)[None, :, None]
    of_answers = np.take_along_axis(valid.probabilities, indices, axis=-1)[..., 0].astype(np.float64)
    of_answers = of_answers[:, (valid.answers >= 0) & (of_answers > 0).any(axis=0)]
    weights = _maximize_likelihood(of_answers)
    weights[weights < MIN_WEIGHT / max(1, of_answers.shape[1])] = 0
    members = [reader for reader in np.argsort(-weights, kind="stable").tolist() if weights[reader]]
    total = weights.sum()
    return Ensemble(tuple(members), tuple(float(weights[member] / total) for member in members))


def _maximize_likelihood(of_answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of the answers, readers by questions -> the mixture weights of maximum likelihood."""
    weights = np.full(len(of_answers), 1 / len(of_answers))
    for _ in range(MAX_ITERATIONS if of_answers.size else 0):
        gains = of_answers @ (1 / (weights @ of_answers)) / of_answers.shape[1]
        # The objective is concave: its maximum is at most max(gains) - 1 above the present value.
        if gains.max() - 1 < TOLERANCE:
            break
        weights = weights * gains  # E and M step in one; the sum stays 1
    return weights


def cross_validate(valid: AlignedPredictions, method: EnsembleMethod) -> NDArray[np.bool_] | None:
    """Whether each validation question is answered correctly by an ensemble that was chosen on the other folds.

    The difference from the accuracy on all validation data is the optimism of the choice. None for fewer than two
    questions.
    """
    rows = np.flatnonzero(valid.has_answer)
    if len(rows) < 2:
        return None
    correct = []
    for fold in np.array_split(rows, min(FOLDS, len(rows))):
        held, others = valid.select_questions(fold), valid.select_questions(np.setdiff1d(rows, fold))
        correct.append(held.mark_correct(method(others).mix_probabilities(held)))
    return np.concatenate(correct)


def rank_readers(valid: AlignedPredictions) -> list[int]:
    """Indices of the readers by falling validation accuracy; ties keep file order."""
    return [int(reader) for reader in np.argsort(-valid.compute_accuracies(), kind="stable")]


METHODS: dict[str, Callable[[float], EnsembleMethod]] = {
    "average": lambda top: lambda valid: average_best_readers(valid, top),
    "greedy": lambda top: select_greedily,
    "all": lambda top: average_all_readers,
    "weighted": lambda top: fit_weights,
}
"""Name -> function that takes the fraction of readers for `average` and returns the method."""
