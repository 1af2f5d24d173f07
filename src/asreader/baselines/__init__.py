"""Baselines: each file here is a reader that learns nothing.

A baseline is a module with

    scores(example: Example) -> Sequence[float]      a weight for each of `example.choices`: finite, 0 or more

A candidate that is not in the document weighs 0. The answer is never looked at, and neither is a candidate's place in
the list: the order breaks no tie. What is the same for all is done here: later copies of a candidate and empty ones
lose their weight, weights become probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asreader import plugins
from asreader.data.example import Example
from asreader.data.occurrences import occurrences
from asreader.evaluation import metrics
from asreader.evaluation.predictions import Prediction, mask_distinct_candidates


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Examples answered by a baseline: a Prediction for each, in their order, and what they are worth."""

    predictions: list[Prediction]
    answer_not_in_document: int

    @property
    def scores(self) -> metrics.Scores:
        """Accuracy and its company, with ties shared equally."""
        return metrics.score_predictions(
            self.predictions, metrics.share_ties, answer_not_in_document=self.answer_not_in_document
        )


def evaluate(name: str, examples: Iterable[Example]) -> Evaluation:
    """Examples, each looked at once and let go -> Evaluation of the baseline of this name."""
    found, missing = [], 0
    weigh = plugins.load("baselines", name).scores
    for example in examples:
        found.append(prediction(example, weigh(example)))
        missing += example.answer is not None and not occurrences(example.words, example.answer)
    return Evaluation(found, missing)


def predict(name: str, examples: Iterable[Example]) -> Iterator[Prediction]:
    """Examples -> Predictions of the baseline of this name, one at a time."""
    weigh = plugins.load("baselines", name).scores
    return (prediction(example, weigh(example)) for example in examples)


def prediction(example: Example, weights: Sequence[float]) -> Prediction:
    """Weights -> Prediction: equal weights are equal probabilities, so that ties stay ties."""
    return Prediction(
        example.id, example.answer, example.choices, shares(weights, mask_distinct_candidates(example.choices))
    )


def shares(weights: Sequence[float], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Weights of the real candidates as shares of their sum; equal shares where nothing has any weight."""
    weighed = np.where(mask, weights, 0.0)
    if not weighed.any():
        weighed = mask.astype(np.float64)
    return np.asarray(weighed / (weighed.sum() or 1.0), dtype=np.float32)
