"""Predictions -> calibration: reliability curve, accuracy against coverage, temperature scaling.

The confidence of a prediction is the probability of its chosen candidate. Questions without a known answer are skipped.
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
"""Range of the fit: without it, predictions that are all correct would give a temperature of 0."""


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Questions of similar confidence: their mean confidence and accuracy."""

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
    """Bins of (nearly) equal size by rising confidence, and the expected calibration error."""

    bins: tuple[ReliabilityBin, ...]

    @property
    def error(self) -> float:
        """Expected calibration error: mean |accuracy - confidence| of the bins, weighted by their questions."""
        distances = [bin.questions * abs(bin.accuracy - bin.confidence) for bin in self.bins]
        return sum(distances) / sum(bin.questions for bin in self.bins)


@dataclass(frozen=True, slots=True, eq=False)
class CoverageCurve:
    """Coverage and accuracy for each confidence threshold that occurs, in rising order."""

    thresholds: NDArray[np.float64]
    coverage: NDArray[np.float64]  # fraction of questions at or above the threshold
    accuracy: NDArray[np.float64]  # on these questions

    def find_point(self, confidence: float) -> CoveragePoint:
        """Coverage and accuracy if only questions with at least this confidence are answered."""
        index = int(np.searchsorted(self.thresholds, confidence))
        if index == len(self.thresholds):
            return CoveragePoint(confidence, 0.0, None)
        return CoveragePoint(confidence, float(self.coverage[index]), float(self.accuracy[index]))


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """Fraction of questions at or above a threshold and the accuracy on them; None if there are none."""

    threshold: float
    coverage: float
    accuracy: float | None


@dataclass(frozen=True, slots=True, eq=False)
class AnswerOutcomes:
    """Confidence and correctness of each question with a known answer, in the given order."""

    confidence: NDArray[np.float64]
    correct: NDArray[np.bool_]


def judge_answers(predictions: Sequence[Prediction]) -> AnswerOutcomes:
    """Confidence and correctness of each question; a question without candidates is wrong with confidence 0."""
    known = [prediction for prediction in predictions if prediction.answer is not None]
    if not known:
        raise InputError("there is nothing to judge: no question has a known answer")
    confidence = np.zeros(len(known))
    correct = np.zeros(len(known), dtype=np.bool_)
    for index, prediction in enumerate(known):
        if mask_distinct_candidates(prediction.candidates).any():
            best = prediction.best
            confidence[index] = prediction.probabilities[best]
            correct[index] = prediction.candidates[best] == prediction.answer
    return AnswerOutcomes(confidence, correct)


def measure_reliability(predictions: Sequence[Prediction], bins: int = BINS) -> ReliabilityCurve:
    """Reliability curve; of questions with equal confidence, earlier ones go to the lower bin."""
    outcomes = judge_answers(predictions)
    order = np.argsort(outcomes.confidence, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return ReliabilityCurve(tuple(_make_bin(outcomes.confidence[part], outcomes.correct[part]) for part in parts))


def _make_bin(confidence: NDArray[np.float64], correct: NDArray[np.bool_]) -> ReliabilityBin:
    lowest, highest = float(confidence[0]), float(confidence[-1])
    return ReliabilityBin(len(correct), lowest, highest, float(confidence.mean()), float(correct.mean()))


def measure_coverage(predictions: Sequence[Prediction]) -> CoverageCurve:
    """Accuracy against coverage for every confidence threshold."""
    outcomes = judge_answers(predictions)
    order = np.argsort(outcomes.confidence, kind="stable")
    thresholds, firsts = np.unique(outcomes.confidence[order], return_index=True)
    answered = len(order) - firsts
    correct = outcomes.correct[order][::-1].cumsum()[::-1][firsts]
    return CoverageCurve(thresholds, answered / len(order), correct / answered)


def fit_temperature(predictions: Sequence[Prediction]) -> float:
    """Maximum-likelihood temperature T of probabilities raised to 1/T and renormalized; fit it on validation data.

    T > 1 means that the reader is overconfident. Questions whose answer has probability 0 are skipped: their likelihood
    is 0 at any temperature.
    """
    support = _collect_support(predictions)
    if not support.logs.any():
        return 1.0  # uniform probabilities do not depend on the temperature

    def compute_slope(power: float) -> float:
        """Derivative of the negative log likelihood, which is convex in the power 1/T; the search bisects its sign."""
        weights = np.exp(power * support.logs)
        totals = np.add.reduceat(weights, support.starts)
        means = np.add.reduceat(weights * support.logs, support.starts) / totals
        return float((means - support.answers).sum())

    low, high = -math.log(MAX_TEMPERATURE), -math.log(MIN_TEMPERATURE)
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if compute_slope(math.exp(middle)) > 0 else (middle, high)
    return math.exp(-(low + high) / 2)


@dataclass(frozen=True, slots=True, eq=False)
class _Support:
    """Log probabilities of all candidates with a probability above 0, relative to the highest of the question."""

    logs: NDArray[np.float64]  # of all questions, concatenated
    starts: NDArray[np.intp]  # index of each question's first entry
    answers: NDArray[np.float64]  # log probability of each answer


def _collect_support(predictions: Sequence[Prediction]) -> _Support:
    logs: list[NDArray[np.float64]] = []
    answers: list[float] = []
    for prediction in predictions:
        has_support = mask_distinct_candidates(prediction.candidates) & (prediction.probabilities > 0)
        answer = prediction.candidates.index(prediction.answer) if prediction.answer in prediction.candidates else -1
        if answer >= 0 and has_support[answer]:
            relative = np.full(len(has_support), -np.inf)
            np.log(prediction.probabilities.astype(np.float64), where=has_support, out=relative)
            relative -= relative.max()
            logs.append(relative[has_support])
            answers.append(float(relative[answer]))
    if not logs:
        raise InputError("no temperature can be fitted: no question has a known answer with any probability")
    starts = np.cumsum([0, *map(len, logs[:-1])])
    return _Support(np.concatenate(logs), starts, np.array(answers))


def apply_temperature(predictions: Sequence[Prediction], temperature: float) -> list[Prediction]:
    """The same predictions at another temperature; the order of the candidates does not change."""
    return [
        Prediction(
            one.id,
            one.answer,
            one.candidates,
            _rescale(one.probabilities * mask_distinct_candidates(one.candidates), temperature),
        )
        for one in predictions
    ]


def _rescale(probabilities: NDArray[np.float32], temperature: float) -> NDArray[np.float32]:
    ratios = probabilities.astype(np.float64)
    highest = ratios.max(initial=0)
    if not highest:  # all probabilities are 0 and stay 0
        return probabilities
    raised = (ratios / highest) ** (1 / temperature)
    rescaled: NDArray[np.float32] = (raised / raised.sum()).astype(np.float32)
    return rescaled
