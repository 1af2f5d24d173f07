"""held-out texts -> their n-grams -> which sentences of a training book stand in them too: the leak check.

Words are compared in lower case and without punctuation, so that another edition's commas hide nothing. An n-gram is
one 64-bit number; a false alarm is expected once in some billion comparisons and costs one window.
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
"""Words of an n-gram: ten in a row are hardly ever the same by chance."""
_FACTOR = 0x9E3779B97F4A7C15
_POWERS = np.array([pow(_FACTOR, power, 1 << 64) for power in range(NGRAM_WORDS)], dtype=np.uint64)


@dataclass(frozen=True)
class Overlap:
    """What one book shares with the held-out texts: the sentences, and which part of all its n-grams."""

    sentences: frozenset[int]
    shared: int
    total: int


def hash_ngrams(book: Iterable[Sentence]) -> NDArray[np.uint64]:
    """The distinct n-grams of a text, sorted."""
    return np.unique(_hashes(_numbers(chain.from_iterable(book))))


def merge_ngrams(texts: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """The n-grams of several texts."""
    return np.unique(np.concatenate([np.empty(0, np.uint64), *texts]))


def find_overlap(book: Sequence[Sentence], held_out: NDArray[np.uint64]) -> Overlap:
    """Where a book repeats ten words or more of the held-out texts."""
    found = _hashes(_numbers(chain.from_iterable(book)))
    if not len(held_out) or not len(found):
        return Overlap(frozenset(), 0, len(found))
    places = np.searchsorted(held_out, found).clip(max=len(held_out) - 1)
    starts = np.flatnonzero(held_out[places] == found)
    lengths = [len(_numbers(sentence)) for sentence in book]
    sentence_of = np.repeat(np.arange(len(book)), lengths)
    touched = np.unique(sentence_of[(starts[:, None] + np.arange(NGRAM_WORDS)).ravel()])
    return Overlap(frozenset(touched.tolist()), len(starts), len(found))


def _numbers(words: Iterable[str]) -> NDArray[np.uint64]:
    return np.array([_number(word) for word in words if any(map(str.isalnum, word))], dtype=np.uint64)


@lru_cache(maxsize=1 << 18)
def _number(word: str) -> int:
    """The same number on every machine and in every process, unlike hash()."""
    return int.from_bytes(blake2b(word.lower().encode(), digest_size=8).digest(), "little")


def _hashes(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One number for each run of LENGTH words: a polynomial in their numbers, modulo 2**64."""
    count = max(0, len(words) - NGRAM_WORDS + 1)
    total = np.zeros(count, dtype=np.uint64)
    for power, factor in enumerate(_POWERS):
        total += words[power : power + count] * factor
    return total
