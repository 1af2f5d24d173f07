"""a document, and question after question about it -> Batches of one: what the document alone decides is made once.

`Batcher` makes the same of a store that holds this one question; that is the definition. Here no store is made, and no
word of the document is looked up again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from asreader.data.batching import Batch, Mentions, Numbers, Words, beside
from asreader.data.entities import borrowed
from asreader.data.example import Sentence, proposed
from asreader.data.occurrences import occurrences
from asreader.data.vocabulary import Vocabulary

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
        stand_ins = vocabulary.rows(tuple(places))
        self._anonymous = stand_ins[stand_ins < 0]
        self._row = dict(zip(places, _borrowed(stand_ins, vocabulary).tolist(), strict=True))
        self._rows = [self._row[word] for word in self._words]

    @cached_property
    def words(self) -> Words:
        """The document by itself."""
        return _words(self._rows)

    def asked(self, question: Sentence, candidates: tuple[str, ...] = ()) -> Asked:
        """A question about these candidates or, without any, about every word that may be proposed."""
        choices = self._given(candidates) if candidates else self._proposed
        row = self._row | self._added(chain(question, choices.heads))
        question_rows = [row[word] for word in question]
        document, readable, start = self._beside(question_rows)
        mentioned, positions = choices.mentions
        batch = Batch(
            document=document,
            question=_words(question_rows),
            readable=readable,
            candidates=torch.tensor([[row[word] for word in choices.heads]], dtype=torch.int64),
            eligible=torch.tensor([choices.eligible], dtype=torch.bool),
            mentions=Mentions(mentioned, positions + start if start else positions),
            answers=NO_ANSWERS,
        )
        return Asked(batch, choices, start, start + len(self._rows))

    def _added(self, words: Iterable[str]) -> dict[str, int]:
        """Rows of the words that do not stand in the document. They borrow theirs behind those that do."""
        added = tuple(dict.fromkeys(word for word in words if word not in self._row))
        stand_ins = np.concatenate([self._anonymous, self._vocabulary.rows(added)])
        rows = _borrowed(stand_ins, self._vocabulary)[len(self._anonymous) :]
        return dict(zip(added, rows.tolist(), strict=True))

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
        words = proposed(self._sentences)
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
        starts = occurrences(self._words, " ".join(parts))
        return tuple(sorted({start + offset for start in starts for offset in range(len(parts))}))


def _borrowed(stand_ins: Numbers, vocabulary: Vocabulary) -> Numbers:
    """Rows of distinct words in order of appearance."""
    if not (stand_ins < 0).any():
        return stand_ins
    return borrowed(np.arange(len(stand_ins), dtype=np.int32), stand_ins, vocabulary)


def _words(rows: list[int]) -> Words:
    """One sequence, which has no padding."""
    return Words(torch.tensor([rows]), torch.ones((1, len(rows)), dtype=torch.bool), torch.tensor([len(rows)]))
