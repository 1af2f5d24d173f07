"""a book in classified words -> cloze questions, by the procedure of the Children's Book Test (Hill et al. 2016).

Every run of 21 sentences is tried. A word of the asked class in the last sentence that also stands in the twenty before
it becomes the gap; nine more words of its class in those twenty become its rivals. Where there are fewer, a named
entity is joined by common nouns first, anything else by words of any class; without ten candidates, no question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random

from asreader.cloze.tagging import NAMED, NOUN, OTHER, PREPOSITION, VERB, WordClasses
from asreader.data.example import GAP, Example, Sentence

WORD_CLASSES = (NAMED, NOUN, VERB, PREPOSITION)
DOCUMENT_SENTENCES = 20
CANDIDATE_COUNT = 10


@dataclass(frozen=True, slots=True)
class QuestionRecipe:
    """What is asked for: the class of the gap, the seed, and which share of all possible questions is kept."""

    kind: str = NAMED
    seed: int = 0
    keep: float = 1.0


def make_window_questions(
    name: str,
    sentences: Sequence[Sentence],
    classes: Sequence[WordClasses],
    recipe: QuestionRecipe,
    banned: frozenset[int] = frozenset(),
) -> Iterator[Example]:
    """The questions of one book; a window that touches a `banned` sentence is left out.

    Each question draws from a generator of its own, so that no other question and no other book changes it.
    """
    window = _Window(sentences, classes)
    forbidden = 0
    for last, (sentence, kinds) in enumerate(zip(sentences, classes, strict=True)):
        forbidden = DOCUMENT_SENTENCES + 1 if last in banned else max(forbidden - 1, 0)
        if last >= DOCUMENT_SENTENCES and not forbidden:
            for place, (word, kind) in enumerate(zip(sentence, kinds, strict=True)):
                if kind == recipe.kind and word in window.words:
                    random = Random(f"{recipe.seed}/{name}/{last}/{place}")
                    if random.random() < recipe.keep and (candidates := window.candidates(word, kind, random)):
                        yield Example(
                            id=f"{name}:{last + 1}:{place + 1}",
                            document=tuple(sentences[last - DOCUMENT_SENTENCES : last]),
                            question=(*sentence[:place], GAP, *sentence[place + 1 :]),
                            candidates=candidates,
                            answer=word,
                        )
        window.slide(last)


def count_windows(sentences: int) -> int:
    """How many windows of 21 sentences a book of so many has."""
    return max(0, sentences - DOCUMENT_SENTENCES)


class _Window:
    """The words of the last twenty sentences: all of them, and class by class in order of appearance."""

    def __init__(self, sentences: Sequence[Sentence], classes: Sequence[WordClasses]) -> None:
        self.sentences, self.classes = sentences, classes
        self.words = Counter[str]()
        self.of_kind = {kind: Counter[str]() for kind in WORD_CLASSES}

    def slide(self, last: int) -> None:
        """Take in sentence `last`, let go of the one twenty before it."""
        self._count(last, 1)
        if last >= DOCUMENT_SENTENCES:
            self._count(last - DOCUMENT_SENTENCES, -1)

    def _count(self, number: int, step: int) -> None:
        for word, kind in zip(self.sentences[number], self.classes[number], strict=True):
            for counter in (self.words, self.of_kind[kind]) if kind != OTHER else (self.words,):
                counter[word] += step
                if not counter[word]:
                    del counter[word]

    def candidates(self, answer: str, kind: str, random: Random) -> tuple[str, ...]:
        """The answer and its nine rivals, sorted; empty if there are not enough."""
        chosen = {answer: None}
        for pool in self._pools(kind):
            rivals = [word for word in dict.fromkeys(pool) if word not in chosen]
            wanted = CANDIDATE_COUNT - len(chosen)
            chosen |= dict.fromkeys(rivals if len(rivals) <= wanted else random.sample(rivals, wanted))
            if len(chosen) == CANDIDATE_COUNT:
                return tuple(sorted(chosen))
        return ()

    def _pools(self, kind: str) -> Iterator[Iterator[str]]:
        """Where rivals come from, the best first."""
        yield iter(self.of_kind[kind])
        if kind == NAMED:
            yield iter(self.of_kind[NOUN])
        yield chain.from_iterable(self.of_kind[other] for other in WORD_CLASSES if other != kind)
