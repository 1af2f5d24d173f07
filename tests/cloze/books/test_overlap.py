"""The leak check, compared with sets of word tuples."""

from __future__ import annotations

from itertools import chain
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from asreader.cloze.books import overlap
from asreader.cloze.books.overlap import NGRAM_WORDS
from asreader.data.example import Sentence

BOOK = st.lists(st.lists(st.sampled_from(["a", "B", "b", ",", "."]), max_size=15).map(tuple), max_size=12)


def runs(book: list[Sentence]) -> list[tuple[str, ...]]:
    words = [word.lower() for word in chain.from_iterable(book) if word.isalnum()]
    return [tuple(words[start : start + NGRAM_WORDS]) for start in range(len(words) - NGRAM_WORDS + 1)]


@given(BOOK, BOOK)
def test_finds_the_same_as_sets_of_word_tuples(book: list[Sentence], held_out: list[Sentence]) -> None:
    found = overlap.find_overlap(book, overlap.merge_ngrams([overlap.hash_ngrams(held_out)]))
    known = set(runs(held_out))
    assert found.total_ngrams == len(runs(book))
    assert found.shared_ngrams == sum(run in known for run in runs(book))
    of = [number for number, sentence in enumerate(book) for word in sentence if word.isalnum()]
    touched = {of[start + step] for start, run in enumerate(runs(book)) if run in known for step in range(NGRAM_WORDS)}
    assert found.sentences == touched


def test_capitals_and_commas_are_ignored() -> None:
    words = "once there was an old sailor who lived beside the grey harbour alone".split()
    copy = [*words[:4], ",", words[4].upper(), *words[5:]]
    assert (
        overlap.find_overlap([tuple(copy)], overlap.hash_ngrams([tuple(words)])).shared_ngrams
        == len(words) - NGRAM_WORDS + 1
    )


def test_new_text_has_no_overlap() -> None:
    random = Random(1)
    text = [tuple(random.choices([f"w{number}" for number in range(500)], k=20)) for _ in range(300)]
    found = overlap.find_overlap(text[:150], overlap.hash_ngrams(text[150:]))
    assert not found.sentences and not found.shared_ngrams and found.total_ngrams > 2900
