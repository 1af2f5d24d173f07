"""a book in classified words -> cloze questions, by the procedure of the Children's Book Test (Hill et al. 2016).

Every window of 21 sentences is tried. A word of the chosen class in the last sentence becomes the gap if it also occurs
in the 20 sentences before. Nine more words of its class from these 20 become the other candidates. If there are fewer,
named entities are filled up with common nouns first, then any class with words of the other classes. A window without
ten candidates gives no question.
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
    """The class of the gap, the seed, and the fraction of all possible questions to keep."""

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
    """The questions of one book, without windows that contain a `banned` sentence.

    Each question has its own random generator, so it does not depend on other questions or books.
    """
    window = _Window(sentences, classes)
    banned_windows = 0
    for last, (sentence, kinds) in enumerate(zip(sentences, classes, strict=True)):
        banned_windows = DOCUMENT_SENTENCES + 1 if last in banned else max(banned_windows - 1, 0)
        if last >= DOCUMENT_SENTENCES and not banned_windows:
            for index, (word, kind) in enumerate(zip(sentence, kinds, strict=True)):
                if kind == recipe.kind and word in window.words:
                    random = Random(f"{recipe.seed}/{name}/{last}/{index}")
                    if random.random() < recipe.keep and (candidates := window.draw_candidates(word, kind, random)):
                        yield Example(
                            id=f"{name}:{last + 1}:{index + 1}",
                            document=tuple(sentences[last - DOCUMENT_SENTENCES : last]),
                            question=(*sentence[:index], GAP, *sentence[index + 1 :]),
                            candidates=candidates,
                            answer=word,
                        )
        window.slide(last)


def count_windows(sentences: int) -> int:
    """The number of windows of 21 sentences in a book of this many sentences."""
    return max(0, sentences - DOCUMENT_SENTENCES)


class _Window:
    """The words of the last 20 sentences: all of them, and by class in order of appearance."""

    def __init__(self, sentences: Sequence[Sentence], classes: Sequence[WordClasses]) -> None:
        self.sentences = sentences
        self.classes = classes
        self.words = Counter[str]()
        self.by_class = {kind: Counter[str]() for kind in WORD_CLASSES}

    def slide(self, last: int) -> None:
        """Add sentence `last` and remove the one 20 before it."""
        self._count(last, 1)
        if last >= DOCUMENT_SENTENCES:
            self._count(last - DOCUMENT_SENTENCES, -1)

    def _count(self, number: int, step: int) -> None:
        for word, kind in zip(self.sentences[number], self.classes[number], strict=True):
            for counter in (self.words, self.by_class[kind]) if kind != OTHER else (self.words,):
                counter[word] += step
                if not counter[word]:
                    del counter[word]

    def draw_candidates(self, answer: str, kind: str, random: Random) -> tuple[str, ...]:
        """The answer and nine other words, sorted; empty if there are not enough."""
        chosen = {answer: None}
        for pool in self._list_pools(kind):
            others = [word for word in dict.fromkeys(pool) if word not in chosen]
            missing = CANDIDATE_COUNT - len(chosen)
            chosen |= dict.fromkeys(others if len(others) <= missing else random.sample(others, missing))
            if len(chosen) == CANDIDATE_COUNT:
                return tuple(sorted(chosen))
        return ()

    def _list_pools(self, kind: str) -> Iterator[Iterator[str]]:
        """The words to draw candidates from, the preferred class first."""
        yield iter(self.by_class[kind])
        if kind == NAMED:
            yield iter(self.by_class[NOUN])
        yield chain.from_iterable(self.by_class[other] for other in WORD_CLASSES if other != kind)
