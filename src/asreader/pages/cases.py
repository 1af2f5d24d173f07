"""Examples, Predictions -> Cases: questions beside what was said of them, filtered and sorted."""

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
from asreader.pages.showing import Order, Show


@dataclass(frozen=True, slots=True, eq=False)
class Case:
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
        found = rank_answer(self.prediction)
        return found is not None and break_ties_by_order(found, 1) == 1

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
class Wish:
    """What a gallery is to show. Without an order: surprises first where those are asked for, else the surest first."""

    show: Show = Show.every
    word: str = ""
    answer: str = ""
    least: float = 0.0
    most: float = 1.0
    order: Order | None = None
    top: int = 20

    def fits(self, case: Case) -> bool:
        """Whether a question is wanted."""
        verdict = {
            Show.right: case.right is True,
            Show.wrong: case.right is False,
            Show.surprising: case.right is not None,
        }
        return (
            verdict.get(self.show, True)
            and self.least <= case.confidence <= self.most
            and (not self.answer or case.answers(self.answer))
            and (not self.word or case.has(self.word))
        )

    @property
    def sorting(self) -> Order:
        """The order that is meant."""
        usual = {Show.every: Order.data, Show.surprising: Order.surprise}
        return self.order or usual.get(self.show, Order.confidence)

    def __str__(self) -> str:
        words = {
            Order.data: "in the data's order",
            Order.confidence: "the surest first",
            Order.doubt: "the least sure first",
        }
        words |= {Order.surprise: "where the right answer got least first", Order.length: "the longest document first"}
        parts = [f"{self.show.value} questions" if self.show is Show.every else f"{self.show.value} answers"]
        parts += [f"with the word {self.word}"] if self.word else []
        parts += [f"about {self.answer}"] if self.answer else []
        if (self.least, self.most) != (0.0, 1.0):
            parts.append(f"confidence from {self.least:.0%} to {self.most:.0%}")
        return ", ".join([*parts, words[self.sorting]])


_KEYS: dict[Order, Callable[[Case], float]] = {
    Order.data: lambda case: 0.0,
    Order.confidence: lambda case: -case.confidence,
    Order.doubt: lambda case: case.confidence,
    Order.surprise: lambda case: math.inf if case.support is None else case.support,
    Order.length: lambda case: -len(case.example.words),
}


def choose(cases: Iterable[Case], wish: Wish) -> list[Case]:
    """The wanted questions, sorted; equals in the data's order."""
    return sorted(filter(wish.fits, cases), key=_KEYS[wish.sorting])[: wish.top]


def questions(
    path: Path, *, split: str | None = None, format: str | None = None, skip_bad: bool = False
) -> Iterator[Example]:
    """The Examples of any DATA, prepared or not; only data that are not prepared know the names of entities."""
    yield from (example for _, example in load_examples(path, split=split, format=format, skip_bad=skip_bad))


def paired(asked: Iterable[Example], said: Iterable[Prediction]) -> list[Case]:
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
            found.append(Case(example, prediction))
    return found
