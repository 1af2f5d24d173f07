"""rows of a data set's words -> which of them are rare, and how many different ones a batch has.

A step needs room for the distinct words of its batch, and the host has to say how much before anything is known on the
device. Nearly all frequent words are in every batch; of the rare ones those of each example are known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asreader.data.store import Ragged
from asreader.data.vocabulary import PADDING_ROW, SEPARATOR_ROW, Vocabulary

Numbers = NDArray[np.int32]

FREQUENT = 512
"""So many rows are taken to be in every batch."""


@dataclass(frozen=True)
class RareWords:
    """The distinct rows of each example that are not frequent."""

    rows: Ragged

    def different(self, batches: NDArray[np.integer]) -> NDArray[np.integer]:
        """How many each batch of examples has: all are looked up at once, or the host would be slower than a GPU."""
        ends = self.rows.ends[batches]
        counts = ends - np.where(batches > 0, self.rows.ends[batches - 1], 0)
        flat = counts.ravel()
        places = np.arange(flat.sum()) + np.repeat(ends.ravel() - flat.cumsum(), flat)
        met = np.zeros((len(batches), self._table), np.bool_)
        met[np.repeat(np.arange(len(batches)), counts.sum(axis=1)), self.rows.values[places]] = True
        found: NDArray[np.integer] = np.count_nonzero(met, axis=1)
        return found

    @cached_property
    def _table(self) -> int:
        """Rows of a table that has them all."""
        return int(self.rows.values.max(initial=-1)) + 1


def frequent_rows(documents: Numbers, questions: Numbers, vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """The rows that nearly every batch has; all that may be dealt anew are among them."""
    counts = np.bincount(documents, minlength=vocabulary.size) + np.bincount(questions, minlength=vocabulary.size)
    frequent = np.zeros(vocabulary.size, np.bool_)
    frequent[np.argsort(-counts, kind="stable")[:FREQUENT]] = True
    frequent[[PADDING_ROW, SEPARATOR_ROW]] = True
    for pool in (vocabulary.unknown_rows, vocabulary.entity_rows):
        frequent[pool.start : pool.stop] = True
    return frequent


def rare_words(
    documents: Numbers,
    lengths: NDArray[np.integer],
    questions: Numbers,
    asked: NDArray[np.integer],
    frequent: NDArray[np.bool_],
) -> RareWords:
    """Those of examples whose documents and questions lie one behind the other."""
    pairs = []
    for rows, counts in ((documents, lengths), (questions, asked)):
        rare = np.flatnonzero(~frequent[rows])
        pairs.append(np.searchsorted(np.cumsum(counts), rare, side="right") * len(frequent) + rows[rare])
    ordered = np.sort(np.concatenate(pairs))  # np.unique is ten times as slow here
    once = ordered[np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)]]
    counts = np.bincount(once // len(frequent), minlength=len(lengths))
    return RareWords(Ragged((once % len(frequent)).astype(np.int32), np.cumsum(counts)))
