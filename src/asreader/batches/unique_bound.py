"""examples of a batch -> an upper bound on its unique rows, which the host must know before a launch of static shape.

The most frequent rows are in nearly every batch and are counted as a whole. Of the others the distinct ones of each
example are known here, and those of a batch are counted exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asreader.data.store import Ragged
from asreader.data.vocabulary import PADDING_ROW, SEPARATOR_ROW, Vocabulary

IntArray = NDArray[np.int32]

FREQUENT = 512
"""Rows that are assumed to be in every batch."""


@dataclass(frozen=True)
class RareRows:
    """The distinct rows of each example that are not frequent."""

    rows: Ragged

    def count_unique(self, batches: NDArray[np.integer]) -> NDArray[np.integer]:
        """How many each batch of examples has; all batches at once, or the host would be slower than a GPU."""
        ends = self.rows.ends[batches]
        counts = ends - np.where(batches > 0, self.rows.ends[batches - 1], 0)
        flat = counts.ravel()
        positions = np.arange(flat.sum()) + np.repeat(ends.ravel() - flat.cumsum(), flat)
        marks = np.zeros((len(batches), self._table), np.bool_)
        marks[np.repeat(np.arange(len(batches)), counts.sum(axis=1)), self.rows.values[positions]] = True
        counted: NDArray[np.integer] = np.count_nonzero(marks, axis=1)
        return counted

    @cached_property
    def _table(self) -> int:
        """Size of a table that has them all."""
        return int(self.rows.values.max(initial=-1)) + 1


def find_frequent_rows(documents: IntArray, questions: IntArray, vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """The rows that nearly every batch has; all that may be shuffled are among them."""
    counts = np.bincount(documents, minlength=vocabulary.size) + np.bincount(questions, minlength=vocabulary.size)
    frequent = np.zeros(vocabulary.size, np.bool_)
    frequent[np.argsort(-counts, kind="stable")[:FREQUENT]] = True
    frequent[[PADDING_ROW, SEPARATOR_ROW]] = True
    for pool in (vocabulary.unknown_rows, vocabulary.entity_rows):
        frequent[pool.start : pool.stop] = True
    return frequent


def find_rare_rows(
    documents: IntArray,
    lengths: NDArray[np.integer],
    questions: IntArray,
    asked: NDArray[np.integer],
    frequent: NDArray[np.bool_],
) -> RareRows:
    """Of examples whose documents, and whose questions, lie end to end."""
    pairs = []
    for rows, counts in ((documents, lengths), (questions, asked)):
        rare = np.flatnonzero(~frequent[rows])
        pairs.append(np.searchsorted(np.cumsum(counts), rare, side="right") * len(frequent) + rows[rare])
    ordered = np.sort(np.concatenate(pairs))  # np.unique is ten times as slow here
    once = ordered[np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)]]
    counts = np.bincount(once // len(frequent), minlength=len(lengths))
    return RareRows(Ragged((once % len(frequent)).astype(np.int32), np.cumsum(counts)))
