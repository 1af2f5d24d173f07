"""Where a candidate occurs in a document, compared with a search in the joined text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from asreader.data.occurrences import find_occurrences

WORDS = st.lists(st.sampled_from(["ha", "ho", "hum"]), max_size=12)


def test_a_word_occurs_where_it_is_written() -> None:
    assert find_occurrences(["the", "cat", "saw", "The", "cat"], "cat") == [1, 4]
    assert find_occurrences(["the", "cat", "saw", "The", "cat"], "the") == [0]


def test_a_phrase_occurs_where_its_words_are_neighbours() -> None:
    words = ("New", "York", "is", "newer", "than", "York", ",", "New", "York")
    assert find_occurrences(words, "New York") == [0, 7]
    assert find_occurrences(words, "York New") == []


def test_an_empty_candidate_occurs_nowhere() -> None:
    assert find_occurrences(["a", "b"], "") == []
    assert find_occurrences(["a", "b"], "  ") == []
    assert find_occurrences([], "a") == []


@given(WORDS, st.lists(st.sampled_from(["ha", "ho"]), min_size=1, max_size=3))
def test_equals_a_search_in_the_text(words: list[str], parts: list[str]) -> None:
    ends_here = [" ".join([*words[start:], ""]).startswith(" ".join([*parts, ""])) for start in range(len(words))]
    assert find_occurrences(words, " ".join(parts)) == [start for start, here in enumerate(ends_here) if here]
