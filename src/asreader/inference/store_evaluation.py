"""readings of a store's questions -> Evaluation: predictions in the data's order, and what they are worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asreader.data.store import NO_ANSWER, Store
from asreader.data.vocabulary import UNKNOWN, Vocabulary
from asreader.evaluation import metrics
from asreader.evaluation.metrics import Scores
from asreader.evaluation.predictions import Prediction

EVALUATION_BATCH = 64


@dataclass(frozen=True)
class Evaluation:
    """A store read by a reader: a Prediction for each Example, in its order, and what they are worth."""

    predictions: list[Prediction]
    loss: float
    answer_not_in_document: int
    unknown_words: float

    def answerable(self, store: Store) -> Evaluation:
        """The same of those questions alone whose answer stands in the document; the loss never counted others."""
        pairs = zip(self.predictions, store.answerable.tolist(), strict=True)
        return replace(self, predictions=[prediction for prediction, there in pairs if there], answer_not_in_document=0)

    @property
    def scores(self) -> Scores:
        """Accuracy and what goes with it."""
        return metrics.score_predictions(
            self.predictions,
            answer_not_in_document=self.answer_not_in_document,
            unknown_words=self.unknown_words,
        )


@dataclass(frozen=True)
class PredictionTemplates:
    """All of a store's predictions that no reader has an influence on: made once, because making them takes longest."""

    store: Store
    vocabulary: Vocabulary

    @cached_property
    def predictions(self) -> list[Prediction]:
        """Without probabilities."""
        return [_make_template(self.store, number) for number in range(len(self.store))]

    @cached_property
    def unknown_words(self) -> float:
        """Fraction of the documents' words that are not in the vocabulary."""
        unknown = self.vocabulary.rows(self.store.lexicon) == UNKNOWN
        starts = np.r_[0, self.store.sentences.ends[:-1]]
        per_sentence = np.add.reduceat(unknown[self.store.columns["sentences"]], starts)
        return float(per_sentence[self.store.columns["documents"]].sum() / max(1, self.store.lengths.sum()))

    def fill(self, probabilities: list[NDArray[np.float32]], total_loss: float, counted: int) -> Evaluation:
        """Predictions with the probabilities of each question's candidates, in the data's order."""
        filled = [
            replace(template, probabilities=values[: len(template.candidates)].astype(np.float32))
            for template, values in zip(self.predictions, probabilities, strict=True)
        ]
        not_in_document = int((self.store.answers != NO_ANSWER).sum() - self.store.answerable.sum())
        return Evaluation(filled, total_loss / max(1, counted), not_in_document, self.unknown_words)


def _make_template(store: Store, number: int) -> Prediction:
    candidates = store.candidates(number, store.document(number))
    answer = int(store.answers[number])
    return Prediction(
        id=store.ids[number],
        answer=None if answer == NO_ANSWER else store.lexicon[answer],
        candidates=tuple(store.lexicon[name] for name in candidates),
        probabilities=np.zeros(len(candidates), np.float32),
    )
