"""All ways to make a Batch give the same one; `Batcher.make_batch` is the definition.

What may differ: padding widths, integer types and the order of the candidates that one position mentions; where
candidates are anonymized, also the rows of further copies of a candidate, which are not eligible.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from asreader.batches.batch import NO_ANSWER_INDEX, NO_CANDIDATE, Batch, Words
from asreader.batches.device import DeviceDataset, Unsupported, load_on_device
from asreader.batches.document import EncodedDocument
from asreader.batches.host import Batcher
from asreader.batches.plan import StepPlan, plan_step
from asreader.data.example import GAP, Example
from asreader.data.store import encode_examples
from asreader.data.vocabulary import PADDING_ROW, Vocabulary

CPU = torch.device("cpu")
VOCABULARY = Vocabulary(("the", "gave", "to", "apple"), unknown=3, entities=4)
NO_ENTITIES = replace(VOCABULARY, entities=0)
WORD = st.sampled_from(["the", "gave", "Ana", "Bo", "New", "York", "@entity1", "@entity5", "Cy", "De", ".", "to"])
PHRASE = st.one_of(WORD, st.lists(WORD, max_size=3).map(" ".join))
APART_PHRASE = st.sampled_from(["the moon", "", "Sankt Gallen"])
DOCUMENT = st.lists(st.lists(WORD, min_size=1, max_size=7).map(tuple), min_size=1, max_size=5).map(tuple)
QUESTION = st.lists(WORD, max_size=9).map(lambda words: (*words, GAP))
QUESTION_AT = st.sampled_from(["apart", "before", "after", "around"])
VOCABULARIES = st.sampled_from([VOCABULARY, NO_ENTITIES])
BATCH, READERS = 3, 2


@st.composite
def examples(draw: st.DrawFn, candidate: st.SearchStrategy[str]) -> Example:
    candidates = draw(st.lists(candidate, max_size=6).map(tuple))
    answer = draw(st.sampled_from([None, "Ana", "Zed", *candidates]))
    return Example("x", draw(DOCUMENT), draw(QUESTION), candidates, answer)


def assert_same(found: Batch, expected: Batch, *, eligible_only: bool = False) -> None:
    """Up to padding and integer types."""
    if eligible_only:
        found, expected = (replace(batch, candidates=_eligible_rows(batch)) for batch in (found, expected))
    _assert_same_words(found.document, expected.document)
    _assert_same_words(found.question, expected.question)
    _assert_padded(found.in_document, expected.in_document, False)
    _assert_padded(found.eligible, expected.eligible, False)
    _assert_padded(found.candidates, expected.candidates, PADDING_ROW)
    _assert_padded(_sorted_mentions(found), _sorted_mentions(expected), NO_CANDIDATE)
    assert found.answers.tolist() == expected.answers.tolist()


def _assert_same_words(found: Words, expected: Words) -> None:
    _assert_padded(found.rows, expected.rows, PADDING_ROW)
    _assert_padded(found.mask, expected.mask, False)
    assert found.lengths.tolist() == expected.lengths.tolist()


def _assert_padded(found: Tensor, expected: Tensor, padding: int) -> None:
    """Either may be wider than the other; what only one of them has is padding."""
    widths = [max(pair) for pair in zip(found.shape, expected.shape, strict=True)]
    wide = []
    for tensor in (found, expected):
        whole = torch.full(widths, padding, dtype=torch.int64)
        whole[tuple(map(slice, tensor.shape))] = tensor.long()
        wide.append(whole)
    assert torch.equal(*wide)


def _eligible_rows(batch: Batch) -> Tensor:
    return torch.where(batch.eligible, batch.candidates.long(), PADDING_ROW)


def _sorted_mentions(batch: Batch) -> Tensor:
    """The candidates of each position in descending order, so that NO_CANDIDATE comes last."""
    return batch.candidate_at.long().sort(dim=-1, descending=True).values


def _of_reader(batch: Batch, reader: int) -> Batch:
    return Batch.from_tensors({name: tensor[reader] for name, tensor in batch.tensors().items()})


def _assert_device_batches(
    batcher: Batcher, data: DeviceDataset, numbers: np.ndarray, plans: list[StepPlan] | None
) -> None:
    """Batches of READERS readers, gathered together, are those of the Batcher one by one."""
    drawn: tuple[Tensor, ...] = ()
    if plans is not None:
        rows = torch.from_numpy(np.stack([plan.shuffled_rows for plan in plans]))
        drawn = rows, torch.tensor([plan.key for plan in plans], dtype=torch.int32)
    found = data.make_batch(torch.from_numpy(numbers), data.choose_shape(numbers), *drawn)
    for reader in range(READERS):
        expected = batcher.make_batch(numbers[reader], None if plans is None else plans[reader])
        assert_same(_of_reader(found, reader), expected, eligible_only=batcher.anonymise > 0)
        assert data.candidate_count >= expected.candidate_count
        answers = expected.answers[:, None, None]
        is_supported = ((expected.candidate_at == answers) & (answers != NO_ANSWER_INDEX)).flatten(1).any(dim=1)
        assert data.supported[torch.from_numpy(numbers[reader])].tolist() == is_supported.tolist()


def _draw(
    questions: list[Example], vocabulary: Vocabulary, at: str, seed: int, anonymise: float = 0.0
) -> tuple[Batcher, DeviceDataset, np.ndarray, list[StepPlan]]:
    store = encode_examples(questions)
    numbers = np.random.default_rng(seed).integers(0, len(questions), (READERS, BATCH))
    plans = [plan_step(row, vocabulary, seed=seed, epoch=1, batch=reader) for reader, row in enumerate(numbers)]
    return (
        Batcher(store, vocabulary, question_at=at, anonymise=anonymise),
        load_on_device(store, vocabulary, device=CPU, question_at=at, anonymise=anonymise),
        numbers,
        plans,
    )


@given(
    st.lists(examples(st.one_of(WORD, APART_PHRASE)), min_size=1, max_size=6),
    VOCABULARIES,
    QUESTION_AT,
    st.integers(0, 99),
)
def test_batches_of_a_device_are_those_of_the_host(
    questions: list[Example], vocabulary: Vocabulary, at: str, seed: int
) -> None:
    batcher, data, numbers, plans = _draw(questions, vocabulary, at, seed)
    _assert_device_batches(batcher, data, numbers, None)
    _assert_device_batches(batcher, data, numbers, plans)


@given(
    st.lists(examples(WORD), min_size=1, max_size=6),
    VOCABULARIES,
    QUESTION_AT,
    st.integers(0, 99),
    st.sampled_from([0.3, 0.9]),
)
def test_anonymized_candidates_of_a_device_are_those_of_the_host(
    questions: list[Example], vocabulary: Vocabulary, at: str, seed: int, anonymise: float
) -> None:
    batcher, data, numbers, plans = _draw(questions, vocabulary, at, seed, anonymise)
    _assert_device_batches(batcher, data, numbers, None)
    _assert_device_batches(batcher, data, numbers, plans)


@given(st.lists(examples(PHRASE), min_size=1, max_size=4), QUESTION_AT, st.integers(0, 99))
def test_a_device_holds_phrases_exactly_where_none_overlap(questions: list[Example], at: str, seed: int) -> None:
    host = Batcher(encode_examples(questions), VOCABULARY).make_batch(range(len(questions)))
    try:
        batcher, data, numbers, plans = _draw(questions, VOCABULARY, at, seed)
    except Unsupported:
        assert host.candidate_at.shape[-1] > 1
        return
    assert host.candidate_at.shape[-1] == 1
    _assert_device_batches(batcher, data, numbers, plans)


@given(
    DOCUMENT,
    st.lists(st.tuples(QUESTION, st.lists(PHRASE, max_size=6).map(tuple)), min_size=1, max_size=3),
    QUESTION_AT,
)
def test_questions_about_one_document_are_those_of_a_store(
    sentences: tuple[tuple[str, ...], ...], asked: list[tuple[tuple[str, ...], tuple[str, ...]]], at: str
) -> None:
    """Each is the batch of a store that holds this one question, with the same widths and types."""
    document = EncodedDocument(sentences, VOCABULARY, at)
    for question, candidates in asked:
        example = Example("", sentences, question, candidates)
        assume(example.choices)
        found = document.make_batch(question, candidates).batch
        expected = Batcher(encode_examples([example]), VOCABULARY, question_at=at).make_batch([0])
        assert_same(found, expected)
        for name, tensor in expected.tensors().items():
            own = found.tensors()[name]
            assert (own.dtype, own.shape) == (tensor.dtype, tensor.shape), name


def test_two_phrases_that_share_a_word_need_two_candidates_at_a_position() -> None:
    example = Example("here", (("New", "York", "City", "and", "York"),), (GAP,), ("New York", "York City"), "York City")
    store = encode_examples([example])
    host = Batcher(store, VOCABULARY).make_batch([0])
    document = EncodedDocument(example.document, VOCABULARY).make_batch(example.question, example.candidates).batch
    for batch in (host, document):
        assert batch.candidate_at.shape == (1, 5, 2)
        assert [sorted(position) for position in batch.candidate_at[0].tolist()] == [
            [NO_CANDIDATE, 0],
            [0, 1],
            [NO_CANDIDATE, 1],
            [NO_CANDIDATE, NO_CANDIDATE],
            [NO_CANDIDATE, NO_CANDIDATE],
        ]
    assert host.answers.tolist() == [1]
    with pytest.raises(Unsupported, match="in here one word is part of several candidates"):
        load_on_device(store, VOCABULARY, device=CPU)
