from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from asreader.data.text.sentence_splitter import split_sentences


@given(st.lists(st.sampled_from(["a", ".", "?", "''", ")", "b"])))
def test_sentences_lose_no_word(words: list[str]) -> None:
    sentences = split_sentences(tuple(words))
    assert [word for sentence in sentences for word in sentence] == words
    assert all(sentences)
    assert all(any(end in sentence for end in ".?") for sentence in sentences[:-1])


def test_closing_quotes_belong_to_the_sentence_before_them() -> None:
    words = tuple("` go ! '' she said . `` no".split())
    assert split_sentences(words) == (("`", "go", "!", "''"), ("she", "said", "."), ("``", "no"))
