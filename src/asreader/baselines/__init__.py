"""Baselines: each file here is a reader without training.

A baseline is a module with

    score_candidates(example: Example) -> Sequence[float]      a weight for each of `example.choices`: finite, >= 0

A candidate that is not in the document has weight 0. A baseline uses neither the answer nor the index of a candidate in
the list: the order breaks no tie. What all baselines share is done here: repeated and empty candidates lose their
weight, and weights become probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asreader import plugins
from asreader.data.example import Example
from asreader.data.occurrences import find_occurrences
from asreader.evaluation import metrics
from asreader.evaluation.predictions import Prediction, mask_distinct_candidates


@dataclass(frozen=True, slots=True)
class BaselineEvaluation:
    """A Prediction for each Example, in their order, and the scores of all."""

    predictions: list[Prediction]
    answer_not_in_document: int

    @property
    def scores(self) -> metrics.Scores:
        """Accuracy and related metrics; ties are shared equally."""
        return metrics.score_predictions(
            self.predictions, metrics.share_ties, answer_not_in_document=self.answer_not_in_document
        )


def evaluate_baseline(name: str, examples: Iterable[Example]) -> BaselineEvaluation:
    """Examples, read in one pass -> BaselineEvaluation of the baseline of this name."""
    predictions, missing = [], 0
    score_candidates = plugins.load_plugin("baselines", name).score_candidates
    for example in examples:
        predictions.append(make_prediction(example, score_candidates(example)))
        missing += example.answer is not None and not find_occurrences(example.words, example.answer)
    return BaselineEvaluation(predictions, missing)


def predict_answers(name: str, examples: Iterable[Example]) -> Iterator[Prediction]:
    """Examples -> Predictions of the baseline of this name, one at a time."""
    score_candidates = plugins.load_plugin("baselines", name).score_candidates
    return (make_prediction(example, score_candidates(example)) for example in examples)


def make_prediction(example: Example, weights: Sequence[float]) -> Prediction:
    """Weights -> Prediction; equal weights become equal probabilities, so ties stay ties."""
    return Prediction(
        example.id,
        example.answer,
        example.choices,
        normalize_weights(weights, mask_distinct_candidates(example.choices)),
    )


def normalize_weights(weights: Sequence[float], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Weights of the masked candidates divided by their sum; uniform if all of them are 0."""
    masked = np.where(mask, weights, 0.0)
    if not masked.any():
        masked = mask.astype(np.float64)
    return np.asarray(masked / (masked.sum() or 1.0), dtype=np.float32)
