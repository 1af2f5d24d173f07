"""Examples, Predictions -> AnsweredQuestions: questions matched with predictions, filtered and sorted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from asreader.data.dataset import load_examples
from asreader.data.example import Example
from asreader.errors import InputError
from asreader.evaluation.metrics import break_ties_by_order, rank_answer
from asreader.evaluation.predictions import Prediction
from asreader.pages.filter_options import AnswerSelection, QuestionOrder


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredQuestion:
    """A question and its prediction."""

    example: Example
    prediction: Prediction

    @property
    def confidence(self) -> float:
        """The probability of the predicted answer."""
        return float(self.prediction.probabilities[self.prediction.best])

    @property
    def predicted_answer(self) -> str:
        """The most probable candidate."""
        return self.prediction.candidates[self.prediction.best]

    @property
    def is_right(self) -> bool | None:
        """Whether the predicted answer is right; None if the right answer is not known."""
        if self.prediction.answer is None:
            return None
        rank = rank_answer(self.prediction)
        return rank is not None and break_ties_by_order(rank, 1) == 1

    @property
    def right_probability(self) -> float | None:
        """The probability of the right answer; 0 if it is not a candidate, None if it is not known."""
        answer = self.prediction.answer
        if answer is None:
            return None
        if answer not in self.prediction.candidates or not answer.strip():
            return 0.0
        return float(self.prediction.probabilities[self.prediction.candidates.index(answer)])

    def contains_word(self, word: str) -> bool:
        """Whether the document, question or candidates contain the word, in any case or in the name of an entity."""
        lowered = word.lower()
        example = self.example
        texts = (*example.words, *example.question, *example.candidates)
        return any(lowered == text.lower() or lowered in example.names.get(text, "").lower().split() for text in texts)

    def has_answer(self, word: str) -> bool:
        """Whether the word is the right or the predicted answer, in any case or as the name of an entity."""
        answers = filter(None, (self.predicted_answer, self.prediction.answer))
        return any(word.lower() in (text.lower(), self.example.names.get(text, "").lower()) for text in answers)


@dataclass(frozen=True, slots=True)
class QuestionFilter:
    """Which questions are shown, in which order, and at most how many. Without `order`, `selection` implies one."""

    selection: AnswerSelection = AnswerSelection.every
    word: str = ""
    answer: str = ""
    min_confidence: float = 0.0
    max_confidence: float = 1.0
    order: QuestionOrder | None = None
    max_questions: int = 20

    def matches(self, question: AnsweredQuestion) -> bool:
        """Whether the question passes the filter."""
        is_selected = {
            AnswerSelection.right: question.is_right is True,
            AnswerSelection.wrong: question.is_right is False,
            AnswerSelection.surprising: question.is_right is not None,
        }
        return (
            is_selected.get(self.selection, True)
            and self.min_confidence <= question.confidence <= self.max_confidence
            and (not self.answer or question.has_answer(self.answer))
            and (not self.word or question.contains_word(self.word))
        )

    @property
    def effective_order(self) -> QuestionOrder:
        """`order`, or the default order of the selection."""
        defaults = {
            AnswerSelection.every: QuestionOrder.data,
            AnswerSelection.surprising: QuestionOrder.surprise,
        }
        return self.order or defaults.get(self.selection, QuestionOrder.confidence)

    def __str__(self) -> str:
        noun = "questions" if self.selection is AnswerSelection.every else "answers"
        parts = [f"{self.selection.value} {noun}"]
        parts += [f"with the word {self.word}"] if self.word else []
        parts += [f"about {self.answer}"] if self.answer else []
        if (self.min_confidence, self.max_confidence) != (0.0, 1.0):
            parts.append(f"confidence from {self.min_confidence:.0%} to {self.max_confidence:.0%}")
        return ", ".join([*parts, _ORDER_NAMES[self.effective_order]])


_ORDER_NAMES = {
    QuestionOrder.data: "in the order of the data",
    QuestionOrder.confidence: "most confident first",
    QuestionOrder.doubt: "least confident first",
    QuestionOrder.surprise: "least probable right answer first",
    QuestionOrder.length: "longest document first",
}
_SORT_KEYS: dict[QuestionOrder, Callable[[AnsweredQuestion], float]] = {
    QuestionOrder.data: lambda question: 0.0,
    QuestionOrder.confidence: lambda question: -question.confidence,
    QuestionOrder.doubt: lambda question: question.confidence,
    QuestionOrder.surprise: lambda question: (
        math.inf if question.right_probability is None else question.right_probability
    ),
    QuestionOrder.length: lambda question: -len(question.example.words),
}


def select_questions(answered: Iterable[AnsweredQuestion], question_filter: QuestionFilter) -> list[AnsweredQuestion]:
    """The questions that match, sorted; ties in the order of the data."""
    matching = filter(question_filter.matches, answered)
    return sorted(matching, key=_SORT_KEYS[question_filter.effective_order])[: question_filter.max_questions]


def read_questions(
    path: Path, *, split: str | None = None, format: str | None = None, skip_bad: bool = False
) -> Iterator[Example]:
    """The Examples of DATA, prepared or not; prepared data have no entity names."""
    yield from (example for _, example in load_examples(path, split=split, format=format, skip_bad=skip_bad))


def match_predictions(questions: Iterable[Example], predictions: Iterable[Prediction]) -> list[AnsweredQuestion]:
    """Match questions with predictions by id, in the order of the data; questions without prediction are left out."""
    by_id = {prediction.id: prediction for prediction in predictions if len(prediction.candidates)}
    answered = []
    for example in questions:
        prediction = by_id.get(example.id)
        if prediction is not None and len(prediction.ranking):
            if set(prediction.candidates) != set(example.choices):
                raise InputError(
                    f"the question {example.id!r} has other candidates in the predictions than in the data"
                )
            answered.append(AnsweredQuestion(example, prediction))
    return answered
