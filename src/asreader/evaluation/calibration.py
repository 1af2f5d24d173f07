"""Predictions -> how far their probabilities can be trusted: reliability, answering only when sure, a temperature.

The confidence of a prediction is the probability of its chosen candidate. Questions without a known answer do not
count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asreader.errors import InputError
from asreader.evaluation.metrics import compute_wilson_interval
from asreader.evaluation.predictions import Prediction, mask_distinct_candidates

BINS = 10
MIN_TEMPERATURE, MAX_TEMPERATURE = 1 / 64, 64.0
"""The temperatures looked at: predictions that are all right would be sharpened without end."""


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Questions of like confidence: how sure the reader was on average, how often it was right."""

    questions: int
    lowest: float
    highest: float
    confidence: float
    accuracy: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% Wilson interval of the accuracy."""
        return compute_wilson_interval(self.accuracy, self.questions)


@dataclass(frozen=True, slots=True)
class ReliabilityCurve:
    """Bins of (nearly) equally many questions, least sure first, and the expected calibration error."""

    bins: tuple[ReliabilityBin, ...]

    @property
    def error(self) -> float:
        """The mean distance between confidence and accuracy of a bin, weighted by its questions."""
        distances = [part.questions * abs(part.accuracy - part.confidence) for part in self.bins]
        return sum(distances) / sum(part.questions for part in self.bins)


@dataclass(frozen=True, slots=True, eq=False)
class CoverageCurve:
    """What answering only at or above a confidence gives: one entry for each confidence that occurs, rising."""

    thresholds: NDArray[np.float64]
    coverage: NDArray[np.float64]  # the share of questions that are answered
    accuracy: NDArray[np.float64]  # of those

    def find_point(self, confidence: float) -> CoveragePoint:
        """When only questions with at least this confidence are answered."""
        place = int(np.searchsorted(self.thresholds, confidence))
        if place == len(self.thresholds):
            return CoveragePoint(confidence, 0.0, None)
        return CoveragePoint(confidence, float(self.coverage[place]), float(self.accuracy[place]))


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """The share of questions answered at or above a confidence and the accuracy on them; None if none is."""

    threshold: float
    coverage: float
    accuracy: float | None


@dataclass(frozen=True, slots=True, eq=False)
class AnswerOutcomes:
    """Of each question with a known answer, in the given order: how sure the reader was and whether it was right."""

    confidence: NDArray[np.float64]
    correct: NDArray[np.bool_]


def judge_answers(predictions: Sequence[Prediction]) -> AnswerOutcomes:
    """Confidence and verdict of each question; one without any candidate is wrong, with confidence 0."""
    known = [prediction for prediction in predictions if prediction.answer is not None]
    if not known:
        raise InputError("there is nothing to judge: no question has a known answer")
    confidence, right = np.zeros(len(known)), np.zeros(len(known), dtype=np.bool_)
    for number, prediction in enumerate(known):
        if mask_distinct_candidates(prediction.candidates).any():
            best = prediction.best
            confidence[number] = prediction.probabilities[best]
            right[number] = prediction.candidates[best] == prediction.answer
    return AnswerOutcomes(confidence, right)


def measure_reliability(predictions: Sequence[Prediction], bins: int = BINS) -> ReliabilityCurve:
    """The reliability curve; of questions with the same confidence, earlier ones fall into the lower bin."""
    every = judge_answers(predictions)
    order = np.argsort(every.confidence, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return ReliabilityCurve(tuple(_bin(every.confidence[part], every.correct[part]) for part in parts))


def _bin(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> ReliabilityBin:
    lowest, highest = float(confidence[0]), float(confidence[-1])
    return ReliabilityBin(len(right), lowest, highest, float(confidence.mean()), float(right.mean()))


def measure_coverage(predictions: Sequence[Prediction]) -> CoverageCurve:
    """Accuracy against the share of questions answered, for every confidence one could ask for."""
    every = judge_answers(predictions)
    order = np.argsort(every.confidence, kind="stable")
    thresholds, firsts = np.unique(every.confidence[order], return_index=True)
    answered = len(order) - firsts
    right = every.correct[order][::-1].cumsum()[::-1][firsts]
    return CoverageCurve(thresholds, answered / len(order), right / answered)


def fit_temperature(predictions: Sequence[Prediction]) -> float:
    """The T for which probabilities raised to 1/T, shared out anew, make the answers most likely; fit it on validation.

    Questions whose answer has no probability at all tell nothing about T and are left out. Above 1: the reader is too
    sure of itself.
    """
    given = _support(predictions)
    if not given.logs.any():
        return 1.0  # every temperature says the same

    def slope(power: float) -> float:
        """Of the negative log likelihood, which is convex in the power 1/T: its sign says where the lowest point is."""
        shares = np.exp(power * given.logs)
        means = np.add.reduceat(shares * given.logs, given.starts) / np.add.reduceat(shares, given.starts)
        return float((means - given.answers).sum())

    low, high = -math.log(MAX_TEMPERATURE), -math.log(MIN_TEMPERATURE)
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if slope(math.exp(middle)) > 0 else (middle, high)
    return math.exp(-(low + high) / 2)


@dataclass(frozen=True, slots=True, eq=False)
class _Support:
    """Log probabilities, relative to the question's highest, of all candidates that have any probability."""

    logs: NDArray[np.float64]  # question after question
    starts: NDArray[np.intp]  # where each question begins
    answers: NDArray[np.float64]  # those of the answers


def _support(predictions: Sequence[Prediction]) -> _Support:
    logs: list[NDArray[np.float64]] = []
    answers: list[float] = []
    for prediction in predictions:
        has = mask_distinct_candidates(prediction.candidates) & (prediction.probabilities > 0)
        place = prediction.candidates.index(prediction.answer) if prediction.answer in prediction.candidates else -1
        if place >= 0 and has[place]:
            own = np.log(prediction.probabilities.astype(np.float64), where=has, out=np.full(len(has), -np.inf))
            own -= own.max()
            logs.append(own[has])
            answers.append(float(own[place]))
    if not logs:
        raise InputError("no temperature can be fitted: no question has a known answer with any probability")
    starts = np.cumsum([0, *map(len, logs[:-1])])
    return _Support(np.concatenate(logs), starts, np.array(answers))


def apply_temperature(predictions: Sequence[Prediction], temperature: float) -> list[Prediction]:
    """The same predictions at another temperature: the order of the candidates stays, the confidence changes."""
    return [
        Prediction(
            one.id,
            one.answer,
            one.candidates,
            _raised(one.probabilities * mask_distinct_candidates(one.candidates), temperature),
        )
        for one in predictions
    ]


def _raised(probabilities: NDArray[np.float32], temperature: float) -> NDArray[np.float32]:
    ratios = probabilities.astype(np.float64)
    highest = ratios.max(initial=0)
    if not highest:  # no candidate has any support, and none gets it
        return probabilities
    raised = (ratios / highest) ** (1 / temperature)
    shares: NDArray[np.float32] = (raised / raised.sum()).astype(np.float32)
    return shares
