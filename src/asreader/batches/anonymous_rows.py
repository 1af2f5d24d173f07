"""words without a vector of their own -> borrowed rows: @entityN and unknown words.

Such a word is only itself and nothing more. Inside one example each gets a row of its pool in order of first
appearance, so that renaming entities changes nothing; while training, `redrawn` deals the rows anew for every batch
(appendix A of the paper), so that no row can come to mean anything.

The names of a book that nobody trained on are such words, and a reader has to point at them; of those it trains on
most have vectors. So `strange` lets some candidates of a training question be met as if for the first time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asreader.data.vocabulary import ENTITY, UNKNOWN, Vocabulary

Numbers = NDArray[np.int32]


def borrowed(words: Numbers, rows: Numbers, vocabulary: Vocabulary) -> Numbers:
    """Rows of an example's words (all of them, in reading order), where `rows` has stand-ins for anonymous words.

    With more anonymous words than rows in the pool, rows are shared; the words still stay apart in the pointer sum.
    """
    rows = rows.copy()
    for stand_in, pool in ((UNKNOWN, vocabulary.unknown_rows), (ENTITY, vocabulary.entity_rows)):
        places = np.flatnonzero(rows == stand_in)
        if len(places):
            _, first, which = np.unique(words[places], return_index=True, return_inverse=True)
            rank = np.argsort(np.argsort(first))
            rows[places] = pool.start + rank[which] % len(pool)
    return rows


def redrawn(vocabulary: Vocabulary, generator: np.random.Generator) -> Numbers:
    """A table row -> row that deals the anonymous rows anew and leaves every other row alone."""
    table = np.arange(vocabulary.size, dtype=np.int32)
    for pool in (vocabulary.unknown_rows, vocabulary.entity_rows):
        table[pool.start : pool.stop] = generator.permutation(np.arange(pool.start, pool.stop, dtype=np.int32))
    return table


def strange(key: Any, numbers: Any, places: Any, share: float) -> Any:
    """Whether a candidate, at a place among those of an example, is met as an unknown word in the batch of this key.

    A hash of the three and no generator's draw: numpy's arrays and a device's tensors (int64) give the same.
    """
    mixed = _mixed(_mixed(_mixed(key) ^ numbers) ^ places)
    return mixed < int(share * (1 << 32))


def _mixed(value: Any) -> Any:
    """32 bits stirred so that neighbours are as different as any other two."""
    for _ in range(2):
        value = ((value >> 16) ^ value) * 0x45D9F3B & 0xFFFFFFFF
    return (value >> 16) ^ value
