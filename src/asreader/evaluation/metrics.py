"""Predictions -> Scores: accuracy, top-k accuracy and an interval, with the rule for ties stated."""

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
    """Where the answer stands among the real candidates: how many are above, tied with it (itself too), tied before."""

    above: int
    tied: int
    before: int


TieRule = Callable[[AnswerRank, int], float]
"""(place of the answer, k) -> credit between 0 and 1 for having it among the best k."""


def break_ties_by_order(place: AnswerRank, top: int) -> float:
    """Ties are decided by the data's own candidate order, never by the answer: the rule for readers."""
    return float(place.above + place.before < top)


def share_ties(place: AnswerRank, top: int) -> float:
    """Ties are shared equally: the expected credit when each tie is broken at random. The rule for baselines."""
    return min(max((top - place.above) / place.tied, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Scores:
    """How well questions with a known answer were answered; those without one are only counted, in `unanswered`."""

    questions: int
    accuracy_at: dict[int, float]
    answer_not_in_document: int = 0
    unknown_words: float | None = None
    unanswered: int = 0

    @property
    def accuracy(self) -> float:
        """The share of questions whose chosen candidate is the answer."""
        return self.accuracy_at[1]

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% Wilson interval of the accuracy.

        With shared ties the credits are fractions, whose variance is at most p (1 - p): the interval is then on the
        safe side.
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
    """Predictions -> Scores; an answer that is not among the candidates counts as wrong, an unknown one not at all."""
    everything = list(predictions)
    known = [prediction for prediction in everything if prediction.answer is not None]
    if not known:
        raise InputError("there is nothing to score: no question has a known answer")
    places = [found for prediction in known if (found := rank_answer(prediction))]
    return Scores(
        questions=len(known),
        accuracy_at={top: math.fsum(rule(found, top) for found in places) / len(known) for top in TOP_K},
        answer_not_in_document=answer_not_in_document,
        unknown_words=unknown_words,
        unanswered=len(everything) - len(known),
    )


def rank_answer(prediction: Prediction) -> AnswerRank | None:
    """Where the answer stands, or None when it is not among the candidates."""
    answer = prediction.answer
    if answer not in prediction.candidates or not answer.strip():
        return None
    index, mask = prediction.candidates.index(answer), mask_distinct_candidates(prediction.candidates)
    above = mask & (prediction.probabilities > prediction.probabilities[index])
    tied = mask & (prediction.probabilities == prediction.probabilities[index])
    return AnswerRank(int(above.sum()), int(tied.sum()), int(tied[:index].sum()))


def compute_wilson_interval(share: float, questions: int) -> tuple[float, float]:
    """share of n questions -> its 95% interval (Wilson 1927), which stays within 0 and 1 for any share."""
    squared = Z_SCORE * Z_SCORE / questions
    centre = (share + squared / 2) / (1 + squared)
    reach = math.sqrt(squared * (share * (1 - share) + squared / 4)) / (1 + squared)
    # Rounding must not push an end past the share itself or out of 0 to 1.
    return max(min(centre - reach, share), 0.0), min(max(centre + reach, share), 1.0)
