"""Batches on the host, against slow searches through the words; plans are pure functions of seed, epoch, batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asreader.batches.anonymous_rows import shuffle_anonymous_rows
from asreader.batches.batch import NO_ANSWER_INDEX, NO_CANDIDATE, Batch
from asreader.batches.host import Batcher
from asreader.batches.plan import StepPlan, plan_epoch, plan_step
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


def draw_plan(seed: int, vocabulary: Vocabulary = WORDS) -> StepPlan:
    return plan_step(np.array([0]), vocabulary, seed=seed, epoch=0, batch=0)


def mentions(batch: Batch) -> set[tuple[int, int, int]]:
    """(question, candidate, position) of each mention."""
    places = (batch.candidate_at != NO_CANDIDATE).nonzero().tolist()
    found = [(row, int(batch.candidate_at[row, position, depth]), position) for row, position, depth in places]
    assert len(found) == len(set(found))
    return set(found)


def search_mentions(example: Example) -> set[tuple[int, int]]:
    """Positions covered by a candidate's words side by side; a later copy and an empty candidate have none."""
    words, found = example.words, set()
    for index, candidate in enumerate(example.choices):
        parts = tuple(candidate.split())
        if parts and candidate not in example.choices[:index]:
            for start in range(len(words)):
                if words[start : start + len(parts)] == parts:
                    found |= {(index, position) for position in range(start, start + len(parts))}
    return found


@given(st.lists(examples(), min_size=1, max_size=4))
def test_mentions_are_where_a_slow_search_finds_them(questions: list[Example]) -> None:
    batch = Batcher(encode_examples(questions), WORDS).make_batch(range(len(questions)))
    expected = {(row, *pair) for row, example in enumerate(questions) for pair in search_mentions(example)}
    assert mentions(batch) == expected
    positions = [(row, position) for row, _, position in expected]
    assert batch.candidate_at.shape[-1] == max(1, *map(positions.count, positions), 1)


@given(st.lists(examples(), min_size=1, max_size=4), st.sampled_from(["before", "after", "around"]))
def test_a_question_beside_the_document_moves_mentions_and_gets_no_attention(questions: list[Example], at: str) -> None:
    batch = Batcher(encode_examples(questions), WORDS, question_at=at).make_batch(range(len(questions)))
    start = [len(example.question) + 1 if at != "after" else 0 for example in questions]
    expected = {(row, c, p + start[row]) for row, example in enumerate(questions) for c, p in search_mentions(example)}
    assert mentions(batch) == expected
    for row, example in enumerate(questions):
        question = batch.question.rows[row, : len(example.question)].tolist()
        stop = start[row] + len(example.words)
        rows = batch.document.rows[row, : batch.document.lengths[row]].tolist()
        assert rows[: start[row]] == ([*question, SEPARATOR_ROW] if at != "after" else [])
        assert rows[stop:] == ([SEPARATOR_ROW, *question] if at != "before" else [])
        assert batch.in_document[row].tolist() == [start[row] <= n < stop for n in range(batch.in_document.shape[1])]


@given(st.lists(examples(), min_size=1, max_size=4))
def test_masks_are_true_at_words_and_padding_is_row_0(questions: list[Example]) -> None:
    batch = Batcher(encode_examples(questions), WORDS).make_batch(range(len(questions)))
    for words, texts in (
        (batch.document, [example.words for example in questions]),
        (batch.question, [example.question for example in questions]),
    ):
        assert words.lengths.tolist() == list(map(len, texts))
        assert words.rows.shape[1] == max(map(len, texts))
        assert torch.equal(words.mask, words.rows != 0)
    assert torch.equal(batch.in_document, batch.document.mask)


def test_unknown_words_stay_apart_and_are_the_same_word_everywhere() -> None:
    example = Example("x", (("Ana", "gave", "Bo", "the", "apple"),), ("Bo", "thanked", GAP), ("Ana", "Bo", "Cy"), "Ana")
    batch = Batcher(encode_examples([example]), WORDS).make_batch([0])
    ana, _, bo, *_ = batch.document.rows[0].tolist()
    assert ana != bo
    assert {ana, bo} <= set(WORDS.unknown_rows)
    assert batch.question.rows[0, 0] == bo
    assert batch.candidates[0, :2].tolist() == [ana, bo]
    assert batch.answers.tolist() == [0]


def test_more_unknown_words_than_vectors_still_have_their_own_mentions() -> None:
    words = tuple(f"name{n}" for n in range(10))
    batch = Batcher(encode_examples([Example("x", (words,), (GAP,), words)]), WORDS).make_batch([0])
    assert set(batch.document.rows[0].tolist()) == set(WORDS.unknown_rows)
    assert mentions(batch) == {(0, n, n) for n in range(10)}


def test_eligible_leaves_out_copies_and_empty_candidates() -> None:
    example = Example("x", (("Ana", "gave"),), (GAP,), ("Ana", "", "Ana", "gave"))
    other = Example("y", (("Ana",),), (GAP,), ("Ana",))
    batch = Batcher(encode_examples([example, other]), WORDS).make_batch([0, 1])
    assert batch.eligible.tolist() == [[True, False, False, True], [True, False, False, False]]


def test_answers_that_cannot_be_chosen_have_no_index() -> None:
    questions = [
        Example("no answer", (("Ana", "gave"),), (GAP,), ("Ana",)),
        Example("not a candidate", (("Ana", "gave"),), (GAP,), (), "Bo"),
        Example("a candidate, not in the document", (("Ana", "gave"),), (GAP,), ("Ana", "Bo"), "Bo"),
    ]
    store = encode_examples(questions)
    assert Batcher(store, WORDS).make_batch([0, 1, 2]).answers.tolist() == [NO_ANSWER_INDEX, NO_ANSWER_INDEX, 1]
    assert store.answerable.tolist() == [0, 0, 0]


def test_shuffling_permutes_only_the_anonymous_rows() -> None:
    example = Example("x", (("Ana", "gave", "@entity1", "the", "Bo", "@entity7"),), ("the", GAP), ("Ana", "the"))
    batcher = Batcher(encode_examples([example]), WORDS)
    plain = batcher.make_batch([0])
    drawn = [batcher.make_batch([0], draw_plan(seed)) for seed in range(50)]
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
        batcher.make_batch([0], draw_plan(seed)).document.rows.tolist() for seed in range(3)
    ]


def test_anonymized_candidates_appear_as_unknown_words_of_their_own() -> None:
    """In all of their example, each independently, with the wanted probability; other words keep their rows."""
    document = (("the", "apple", "gave", "Ana", "to", "the", "to"),)
    example = Example("x", document, ("apple", "gave", GAP), ("the", "apple", "Ana", "the"), "the")
    vocabulary = replace(WORDS, unknown=9)
    batcher = Batcher(encode_examples([example] * 4), vocabulary, anonymise=0.3)
    plain = batcher.make_batch([0]).document.rows[0].numpy()
    plans = [draw_plan(seed, vocabulary) for seed in range(500)]
    drawn = [batcher.make_batch([number], plan) for plan in plans for number in range(4)]
    rows = np.array([batch.document.rows[0].tolist() for batch in drawn])
    asked = np.array([batch.question.rows[0].tolist() for batch in drawn])
    assert (rows[:, [2, 4, 6]] == plain[[2, 4, 6]]).all()
    assert (rows[:, 0] == rows[:, 5]).all()
    assert (rows[:, 1] == asked[:, 0]).all()
    changed = rows != plain
    assert np.isin(rows[:, [0, 1]][changed[:, [0, 1]]], list(vocabulary.unknown_rows)).all()
    assert all(len({*row[[0, 1, 3]]}) == 3 for row in rows)
    assert changed[:, [0, 1]].mean(axis=0) == pytest.approx([0.3, 0.3], abs=0.04)
    assert (changed[:, 0] & changed[:, 1]).mean() == pytest.approx(0.09, abs=0.03)


def test_tensors_by_name_make_the_same_batch() -> None:
    example = Example("x", (("Ana", "gave", "Bo"),), ("Bo", GAP), ("Ana", "Bo"), "Bo")
    batch = Batcher(encode_examples([example]), WORDS).make_batch([0])
    again = Batch.from_tensors(batch.tensors())
    assert batch.tensors().keys() == again.tensors().keys()
    assert all(again.tensors()[name] is tensor for name, tensor in batch.tensors().items())
    compact = Batch.from_tensors(batch.tensors(), is_compact=True).to(torch.device("meta"))
    assert compact.document.is_compact
    assert compact.question.is_compact
    assert compact.candidates.device.type == "meta"


@given(st.integers(1, 300), st.integers(1, 7), st.integers(1, 5), st.integers(0, 9))
def test_an_epoch_has_every_question_once_in_sorted_chunks(count: int, size: int, prefetch: int, epoch: int) -> None:
    lengths = np.random.default_rng(count).integers(1, 50, count)
    numbers = np.arange(count)
    batches = plan_epoch(lengths, numbers, size=size, prefetch=prefetch, seed=3, epoch=epoch)
    assert sorted(np.concatenate(batches).tolist()) == numbers.tolist()
    assert all(len(batch) == size for batch in batches[:-1])
    for start in range(0, len(batches), prefetch):
        chunk = lengths[np.concatenate(batches[start : start + prefetch])]
        assert (np.diff(chunk) >= 0).all()
    again = plan_epoch(lengths, numbers, size=size, prefetch=prefetch, seed=3, epoch=epoch)
    assert all((a == b).all() for a, b in zip(batches, again, strict=True))


@pytest.mark.parametrize("other", [{"epoch": 1}, {"seed": 4}])
def test_another_epoch_or_seed_is_another_order(other: dict[str, int]) -> None:
    lengths = np.ones(100, int)
    settings = {"seed": 3, "epoch": 0}
    first, second = (
        np.concatenate(plan_epoch(lengths, np.arange(100), size=10, prefetch=2, **chosen))
        for chosen in (settings, settings | other)
    )
    assert first.tolist() != second.tolist()


def test_the_draws_of_a_step_depend_on_seed_epoch_and_batch_alone() -> None:
    def draw(seed: int, epoch: int, batch: int, examples: int = 4, step: int = 0) -> tuple[int, tuple[int, ...]]:
        plan = plan_step(np.arange(examples), WORDS, seed=seed, epoch=epoch, batch=batch, step=step)
        assert plan.examples.tolist() == list(range(examples))
        assert plan.step == step
        return plan.key, tuple(plan.shuffled_rows.tolist())

    assert draw(1, 2, 3) == draw(1, 2, 3, examples=7, step=9)
    assert len({draw(1, 2, 3)[0], draw(2, 2, 3)[0], draw(1, 3, 3)[0], draw(1, 2, 4)[0]}) == 4


@pytest.mark.parametrize("vocabulary", [WORDS, Vocabulary(("the",), unknown=5)])
def test_shuffled_rows_are_a_permutation_of_each_pool(vocabulary: Vocabulary) -> None:
    found = set()
    for seed in range(20):
        shuffled = shuffle_anonymous_rows(vocabulary, np.random.default_rng(seed)).tolist()
        unknown, entities = shuffled[: vocabulary.unknown], shuffled[vocabulary.unknown :]
        assert sorted(unknown) == list(vocabulary.unknown_rows)
        assert sorted(entities) == list(vocabulary.entity_rows)
        found.add(tuple(shuffled))
    assert len(found) > 10
