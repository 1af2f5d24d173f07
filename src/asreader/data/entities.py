"""words without a vector of their own -> borrowed rows: @entityN and unknown words.

Such a word is only itself and nothing more. Inside one example each gets a row of its pool in order of first
appearance, so that renaming entities changes nothing; while training, `redrawn` deals the rows anew for every batch
(appendix A of the paper), so that no row can come to mean anything.
"""

from __future__ import annotations

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
