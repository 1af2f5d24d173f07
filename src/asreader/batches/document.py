"""a document, and question after question about it -> Batches of one: what the document alone decides is made once.

`Batcher` makes the same of a store that holds this one question; that is the definition. Here no store is made, and no
word of the document is looked up again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from asreader.batches.host import Batch, Mentions, Words, beside
from asreader.data.example import Sentence, propose_candidates
from asreader.data.occurrences import find_occurrences
from asreader.data.vocabulary import ENTITY, UNKNOWN, Vocabulary

Places = tuple[int, ...]
NO_ANSWERS = torch.tensor([-1])


@dataclass(frozen=True)
class Choices:
    """Candidates: the one word whose vector stands for each, its places in the document, and whether it counts."""

    words: tuple[str, ...]
    heads: tuple[str, ...]
    places: tuple[Places, ...]
    eligible: tuple[bool, ...]

    @cached_property
    def mask(self) -> Tensor:
        """Which candidates count."""
        if all(self.eligible):
            return _unpadded(len(self.eligible))[0]
        return torch.tensor([self.eligible], dtype=torch.bool)

    @cached_property
    def mentions(self) -> tuple[Tensor, Tensor]:
        """Pairs (candidate, position)."""
        mentioned = [candidate for candidate, places in enumerate(self.places) for _ in places]
        return torch.tensor(mentioned, dtype=torch.int64), torch.tensor([*chain(*self.places)], dtype=torch.int64)


@dataclass(frozen=True)
class Asked:
    """A question as a Batch of one, its candidates in words, and where in the Batch the document begins and ends."""

    batch: Batch
    choices: Choices
    start: int
    stop: int


class Document:
    """The words of a document, in order of appearance, with their places and their rows."""

    def __init__(self, sentences: tuple[Sentence, ...], vocabulary: Vocabulary, question_at: str = "apart") -> None:
        self._sentences, self._vocabulary, self._question_at = sentences, vocabulary, question_at
        self._words = tuple(chain(*sentences))
        places: dict[str, list[int]] = {}
        for place, word in enumerate(self._words):
            places.setdefault(word, []).append(place)
        self._places = {word: tuple(where) for word, where in places.items()}
        self._pools = {UNKNOWN: vocabulary.unknown_rows, ENTITY: vocabulary.entity_rows}
        self._row, self._lent = self._with_rows(places, {}, {UNKNOWN: 0, ENTITY: 0})
        self._rows = [self._row[word] for word in self._words]

    @cached_property
    def words(self) -> Words:
        """The document by itself."""
        return _words(self._rows)

    def asked(self, question: Sentence, candidates: tuple[str, ...] = ()) -> Asked:
        """A question about these candidates or, without any, about every word that may be proposed."""
        choices = self._given(candidates) if candidates else self._proposed
        row, _ = self._with_rows((*question, *choices.heads), self._row, self._lent)
        question_rows = [row[word] for word in question]
        document, readable, start = self._beside(question_rows)
        mentioned, positions = choices.mentions
        batch = Batch(
            document=document,
            question=_words(question_rows),
            readable=readable,
            candidates=torch.tensor([[row[word] for word in choices.heads]], dtype=torch.int64),
            eligible=choices.mask,
            mentions=Mentions(mentioned, positions + start if start else positions),
            answers=NO_ANSWERS,
        )
        return Asked(batch, choices, start, start + len(self._rows))

    def _with_rows(
        self, words: Iterable[str], known: Mapping[str, int], lent: Mapping[int, int]
    ) -> tuple[dict[str, int], dict[int, int]]:
        """Rows of these words, and how many are lent then. Words that are not known yet and have none of their own
        borrow one, in order of appearance, behind those who borrowed before (`entities.borrowed`)."""
        row, lent = dict[str, int](), dict(lent)
        for word in words:
            if word not in row:
                number = known[word] if word in known else self._vocabulary.row(word)
                if number < 0:
                    pool, before = self._pools[number], lent[number]
                    lent[number] += 1
                    number = pool[before % len(pool)]
                row[word] = number
        return row, lent

    def _beside(self, question: list[int]) -> tuple[Words, Tensor, int]:
        """What is read as the document, where attention may go, and where the document proper begins."""
        if self._question_at == "apart":
            return self.words, self.words.mask, 0
        before, behind = beside(np.array(question, np.int32), self._question_at)
        words = _words([*before, *self._rows, *behind])
        column = torch.arange(words.rows.shape[1])
        start, stop = len(before), len(before) + len(self._rows)
        return words, ((column >= start) & (column < stop))[None], start

    @cached_property
    def _proposed(self) -> Choices:
        words = propose_candidates(self._sentences)
        return Choices(words, words, tuple(self._places[word] for word in words), (True,) * len(words))

    def _given(self, candidates: tuple[str, ...]) -> Choices:
        """As the data has them: one of no words has no places, and neither has a further copy of one."""
        heads, places, eligible, met = [], [], [], set[str]()
        for candidate in candidates:
            parts = candidate.split()
            counts = bool(parts) and candidate not in met
            met.add(candidate)
            heads.append(parts[-1] if parts else candidate)
            places.append(self._covered(parts) if counts else ())
            eligible.append(counts)
        return Choices(candidates, tuple(heads), tuple(places), tuple(eligible))

    def _covered(self, parts: list[str]) -> Places:
        """The positions that these words, side by side, cover."""
        if len(parts) == 1 or parts[0] not in self._places:
            return self._places.get(parts[0], ())
        starts = find_occurrences(self._words, " ".join(parts))
        return tuple(sorted({start + offset for start in starts for offset in range(len(parts))}))


def _words(rows: list[int]) -> Words:
    """One sequence, which has no padding."""
    return Words(torch.tensor([rows]), *_unpadded(len(rows)))


@lru_cache(maxsize=1 << 10)
def _unpadded(length: int) -> tuple[Tensor, Tensor]:
    """Mask and length of every sequence that is so long; nobody changes them."""
    with torch.inference_mode(False):
        return torch.ones((1, length), dtype=torch.bool), torch.tensor([length])
