from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asreader.batches import device as residents
from asreader.batches.anonymous_rows import redrawn
from asreader.batches.device import NOBODY, ReadersBatch, Resident, Unfit, dealt, resident
from asreader.batches.host import Batch, Batcher
from asreader.cloze.stories.generator import generate_stories
from asreader.data.example import GAP, Example
from asreader.data.store import Store, encode_examples
from asreader.data.vocabulary import FIRST_ANONYMOUS_ROW, PADDING_ROW, Vocabulary, build_vocabulary

CPU = torch.device("cpu")
WORDS = Vocabulary(("the", "gave", "to", "apple"), unknown=3, entities=4)
WORD = st.sampled_from(["the", "gave", "Ana", "Bo", "New", "York", "@entity1", "@entity5", "Cy", "De"])


@st.composite
def examples(draw: st.DrawFn) -> Example:
    document = draw(st.lists(st.lists(WORD, min_size=1, max_size=9).map(tuple), min_size=1, max_size=6).map(tuple))
    candidates = draw(st.lists(st.one_of(WORD, st.just("the moon"), st.just("")), max_size=6).map(tuple))
    answer = draw(st.sampled_from([None, "Ana", *candidates]))
    return Example("x", document, (*draw(st.lists(WORD, max_size=40)), GAP), candidates, answer)


def gathered(data: Resident, numbers: np.ndarray, sizes: list[int], tables: np.ndarray | None) -> ReadersBatch:
    table = None if tables is None else torch.from_numpy(tables)
    return data.batch(torch.from_numpy(numbers), torch.tensor(sizes), data.widths(numbers), table)


def answer_positions(batch: Batch, row: int) -> set[int]:
    width, choices = batch.document.rows.shape[1], batch.candidates.shape[1]
    wanted = row * choices + int(batch.answers[row])
    pairs = zip(batch.mentions.candidates.tolist(), batch.mentions.positions.tolist(), strict=True)
    return {position % width for candidate, position in pairs if candidate == wanted and batch.answers[row] >= 0}


def same(batch: Batch, found: ReadersBatch, reader: int) -> None:
    """One reader's part of a gathered batch is what the Batcher makes of the same examples."""
    width, asked = batch.document.rows.shape[1], batch.question.rows.shape[1]
    assert found.document.shape[2] % residents.WIDTH_STEP == 0
    for row in range(len(batch.answers)):
        assert found.document[reader, row, :width].tolist() == batch.document.rows[row].tolist()
        assert found.question[reader, row, :asked].tolist() == batch.question.rows[row].tolist()
        assert not found.document[reader, row, width:].any()
        assert not found.question[reader, row, asked:].any()
        assert found.readable[reader, row, :width].tolist() == batch.readable[row].tolist()
        positions = answer_positions(batch, row)
        assert bool(found.counted[reader, row]) == bool(positions)
        if positions:
            assert set(found.answer_at[reader, row].nonzero()[:, 0].tolist()) == positions
    assert found.document_lengths[reader, : len(batch.answers)].tolist() == batch.document.lengths.tolist()
    assert found.question_lengths[reader, : len(batch.answers)].tolist() == batch.question.lengths.tolist()
    assert found.answers[reader, : len(batch.answers)].tolist() == batch.answers.tolist()


def mentions(batch: Batch) -> dict[tuple[int, int], int]:
    width, choices = batch.document.rows.shape[1], batch.candidates.shape[1]
    pairs = zip(batch.mentions.candidates.tolist(), batch.mentions.positions.tolist(), strict=True)
    return {(position // width, position % width): candidate % choices for candidate, position in pairs}


QUESTION_AT = st.sampled_from(["apart", "before", "after", "around"])


@given(st.lists(examples(), min_size=1, max_size=7), st.integers(0, 99), QUESTION_AT)
def test_gathered_batches_are_those_of_the_batcher(questions: list[Example], seed: int, at: str) -> None:
    store = encode_examples(questions)
    batcher, data = Batcher(store, WORDS, question_at=at), resident(store, WORDS, device=CPU, question_at=at)
    numbers = np.random.default_rng(seed).integers(0, len(questions), (2, 3))
    tables = np.stack([dealt(WORDS, np.random.default_rng([seed, reader])) for reader in range(2)])
    drawn = gathered(data, numbers, [3, 3], tables)
    plain = gathered(data, numbers, [3, 3], None)
    for reader in range(2):
        same(batcher.batch(numbers[reader], np.random.default_rng([seed, reader])), drawn, reader)
        batch = batcher.batch(numbers[reader])
        same(batch, plain, reader)
        stand = (plain.candidate_at[reader] != NOBODY).nonzero().tolist()
        assert {(b, t): int(plain.candidate_at[reader, b, t]) for b, t in stand} == mentions(batch)
        assert data.choices >= batch.candidates.shape[1]


@given(st.lists(examples(), min_size=4, max_size=7), st.integers(1, 3))
def test_a_chunk_at_a_time_is_the_same_as_all_at_once(questions: list[Example], size: int) -> None:
    store = encode_examples(questions)
    whole = resident(store, WORDS, device=CPU)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(residents, "_CHUNK", size)
        parts = resident(store, WORDS, device=CPU)
    assert torch.equal(whole.documents.rows, parts.documents.rows)
    assert torch.equal(whole.questions.rows, parts.questions.rows)
    assert torch.equal(whole.candidate_at, parts.candidate_at)
    assert torch.equal(whole.answers, parts.answers)


def test_places_that_a_short_batch_leaves_empty_do_not_count() -> None:
    question = Example("x", (("Ana", "gave", "Bo"),), ("Bo", GAP), ("Ana", "Bo"), "Ana")
    data = resident(encode_examples([question] * 3), WORDS, device=CPU)
    batch = gathered(data, np.array([[0, 1, 2], [0, 0, 0]]), [3, 1], None)
    assert batch.counted.tolist() == [[True] * 3, [True, False, False]]
    assert batch.answer_at[1, 2, :4].tolist() == [True, True, True, False]  # no sum is empty


@pytest.mark.parametrize("vocabulary", [WORDS, Vocabulary(("the",), unknown=5)])
def test_dealt_rows_are_those_of_the_whole_table(vocabulary: Vocabulary) -> None:
    for seed in range(5):
        table = redrawn(vocabulary, np.random.default_rng(seed))
        stop = FIRST_ANONYMOUS_ROW + vocabulary.unknown + vocabulary.entities
        assert dealt(vocabulary, np.random.default_rng(seed)).tolist() == table[FIRST_ANONYMOUS_ROW:stop].tolist()


def phrases(*candidates: str) -> Store:
    return encode_examples([Example("here", (("New", "York", "and", "York"),), (GAP,), candidates, candidates[0])])


def test_candidates_of_several_words_are_held_unless_they_share_a_word() -> None:
    data = resident(phrases("New York", "and"), WORDS, device=CPU)
    assert data.candidate_at.tolist() == [0, 0, 1, NOBODY]
    with pytest.raises(Unfit, match="in here one word is part of several candidates"):
        resident(phrases("New York", "York"), WORDS, device=CPU)


def test_what_changes_from_batch_to_batch_is_refused_with_a_reason() -> None:
    with pytest.raises(Unfit, match="anonymise"):
        resident(phrases("New York"), WORDS, device=CPU, anonymise=0.1)


def of_single_words(example: Example) -> Example:
    candidates = tuple(word for word in example.candidates if word not in ("", "the moon"))
    return replace(example, candidates=candidates, answer=candidates[0] if candidates else None)


@given(st.lists(examples(), min_size=1, max_size=7), st.integers(0, 99), st.sampled_from([0.3, 0.9]))
def test_strange_candidates_are_those_of_the_batcher(questions: list[Example], seed: int, share: float) -> None:
    store = encode_examples(list(map(of_single_words, questions)))
    batcher, data = Batcher(store, WORDS, anonymise=share), resident(store, WORDS, device=CPU, anonymise=share)
    numbers = np.random.default_rng(seed).integers(0, len(questions), (2, 3))
    tables, keys = [], []
    for reader in range(2):
        generator = np.random.default_rng([seed, reader])
        tables.append(torch.from_numpy(dealt(WORDS, generator)))
        keys.append(int(generator.integers(1 << 31)))
    found = data.batch(
        torch.from_numpy(numbers), torch.tensor([3, 3]), data.widths(numbers), torch.stack(tables), torch.tensor(keys)
    )
    for reader in range(2):
        same(batcher.batch(numbers[reader], np.random.default_rng([seed, reader])), found, reader)


@pytest.mark.parametrize("at", ["apart", "around"])
def test_there_is_room_for_the_distinct_words_of_every_batch(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """With so few frequent words that the others have to be counted, and a step that rounds nothing away."""
    monkeypatch.setattr("asreader.batches.unique_bound.FREQUENT", 12)
    monkeypatch.setattr("asreader.batches.device.WORDS_STEP", 1)
    store = encode_examples([*generate_stories(40, 3)])
    words = build_vocabulary(store.count_words(), min_count=2, unknown=5)
    data = resident(store, words, device=torch.device("cpu"), question_at=at)
    random = np.random.default_rng(1)
    for _ in range(20):
        numbers: np.ndarray = random.integers(0, len(store), (2, 6))
        room = data.widths(numbers).words
        different = [
            len({row for number in batch for row in data.rare.rows[int(number)].tolist()}) for batch in numbers
        ]
        assert data.rare.different(numbers).tolist() == different
        batch = data.batch(torch.from_numpy(numbers), torch.tensor([6, 6]), data.widths(numbers))
        for document, question in zip(batch.document, batch.question, strict=True):
            assert len({*document.flatten().tolist(), *question.flatten().tolist()}) <= room
        lines = data.widths(numbers).lines
        assert (batch.question != PADDING_ROW).sum(dim=(1, 2)).max() < lines
    for number in range(len(store)):
        slow = {row for row in _rows(data, number) if row not in _always(data, words)}
        assert data.rare.rows[number].tolist() == sorted(slow)


def _rows(data: Resident, number: int) -> list[int]:
    return [
        row
        for part in (data.documents, data.questions)
        for row in part.rows[part.starts[number] : part.starts[number] + part.lengths[number]].tolist()
    ]


def _always(data: Resident, words: Vocabulary) -> set[int]:
    """The twelve commonest rows, and those that are in every batch anyway."""
    counts = Counter([*data.documents.rows.tolist(), *data.questions.rows.tolist()])
    commonest = sorted(range(words.size), key=lambda row: (-counts[row], row))[:12]
    return {*commonest, 0, *words.unknown_rows, *words.entity_rows}
