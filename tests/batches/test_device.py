"""A data set on a device. That its batches are those of `Batcher` is in tests/contracts/test_batches.py."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asreader.batches import device as devices
from asreader.batches.batch import NO_CANDIDATE
from asreader.batches.device import DeviceDataset, Unsupported, load_on_device
from asreader.cloze.stories.generator import generate_stories
from asreader.data.example import GAP, Example
from asreader.data.store import Store, encode_examples
from asreader.data.vocabulary import PADDING_ROW, SEPARATOR_ROW, Vocabulary, build_vocabulary

CPU = torch.device("cpu")
WORDS = Vocabulary(("the", "gave", "to", "apple"), unknown=3, entities=4)
WORD = st.sampled_from(["the", "gave", "Ana", "Bo", "New", "York", "@entity1", "@entity5", "Cy", "De"])


@st.composite
def examples(draw: st.DrawFn) -> Example:
    document = draw(st.lists(st.lists(WORD, min_size=1, max_size=9).map(tuple), min_size=1, max_size=6).map(tuple))
    candidates = draw(st.lists(st.one_of(WORD, st.just("the moon"), st.just("")), max_size=6).map(tuple))
    answer = draw(st.sampled_from([None, "Ana", *candidates]))
    return Example("x", document, (*draw(st.lists(WORD, max_size=40)), GAP), candidates, answer)


@given(st.lists(examples(), min_size=4, max_size=7), st.integers(1, 3))
def test_a_chunk_at_a_time_is_the_same_as_all_at_once(questions: list[Example], size: int) -> None:
    store = encode_examples(questions)
    whole = load_on_device(store, WORDS, device=CPU)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "_CHUNK", size)
        parts = load_on_device(store, WORDS, device=CPU)
    assert torch.equal(whole.documents.rows, parts.documents.rows)
    assert torch.equal(whole.questions.rows, parts.questions.rows)
    assert torch.equal(whole.candidates.rows, parts.candidates.rows)
    assert torch.equal(whole.eligible, parts.eligible)
    assert torch.equal(whole.candidate_at, parts.candidate_at)
    assert torch.equal(whole.answers, parts.answers)
    assert torch.equal(whole.supported, parts.supported)


def phrases(*candidates: str) -> Store:
    return encode_examples([Example("here", (("New", "York", "and", "York"),), (GAP,), candidates, candidates[0])])


def test_candidates_of_several_words_are_held_unless_they_share_a_word() -> None:
    data = load_on_device(phrases("New York", "and"), WORDS, device=CPU)
    assert data.candidate_at.tolist() == [0, 0, 1, NO_CANDIDATE]
    with pytest.raises(Unsupported, match="in here one word is part of several candidates"):
        load_on_device(phrases("New York", "York"), WORDS, device=CPU)


def test_anonymized_phrases_are_refused_with_a_reason() -> None:
    with pytest.raises(Unsupported, match="anonymise"):
        load_on_device(phrases("New York"), WORDS, device=CPU, anonymise=0.1)


@pytest.mark.parametrize("at", ["apart", "around"])
def test_the_bound_holds_for_the_unique_rows_of_every_batch(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """With so few frequent rows that the others have to be counted, and a step that does not round up."""
    monkeypatch.setattr("asreader.batches.unique_bound.FREQUENT", 12)
    monkeypatch.setattr("asreader.batches.device.UNIQUE_STEP", 1)
    stories = [*generate_stories(40, 3)]
    others = [story.words[-6:] for story in stories[1:] + stories[:1]]  # candidates that the document need not have
    store = encode_examples(
        replace(story, candidates=(*story.candidates, *words)) for story, words in zip(stories, others, strict=True)
    )
    words = build_vocabulary(store.count_words(), min_count=2, unknown=5)
    data = load_on_device(store, words, device=CPU, question_at=at)
    random = np.random.default_rng(1)
    for _ in range(20):
        numbers: np.ndarray = random.integers(0, len(store), (2, 6))
        shape = data.choose_shape(numbers)
        counts = [len({row for number in batch for row in data.rare.rows[int(number)].tolist()}) for batch in numbers]
        assert data.rare.count_unique(numbers).tolist() == counts
        batch = data.make_batch(torch.from_numpy(numbers), shape)
        assert batch.document.rows.shape[2] == shape.document
        assert shape.document % devices.WIDTH_STEP == 0
        for parts in zip(batch.document.rows, batch.question.rows, batch.candidates, strict=True):
            assert len({row for part in parts for row in part.flatten().tolist()}) <= shape.unique
        assert (batch.question.rows != PADDING_ROW).sum(dim=(1, 2)).max() < shape.tokens
    frequent = _frequent_rows(data, words)
    assert data.frequent == len(frequent)
    for number in range(len(store)):
        assert data.rare.rows[number].tolist() == sorted({*_rows(data, number)} - frequent)


def _rows(data: DeviceDataset, number: int) -> list[int]:
    return [
        row
        for part in (data.documents, data.questions, data.candidates)
        for row in part.rows[part.starts[number] : part.starts[number] + part.lengths[number]].tolist()
    ]


def _frequent_rows(data: DeviceDataset, words: Vocabulary) -> set[int]:
    """The twelve most frequent rows, and those that are in every batch anyway."""
    counts = Counter([*data.documents.rows.tolist(), *data.questions.rows.tolist()])
    most = sorted(range(words.size), key=lambda row: (-counts[row], row))[:12]
    return {*most, PADDING_ROW, SEPARATOR_ROW, *words.unknown_rows, *words.entity_rows}
