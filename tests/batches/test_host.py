from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.batches.host import Batch, Batcher, plan
from asreader.data.example import GAP, Example
from asreader.data.store import encode_examples
from asreader.data.vocabulary import SEPARATOR_ROW, Vocabulary

WORDS = Vocabulary(("the", "gave", "to", "apple"), unknown=3, entities=4)
WORD = st.sampled_from(["the", "gave", "Ana", "Bo", "New", "York", "@entity1", "@entity5", "Cy", "De"])
PHRASE = st.lists(WORD, max_size=3).map(" ".join)


@st.composite
def examples(draw: st.DrawFn) -> Example:
    document = draw(st.lists(st.lists(WORD, min_size=1, max_size=6).map(tuple), min_size=1, max_size=4).map(tuple))
    candidates = draw(st.lists(PHRASE, max_size=6).map(tuple))
    return Example("x", document, (*draw(st.lists(WORD, max_size=4)), GAP), candidates)


def mentioned(batch: Batch) -> set[tuple[int, int, int]]:
    width, choices = batch.document.rows.shape[1], batch.candidates.shape[1]
    pairs = zip(batch.mentions.candidates.tolist(), batch.mentions.positions.tolist(), strict=True)
    found = [(c // choices, c % choices, p % width) for c, p in pairs]
    assert all(
        c // choices == p // width for c, p in zip(batch.mentions.candidates, batch.mentions.positions, strict=True)
    )
    assert len(found) == len(set(found))
    return set(found)


def slowly(example: Example) -> set[tuple[int, int]]:
    """Positions covered by a candidate's words side by side; a later copy and an empty candidate have none."""
    words, found = example.words, set()
    for place, candidate in enumerate(example.choices):
        parts = tuple(candidate.split())
        if parts and candidate not in example.choices[:place]:
            for start in range(len(words)):
                if words[start : start + len(parts)] == parts:
                    found |= {(place, position) for position in range(start, start + len(parts))}
    return found


@given(st.lists(examples(), min_size=1, max_size=4))
def test_mentions_are_where_a_slow_look_finds_them(questions: list[Example]) -> None:
    batch = Batcher(encode_examples(questions), WORDS).batch(range(len(questions)))
    assert mentioned(batch) == {(row, *pair) for row, example in enumerate(questions) for pair in slowly(example)}


@given(st.lists(examples(), min_size=1, max_size=4), st.sampled_from(["before", "after", "around"]))
def test_a_question_beside_the_document_moves_mentions_and_gets_no_attention(questions: list[Example], at: str) -> None:
    batch = Batcher(encode_examples(questions), WORDS, question_at=at).batch(range(len(questions)))
    start = [len(example.question) + 1 if at != "after" else 0 for example in questions]
    slow = {(row, c, p + start[row]) for row, example in enumerate(questions) for c, p in slowly(example)}
    assert mentioned(batch) == slow
    for row, example in enumerate(questions):
        question = batch.question.rows[row, : len(example.question)].tolist()
        stop = start[row] + len(example.words)
        rows = batch.document.rows[row, : batch.document.lengths[row]].tolist()
        assert rows[: start[row]] == ([*question, SEPARATOR_ROW] if at != "after" else [])
        assert rows[stop:] == ([SEPARATOR_ROW, *question] if at != "before" else [])
        assert batch.readable[row].tolist() == [start[row] <= n < stop for n in range(batch.readable.shape[1])]


def test_unknown_words_stay_apart_and_are_the_same_word_everywhere() -> None:
    example = Example("x", (("Ana", "gave", "Bo", "the", "apple"),), ("Bo", "thanked", GAP), ("Ana", "Bo", "Cy"), "Ana")
    batch = Batcher(encode_examples([example]), WORDS).batch([0])
    ana, _, bo, *_ = batch.document.rows[0].tolist()
    assert ana != bo
    assert {ana, bo} <= set(WORDS.unknown_rows)
    assert batch.question.rows[0, 0] == bo
    assert batch.candidates[0, :2].tolist() == [ana, bo]
    assert batch.answers.tolist() == [0]


def test_more_unknown_words_than_vectors_still_have_their_own_mentions() -> None:
    words = tuple(f"name{n}" for n in range(10))
    batch = Batcher(encode_examples([Example("x", (words,), (GAP,), words)]), WORDS).batch([0])
    assert set(batch.document.rows[0].tolist()) == set(WORDS.unknown_rows)
    assert mentioned(batch) == {(0, n, n) for n in range(10)}


def test_eligible_leaves_out_copies_and_empty_candidates() -> None:
    example = Example("x", (("Ana", "gave"),), (GAP,), ("Ana", "", "Ana", "gave"))
    other = Example("y", (("Ana",),), (GAP,), ("Ana",))
    batch = Batcher(encode_examples([example, other]), WORDS).batch([0, 1])
    assert batch.eligible.tolist() == [[True, False, False, True], [True, False, False, False]]


def test_answers_that_cannot_be_chosen_are_minus_one() -> None:
    questions = [
        Example("no answer", (("Ana", "gave"),), (GAP,), ("Ana",)),
        Example("not a candidate", (("Ana", "gave"),), (GAP,), (), "Bo"),
        Example("a candidate, not in the document", (("Ana", "gave"),), (GAP,), ("Ana", "Bo"), "Bo"),
    ]
    store = encode_examples(questions)
    assert Batcher(store, WORDS).batch([0, 1, 2]).answers.tolist() == [-1, -1, 1]
    assert store.answerable.tolist() == [0, 0, 0]


def test_redrawing_permutes_only_the_anonymous_rows() -> None:
    example = Example("x", (("Ana", "gave", "@entity1", "the", "Bo", "@entity7"),), ("the", GAP), ("Ana", "the"))
    batcher = Batcher(encode_examples([example]), WORDS)
    plain = batcher.batch([0])
    drawn = [batcher.batch([0], np.random.default_rng(seed)) for seed in range(50)]
    rows = np.array([batch.document.rows[0].tolist() for batch in drawn])
    assert (rows[:, [1, 3]] == plain.document.rows[0, [1, 3]].numpy()).all()
    for column, pool in (
        (0, WORDS.unknown_rows),
        (4, WORDS.unknown_rows),
        (2, WORDS.entity_rows),
        (5, WORDS.entity_rows),
    ):
        assert set(rows[:, column]) == set(pool)
    assert all(batch.candidates[0, 0] == batch.document.rows[0, 0] for batch in drawn)
    assert [batch.document.rows.tolist() for batch in drawn[:3]] == [
        batcher.batch([0], np.random.default_rng(seed)).document.rows.tolist() for seed in range(3)
    ]


def test_strange_candidates_are_met_as_unknown_words_of_their_own() -> None:
    """Everywhere in their example, each for itself, in the wanted share of the draws; other words stay who they are."""
    document = (("the", "apple", "gave", "Ana", "to", "the", "to"),)
    example = Example("x", document, ("apple", "gave", GAP), ("the", "apple", "Ana", "the"), "the")
    batcher = Batcher(encode_examples([example] * 4), replace(WORDS, unknown=9), anonymise=0.3)
    known = batcher.batch([0])
    drawn = [batcher.batch([number], np.random.default_rng(seed)) for seed in range(500) for number in range(4)]
    rows = np.array([batch.document.rows[0].tolist() for batch in drawn])
    asked = np.array([batch.question.rows[0].tolist() for batch in drawn])
    plain = known.document.rows[0].numpy()
    assert (rows[:, [2, 4, 6]] == plain[[2, 4, 6]]).all()
    assert (rows[:, 0] == rows[:, 5]).all()
    assert (rows[:, 1] == asked[:, 0]).all()
    strange = rows != plain
    assert np.isin(rows[:, [0, 1]][strange[:, [0, 1]]], list(replace(WORDS, unknown=9).unknown_rows)).all()
    assert all(len({*row[[0, 1, 3]]}) == 3 for row in rows)
    assert strange[:, [0, 1]].mean(axis=0) == pytest.approx([0.3, 0.3], abs=0.04)
    assert (strange[:, 0] & strange[:, 1]).mean() == pytest.approx(0.09, abs=0.03)


@given(st.integers(1, 300), st.integers(1, 7), st.integers(1, 5), st.integers(0, 9))
def test_an_epoch_has_every_question_once_in_sorted_chunks(count: int, size: int, prefetch: int, epoch: int) -> None:
    lengths = np.random.default_rng(count).integers(1, 50, count)
    numbers = np.arange(count)
    batches = plan(lengths, numbers, size=size, prefetch=prefetch, seed=3, epoch=epoch)
    assert sorted(np.concatenate(batches).tolist()) == numbers.tolist()
    assert all(len(batch) == size for batch in batches[:-1])
    for start in range(0, len(batches), prefetch):
        chunk = lengths[np.concatenate(batches[start : start + prefetch])]
        assert (np.diff(chunk) >= 0).all()
    again = plan(lengths, numbers, size=size, prefetch=prefetch, seed=3, epoch=epoch)
    assert all((a == b).all() for a, b in zip(batches, again, strict=True))


@pytest.mark.parametrize("other", [{"epoch": 1}, {"seed": 4}])
def test_another_epoch_or_seed_is_another_order(other: dict[str, int]) -> None:
    lengths = np.ones(100, int)
    settings = {"seed": 3, "epoch": 0}
    first, second = (
        np.concatenate(plan(lengths, np.arange(100), size=10, prefetch=2, **chosen))
        for chosen in (settings, settings | other)
    )
    assert first.tolist() != second.tolist()
