"""held-out texts -> hashes of their n-grams -> the sentences of a training book that repeat them: the leak check.

Words are compared in lower case and without punctuation, so editions with other commas still match. An n-gram is a
64-bit hash; a collision is expected once in some billion comparisons and costs one window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from asreader.data.example import Sentence

NGRAM_WORDS = 10
"""Words of an n-gram: ten equal words in a row are hardly ever a coincidence."""
_FACTOR = 0x9E3779B97F4A7C15
_POWERS = np.array([pow(_FACTOR, power, 1 << 64) for power in range(NGRAM_WORDS)], dtype=np.uint64)


@dataclass(frozen=True)
class Overlap:
    """What one book shares with the held-out texts: indices of sentences, and n-grams out of all its n-grams."""

    sentences: frozenset[int]
    shared_ngrams: int
    total_ngrams: int


def hash_ngrams(book: Iterable[Sentence]) -> NDArray[np.uint64]:
    """The sorted unique n-gram hashes of a text."""
    return np.unique(_hash_windows(_hash_words(chain.from_iterable(book))))


def merge_ngrams(texts: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """The sorted unique n-gram hashes of several texts."""
    return np.unique(np.concatenate([np.empty(0, np.uint64), *texts]))


def find_overlap(book: Sequence[Sentence], held_out: NDArray[np.uint64]) -> Overlap:
    """Find where a book repeats ten words or more of the held-out texts."""
    hashes = _hash_windows(_hash_words(chain.from_iterable(book)))
    if not len(held_out) or not len(hashes):
        return Overlap(frozenset(), 0, len(hashes))
    indices = np.searchsorted(held_out, hashes).clip(max=len(held_out) - 1)
    starts = np.flatnonzero(held_out[indices] == hashes)
    lengths = [len(_hash_words(sentence)) for sentence in book]
    sentence_of = np.repeat(np.arange(len(book)), lengths)
    shared = np.unique(sentence_of[(starts[:, None] + np.arange(NGRAM_WORDS)).ravel()])
    return Overlap(frozenset(shared.tolist()), len(starts), len(hashes))


def _hash_words(words: Iterable[str]) -> NDArray[np.uint64]:
    return np.array([_hash_word(word) for word in words if any(map(str.isalnum, word))], dtype=np.uint64)


@lru_cache(maxsize=1 << 18)
def _hash_word(word: str) -> int:
    """A 64-bit hash that is equal on every machine and in every process, unlike hash()."""
    return int.from_bytes(blake2b(word.lower().encode(), digest_size=8).digest(), "little")


def _hash_windows(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One hash for each run of NGRAM_WORDS words: a polynomial in the word hashes, modulo 2**64."""
    count = max(0, len(words) - NGRAM_WORDS + 1)
    total = np.zeros(count, dtype=np.uint64)
    for power, factor in enumerate(_POWERS):
        total += words[power : power + count] * factor
    return total
