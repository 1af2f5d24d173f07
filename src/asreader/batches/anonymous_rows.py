"""words without a vector of their own -> rows that they share: @entityN and unknown words.

Inside one example each such word gets a row of its pool in order of first appearance, so renaming entities changes
nothing. In training, the rows are shuffled for every batch (appendix A of the paper), so that no row acquires a
meaning.

A reader has to point at names of books that it was not trained on, which are unknown words; but most names that it
trains on have vectors. So `draw_anonymized` lets some candidates of a training question appear as unknown words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asreader.data.vocabulary import ENTITY, UNKNOWN, Vocabulary
from asreader.ops.keyed_dropout import hash32

IntArray = NDArray[np.int32]


def assign_anonymous_rows(words: IntArray, rows: IntArray, vocabulary: Vocabulary) -> IntArray:
    """Rows of an example's words (all of them, in reading order), where `rows` has UNKNOWN or ENTITY for some.

    With more anonymous words than rows in the pool, rows are shared; the words still stay apart in the pointer sum.
    """
    rows = rows.copy()
    for stand_in, pool in ((UNKNOWN, vocabulary.unknown_rows), (ENTITY, vocabulary.entity_rows)):
        positions = np.flatnonzero(rows == stand_in)
        if len(positions):
            _, first, which = np.unique(words[positions], return_index=True, return_inverse=True)
            rank = np.argsort(np.argsort(first))
            rows[positions] = pool.start + rank[which] % len(pool)
    return rows


def shuffle_anonymous_rows(vocabulary: Vocabulary, generator: np.random.Generator) -> IntArray:
    """Where each anonymous row goes in a batch: a permutation of each pool, one after the other."""
    pools = (vocabulary.unknown_rows, vocabulary.entity_rows)
    return np.concatenate(
        [generator.permutation(np.arange(pool.start, pool.stop, dtype=np.int32)) for pool in pools if len(pool)]
    )


def draw_anonymized(key: Any, examples: Any, candidates: Any, probability: float) -> Any:
    """Whether a candidate of an example appears as an unknown word in the batch of this key.

    A hash of the three and not the draw of a generator: NumPy arrays and tensors of a device (int64) agree.
    """
    return hash32(hash32(hash32(key) ^ examples) ^ candidates) < int(probability * (1 << 32))
