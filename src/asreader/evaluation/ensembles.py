"""prediction files of many readers -> the predictions of one ensemble: section 5.2 of the paper, on saved files only.

Files are aligned by question and candidate, whatever order each has them in; the first file's order is the data's own
and decides ties, never the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.metrics import Scores, score_predictions
from asreader.evaluation.predictions import Prediction, PredictionLine, mask_distinct_candidates

FOLDS = 5
"""Parts of the validation data of cross-validation. Each is a row of neighbours, since they may share a document."""
TOLERANCE = 1e-5
"""How near to the best possible mean log likelihood fitted weights come."""
MAX_ITERATIONS = 5000
MIN_WEIGHT = 0.1
"""A fitted weight below this part of one question's is none: one answer that a reader alone knows is worth a whole."""


@dataclass(frozen=True, eq=False)
class AlignedPredictions:
    """What M readers said of the same questions: probabilities padded with -1, which is below anything said."""

    questions: tuple[Prediction, ...]  # as the first reader has them: ids, answers, candidates in order
    probabilities: NDArray[np.float32]  # readers by questions by candidates
    answers: NDArray[np.intp]  # the answer's place among the candidates, or -1
    has_answer: NDArray[np.bool_]  # whether the question has an answer at all

    def mark_correct(self, probabilities: NDArray[np.floating], top: int = 1) -> NDArray[np.bool_]:
        """Of each question with a known answer, whether that is among the most probable, the first of equals first."""
        if not self.has_answer.any():
            raise InputError("there is nothing to choose by: no question has a known answer")
        if top == 1:
            first: NDArray[np.bool_] = (probabilities.argmax(axis=-1) == self.answers)[self.has_answer]
            return first
        own = np.take_along_axis(probabilities, np.maximum(self.answers, 0)[:, None], axis=-1)
        before = np.arange(probabilities.shape[-1]) < self.answers[:, None]
        ahead = ((probabilities > own) | ((probabilities == own) & before)).sum(axis=-1)
        among: NDArray[np.bool_] = ((ahead < top) & (self.answers >= 0))[self.has_answer]
        return among

    def compute_accuracy(self, probabilities: NDArray[np.floating]) -> float:
        """The share of answered questions whose most probable candidate, the first of equals, is the answer."""
        return float(self.mark_correct(probabilities).mean())

    def mark_correct_by_reader(self) -> NDArray[np.bool_]:
        """Readers by questions with a known answer: whether each reader by itself is right."""
        return np.array([self.mark_correct(own) for own in self.probabilities])

    def compute_accuracies(self) -> NDArray[np.float64]:
        """Of each reader alone."""
        return np.asarray(self.mark_correct_by_reader().mean(axis=1))

    def select_questions(self, rows: NDArray[np.intp]) -> AlignedPredictions:
        """Only these questions."""
        questions = tuple(self.questions[row] for row in rows)
        return AlignedPredictions(questions, self.probabilities[:, rows], self.answers[rows], self.has_answer[rows])

    def average_predictions(self, members: Sequence[int]) -> list[Prediction]:
        """What the average of these readers says."""
        return weight_equally(members).predict(self)


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Readers, in the order in which they were chosen, and their weights, which sum to 1."""

    members: tuple[int, ...]
    weights: tuple[float, ...]

    def mix_probabilities(self, data: AlignedPredictions) -> NDArray[np.float32]:
        """The weighted mean of the members' probabilities, padding below all."""
        # Relative to the largest weight, so that equal weights sum exactly; one reader at a time, so that every
        # candidate meets the same operations: equals must stay equal.
        total = np.zeros(data.probabilities.shape[1:])
        for member, weight in zip(self.members, self.weights, strict=True):
            total += data.probabilities[member] * np.float64(weight / max(self.weights))
        means: NDArray[np.float32] = (total / sum(weight / max(self.weights) for weight in self.weights)).astype("f4")
        return means

    def predict(self, data: AlignedPredictions) -> list[Prediction]:
        """What the ensemble says."""
        return [
            Prediction(
                question.id, question.answer, question.candidates, np.maximum(own[: len(question.candidates)], 0)
            )
            for question, own in zip(data.questions, self.mix_probabilities(data), strict=True)
        ]


EnsembleMethod = Callable[[AlignedPredictions], Ensemble]
"""A way to make an ensemble of readers, by what they said of validation data."""


@dataclass(frozen=True, eq=False)
class EnsembleResult:
    """An ensemble of prediction files and what it is worth."""

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
        } | {split: found.as_json() for split, found in self.scores.items()}


def build_ensemble(valid: Sequence[Path], test: Sequence[Path], method: str, top: float) -> EnsembleResult:
    """Choose readers by their validation files, as one of METHODS does; score them on these and on their test files."""
    if test and len(test) != len(valid):
        raise InputError(f"--valid names {len(valid)} files and --test {len(test)}; name both of each reader, in order")
    on_valid = align_predictions(valid)
    choice = METHODS[method](top)
    chosen = choice(on_valid)
    said = {"valid": chosen.predict(on_valid)}
    if test:
        said["test"] = chosen.predict(align_predictions(test))
    crossed = cross_validate(on_valid, choice)
    return EnsembleResult(
        method=method,
        readers=len(valid),
        members=tuple(str(valid[member]) for member in chosen.members),
        weights=chosen.weights,
        best_single=float(on_valid.compute_accuracies().max()),
        cross_validated=None if crossed is None else float(crossed.mean()),
        scores={split: score_predictions(those) for split, those in said.items()},
        predictions=said["test" if test else "valid"],
    )


def weight_equally(members: Sequence[int]) -> Ensemble:
    """Readers of equal weight."""
    return Ensemble(tuple(members), (1 / len(members),) * len(members))


def align_predictions(paths: Sequence[Path]) -> AlignedPredictions:
    """Read the files of several readers and bring them into the order of the first."""
    first = predictions.read_predictions(paths[0])
    if not first:
        raise InputError(f"{paths[0]}: holds no predictions")
    widest = max(len(question.candidates) for question in first)
    everything = np.full((len(paths), len(first), widest), -1, dtype=np.float32)
    rows = {question.id: row for row, question in enumerate(first)}
    for room, question in zip(everything[0], first, strict=True):
        room[: len(question.candidates)] = question.probabilities
    for room, path in zip(everything[1:], paths[1:], strict=True):
        _fill(room, first, rows, paths[0], path)
    never = np.ones((len(first), widest), dtype=np.bool_)  # padding, empty candidates, copies
    for row, question in enumerate(first):
        never[row, : len(question.candidates)] = ~mask_distinct_candidates(question.candidates)
    everything[:, never] = -1
    known = np.array([question.answer is not None for question in first])
    return AlignedPredictions(tuple(first), everything, np.array([_place(question) for question in first]), known)


def _fill(
    room: NDArray[np.float32], first: Sequence[Prediction], rows: dict[str, int], origin: Path, path: Path
) -> None:
    """One reader's probabilities in the first file's order; an InputError names the question that does not fit."""
    missing = dict(rows)
    for own in predictions.iterate_predictions(path):
        row = missing.pop(own.id, None)
        if row is None:
            raise InputError(f"{path}: the question {own.id!r} is not in {origin}; use files of the same data")
        values = _matched(own, first[row], origin, path)
        room[row, : len(values)] = values
    if len(missing) == len(first):
        raise InputError(f"{path}: holds no predictions")
    if missing:
        lost = next(iter(missing))
        raise InputError(f"{path}: the question {lost!r} of {origin} is missing; use files of the same data")


def _matched(own: PredictionLine, question: Prediction, origin: Path, path: Path) -> list[float]:
    """What a line says of each candidate, in the order in which the first file has them."""
    if own.answer != question.answer:
        raise InputError(f"{path}: the question {own.id!r} has another answer than in {origin}")
    if tuple(own.candidates) == question.candidates:
        return own.probabilities
    if sorted(own.candidates) != sorted(question.candidates):
        raise InputError(f"{path}: the question {own.id!r} has other candidates than in {origin}")
    return [own.probabilities[place] for place in _order(own.candidates, question.candidates)]


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


def average_best_readers(valid: AlignedPredictions, top: float) -> Ensemble:
    """*Average ensemble*: the best part of all readers by validation accuracy; of equals the first named."""
    best = rank_readers(valid)
    return weight_equally(best[: max(1, round(top * len(best)))])


def average_all_readers(valid: AlignedPredictions) -> Ensemble:
    """The average of all readers."""
    return weight_equally(rank_readers(valid))


def select_greedily(valid: AlignedPredictions) -> Ensemble:
    """*Greedy ensemble*: the best reader, then each next best once, kept if validation accuracy improves."""
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
    """The weights under which the validation answers are most likely, by EM; readers of no weight are left out.

    An answer that no reader gives any probability tells nothing of the weights. The heaviest reader comes first.
    """
    places = np.maximum(valid.answers, 0)[None, :, None]
    said = np.take_along_axis(valid.probabilities, places, axis=-1)[..., 0].astype(np.float64)
    said = said[:, (valid.answers >= 0) & (said > 0).any(axis=0)]
    weights = _likeliest(said)
    weights[weights < MIN_WEIGHT / max(1, said.shape[1])] = 0
    members = [reader for reader in np.argsort(-weights, kind="stable").tolist() if weights[reader]]
    total = weights.sum()
    return Ensemble(tuple(members), tuple(float(weights[member] / total) for member in members))


def _likeliest(said: NDArray[np.float64]) -> NDArray[np.float64]:
    """Readers by questions: the answer's probability -> the weights of the mixture that maximise the mean log."""
    weights = np.full(len(said), 1 / len(said))
    for _ in range(MAX_ITERATIONS if said.size else 0):
        gains = said @ (1 / (weights @ said)) / said.shape[1]
        # By concavity the best possible mean log likelihood is at most so much higher than this one.
        if gains.max() - 1 < TOLERANCE:
            break
        weights = weights * gains  # the E and the M step in one: weights go on summing to 1
    return weights


def cross_validate(valid: AlignedPredictions, choice: EnsembleMethod) -> NDArray[np.bool_] | None:
    """Whether each validation question is answered rightly by an ensemble chosen on the other blocks of questions.

    Seen beside the accuracy on the very questions it was chosen on, it shows how much of that is luck. None: too few
    questions to do without any.
    """
    rows = np.flatnonzero(valid.has_answer)
    if len(rows) < 2:
        return None
    verdicts = []
    for block in np.array_split(rows, min(FOLDS, len(rows))):
        held, others = valid.select_questions(block), valid.select_questions(np.setdiff1d(rows, block))
        verdicts.append(held.mark_correct(choice(others).mix_probabilities(held)))
    return np.concatenate(verdicts)


def rank_readers(valid: AlignedPredictions) -> list[int]:
    """Readers by validation accuracy, the best first; of equals the first named."""
    return [int(reader) for reader in np.argsort(-valid.compute_accuracies(), kind="stable")]


METHODS: dict[str, Callable[[float], EnsembleMethod]] = {
    "average": lambda top: lambda valid: average_best_readers(valid, top),
    "greedy": lambda top: select_greedily,
    "all": lambda top: average_all_readers,
    "weighted": lambda top: fit_weights,
}
"""Ways to choose, each for the part of the readers that `average` takes."""
