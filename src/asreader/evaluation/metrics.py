"""Predictions -> Scores: accuracy, top-k accuracy and a confidence interval, under an explicit rule for ties."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from asreader.errors import InputError
from asreader.evaluation.predictions import Prediction, mask_distinct_candidates

TOP_K = (1, 2, 5)
Z_SCORE = 1.959963984540054
"""The 97.5% point of the normal distribution, for 95% intervals."""


@dataclass(frozen=True, slots=True)
class AnswerRank:
    """The rank of the answer among the distinct candidates, as counts."""

    above: int  # more probable candidates
    tied: int  # equally probable candidates, with the answer itself
    before: int  # equally probable candidates that the data list before the answer


TieRule = Callable[[AnswerRank, int], float]
"""(rank of the answer, k) -> credit between 0 and 1 for an answer among the best k."""


def break_ties_by_order(rank: AnswerRank, top: int) -> float:
    """Tied candidates keep the order of the data, which does not depend on the answer: the rule for readers."""
    return float(rank.above + rank.before < top)


def share_ties(rank: AnswerRank, top: int) -> float:
    """The expected credit if each tie is broken at random: the rule for baselines."""
    return min(max((top - rank.above) / rank.tied, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Scores:
    """Accuracy on the questions with a known answer; questions without one are counted in `unanswered`."""

    questions: int
    accuracy_at: dict[int, float]
    answer_not_in_document: int = 0
    unknown_words: float | None = None
    unanswered: int = 0

    @property
    def accuracy(self) -> float:
        """The fraction of questions whose chosen candidate is the answer."""
        return self.accuracy_at[1]

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% Wilson interval of the accuracy.

        With `share_ties` credits are fractions, whose variance is at most p (1 - p): the interval is then conservative.
        """
        return compute_wilson_interval(self.accuracy, self.questions)

    def as_json(self) -> dict[str, object]:
        """The document that `evaluate --json` prints."""
        return {
            "questions": self.questions,
            "accuracy": self.accuracy,
            "accuracy_at": {str(top): accuracy for top, accuracy in self.accuracy_at.items()},
            "interval": list(self.interval),
            "answer_not_in_document": self.answer_not_in_document,
            "unknown_words": self.unknown_words,
        }


def score_predictions(
    predictions: Iterable[Prediction],
    rule: TieRule = break_ties_by_order,
    *,
    answer_not_in_document: int = 0,
    unknown_words: float | None = None,
) -> Scores:
    """Score predictions; an answer that is not a candidate counts as wrong, questions without an answer are skipped."""
    predictions = list(predictions)
    known = [prediction for prediction in predictions if prediction.answer is not None]
    if not known:
        raise InputError("there is nothing to score: no question has a known answer")
    ranks = [rank for prediction in known if (rank := rank_answer(prediction))]
    return Scores(
        questions=len(known),
        accuracy_at={top: math.fsum(rule(rank, top) for rank in ranks) / len(known) for top in TOP_K},
        answer_not_in_document=answer_not_in_document,
        unknown_words=unknown_words,
        unanswered=len(predictions) - len(known),
    )


def rank_answer(prediction: Prediction) -> AnswerRank | None:
    """The rank of the answer; None if it is not among the candidates."""
    answer = prediction.answer
    if answer not in prediction.candidates or not answer.strip():
        return None
    index, mask = prediction.candidates.index(answer), mask_distinct_candidates(prediction.candidates)
    above = mask & (prediction.probabilities > prediction.probabilities[index])
    tied = mask & (prediction.probabilities == prediction.probabilities[index])
    return AnswerRank(int(above.sum()), int(tied.sum()), int(tied[:index].sum()))


def compute_wilson_interval(accuracy: float, questions: int) -> tuple[float, float]:
    """The 95% Wilson score interval (Wilson 1927) of an accuracy; always within 0 and 1."""
    squared = Z_SCORE * Z_SCORE / questions
    center = (accuracy + squared / 2) / (1 + squared)
    half_width = math.sqrt(squared * (accuracy * (1 - accuracy) + squared / 4)) / (1 + squared)
    # Rounding errors must not move a bound past the accuracy or out of 0 to 1.
    return max(min(center - half_width, accuracy), 0.0), min(max(center + half_width, accuracy), 1.0)
