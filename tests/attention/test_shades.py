"""Shaded words: levels, ranks, spacing and excerpts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from asreader.attention import shades
from asreader.inference.answer import Answer, Choice


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60))
def test_relative_attention_and_levels_follow_the_attention(counts: list[int]) -> None:
    attention = tuple(count / (sum(counts) or 1) for count in counts)
    answer = Answer(None, 0.0, (), ("?",), (tuple("w" * len(counts)),), attention)
    relative = shades.compute_relative_attention(answer)
    peak = max(*attention, min(1.0, shades.FULL_SHADE_FACTOR / len(counts)), 0.0)
    assert relative == [weight / peak for weight in attention]
    levels = [shades.choose_level(shade) for shade in relative]
    assert all(0 <= level <= shades.LEVELS for level in levels)
    order = sorted(range(len(counts)), key=attention.__getitem__)
    assert [levels[n] for n in order] == sorted(levels)


def test_uniform_attention_is_faint_and_peaked_attention_is_strong() -> None:
    even = Answer(None, 0.0, (), ("?",), (("w",) * 100,), (0.01,) * 100)
    assert max(word.level for word in shades.shade_words(even)) <= 2
    peaked = Answer(None, 0.0, (), ("?",), (("w",) * 100,), (0.505, *(0.005,) * 99))
    assert [word.level for word in shades.shade_words(peaked)] == [shades.LEVELS] + [0] * 99


def test_overlapping_candidates_get_the_better_rank() -> None:
    words = ("New", "York", "beats", "York")
    choices = (Choice("York", 0.6, (1, 3)), Choice("New York", 0.3, (0, 1)), Choice("Rome", 0.1, ()))
    answer = Answer("York", 0.6, choices, ("?",), (words,), (0.25,) * 4)
    assert shades.rank_positions(answer) == {1: 1, 3: 1, 0: 2}


def test_only_probable_candidates_are_marked_if_every_word_is_one() -> None:
    words = tuple(f"w{n}" for n in range(20))
    shares = [0.5, 0.4, *(0.1 / 18,) * 18]
    choices = tuple(Choice(word, share, (n,)) for n, (word, share) in enumerate(zip(words, shares, strict=True)))
    answer = Answer("w0", 0.5, choices, ("?",), (words,), (0.05,) * 20)
    assert shades.rank_positions(answer) == {0: 1, 1: 2}


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(1, 60), st.randoms(use_true_random=False))
def test_excerpt_has_the_strongest_sentences_in_reading_order(
    lengths: list[int], max_words: int, random: object
) -> None:
    words = sum(lengths)
    attention = tuple(random.random() for _ in range(words))  # type: ignore[attr-defined]
    answer = Answer(None, 0.0, (), ("?",), tuple(("w",) * length for length in lengths), attention)
    spans = shades.select_excerpt(answer, max_words)
    positions = [position for span in spans for position in span]
    assert positions == sorted(set(positions)) and 1 <= len(positions) <= max_words
    sentences = shades.find_sentences(answer)
    assert [position for sentence in sentences for position in sentence] == list(range(words))
    strongest = max(sentences, key=lambda sentence: sum(attention[position] for position in sentence))
    if len(strongest) <= max_words:
        assert strongest in spans and all(span in sentences for span in spans)
    else:
        (span,) = spans
        assert max(strongest, key=attention.__getitem__) in span and len(span) == max_words
        assert strongest.start <= span.start and span.stop <= strongest.stop


def test_punctuation_is_spaced_as_in_print() -> None:
    answer = Answer(None, 0.0, (), ("?",), ((),), ())
    words = ("``", "Do", "n't", "go", ",", "''", "said", "-LRB-", "old", "-RRB-", "Ana", "'s", "dog", ".")
    text = "".join(" " * has_space + word for word, has_space in shades.space_words(words, answer))
    assert text == "“Don't go,” said (old) Ana's dog."
