"""Examples, Predictions -> Cases: questions beside what was said of them, filtered and sorted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from asreader.data.example import Example
from asreader.data.loading import examples
from asreader.errors import InputError
from asreader.evaluation.metrics import decided, place
from asreader.evaluation.predictions import Prediction
from asreader.pages.filter_options import AnswerSelection, QuestionOrder


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredQuestion:
    """A question and what was said of it."""

    example: Example
    prediction: Prediction

    @property
    def confidence(self) -> float:
        """The share of the chosen candidate."""
        return float(self.prediction.probabilities[self.prediction.best])

    @property
    def chosen(self) -> str:
        """What was answered."""
        return self.prediction.candidates[self.prediction.best]

    @property
    def right(self) -> bool | None:
        """Whether that is the answer; None where nobody knows."""
        if self.prediction.answer is None:
            return None
        found = place(self.prediction)
        return found is not None and decided(found, 1) == 1

    @property
    def support(self) -> float | None:
        """The share of the right answer; 0 where it is no candidate, None where it is not known."""
        answer = self.prediction.answer
        if answer is None:
            return None
        there = answer in self.prediction.candidates and bool(answer.strip())
        return float(self.prediction.probabilities[self.prediction.candidates.index(answer)]) if there else 0.0

    def has(self, word: str) -> bool:
        """Whether document, question or candidates hold this word, written in any case or as an entity's name."""
        wanted, known = word.lower(), self.example
        texts = (*known.words, *known.question, *known.candidates)
        return any(wanted == text.lower() or wanted in known.names.get(text, "").lower().split() for text in texts)

    def answers(self, word: str) -> bool:
        """Whether this word is the right answer or the given one."""
        said = filter(None, (self.chosen, self.prediction.answer))
        return any(word.lower() in (text.lower(), self.example.names.get(text, "").lower()) for text in said)


@dataclass(frozen=True, slots=True)
class QuestionFilter:
    """What a gallery is to show. Without an order: surprises first where those are asked for, else the surest first."""

    show: AnswerSelection = AnswerSelection.every
    word: str = ""
    answer: str = ""
    least: float = 0.0
    most: float = 1.0
    order: QuestionOrder | None = None
    top: int = 20

    def fits(self, case: AnsweredQuestion) -> bool:
        """Whether a question is wanted."""
        verdict = {
            AnswerSelection.right: case.right is True,
            AnswerSelection.wrong: case.right is False,
            AnswerSelection.surprising: case.right is not None,
        }
        return (
            verdict.get(self.show, True)
            and self.least <= case.confidence <= self.most
            and (not self.answer or case.answers(self.answer))
            and (not self.word or case.has(self.word))
        )

    @property
    def sorting(self) -> QuestionOrder:
        """The order that is meant."""
        usual = {AnswerSelection.every: QuestionOrder.data, AnswerSelection.surprising: QuestionOrder.surprise}
        return self.order or usual.get(self.show, QuestionOrder.confidence)

    def __str__(self) -> str:
        words = {
            QuestionOrder.data: "in the data's order",
            QuestionOrder.confidence: "the surest first",
            QuestionOrder.doubt: "the least sure first",
        }
        words |= {
            QuestionOrder.surprise: "where the right answer got least first",
            QuestionOrder.length: "the longest document first",
        }
        parts = [f"{self.show.value} questions" if self.show is AnswerSelection.every else f"{self.show.value} answers"]
        parts += [f"with the word {self.word}"] if self.word else []
        parts += [f"about {self.answer}"] if self.answer else []
        if (self.least, self.most) != (0.0, 1.0):
            parts.append(f"confidence from {self.least:.0%} to {self.most:.0%}")
        return ", ".join([*parts, words[self.sorting]])


_KEYS: dict[QuestionOrder, Callable[[AnsweredQuestion], float]] = {
    QuestionOrder.data: lambda case: 0.0,
    QuestionOrder.confidence: lambda case: -case.confidence,
    QuestionOrder.doubt: lambda case: case.confidence,
    QuestionOrder.surprise: lambda case: math.inf if case.support is None else case.support,
    QuestionOrder.length: lambda case: -len(case.example.words),
}


def select_questions(cases: Iterable[AnsweredQuestion], wish: QuestionFilter) -> list[AnsweredQuestion]:
    """The wanted questions, sorted; equals in the data's order."""
    return sorted(filter(wish.fits, cases), key=_KEYS[wish.sorting])[: wish.top]


def read_questions(
    path: Path, *, split: str | None = None, format: str | None = None, skip_bad: bool = False
) -> Iterator[Example]:
    """The Examples of any DATA, prepared or not; only data that are not prepared know the names of entities."""
    yield from (example for _, example in examples(path, split=split, format=format, skip_bad=skip_bad))


def match_predictions(asked: Iterable[Example], said: Iterable[Prediction]) -> list[AnsweredQuestion]:
    """Questions beside what was said of them, in the data's order; what was not answered is left out."""
    known = {prediction.id: prediction for prediction in said if len(prediction.candidates)}
    found = []
    for example in asked:
        prediction = known.get(example.id)
        if prediction is not None and len(prediction.ranking):
            if set(prediction.candidates) != set(example.choices):
                raise InputError(
                    f"the question {example.id!r} has other candidates in the predictions than in the data"
                )
            found.append(AnsweredQuestion(example, prediction))
    return found
