"""Questions about one document. That they are the batches of a store is in tests/contracts/test_batches.py."""

from __future__ import annotations

import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from asreader.batches.batch import NO_CANDIDATE
from asreader.batches.document import EncodedDocument
from asreader.data.example import GAP, Example
from asreader.data.vocabulary import Vocabulary

WORDS = Vocabulary(("the", "gave", "to", "apple"), unknown=3, entities=4)
WORD = st.sampled_from(["the", "gave", "Ana", "Bo", "New", "York", "@entity1", "@entity5", "Cy", "De", ".", "to"])
PHRASE = st.one_of(WORD, st.lists(WORD, max_size=3).map(" ".join))
DOCUMENT = st.lists(st.lists(WORD, min_size=1, max_size=6).map(tuple), min_size=1, max_size=4).map(tuple)
QUESTION = st.lists(WORD, max_size=4).map(lambda words: (*words, GAP))


@given(DOCUMENT, QUESTION, st.lists(PHRASE, max_size=6).map(tuple), st.sampled_from(["apart", "before", "around"]))
def test_candidates_are_in_words_and_positions_count_from_the_document(
    sentences: tuple[tuple[str, ...], ...], question: tuple[str, ...], candidates: tuple[str, ...], at: str
) -> None:
    example = Example("", sentences, question, candidates)
    assume(example.choices)
    found = EncodedDocument(sentences, WORDS, at).make_batch(question, candidates)
    assert found.candidates.words == example.choices
    assert found.stop - found.start == len(example.words)
    pairs = [(c, p + found.start) for c, positions in enumerate(found.candidates.positions) for p in positions]
    candidate_at = found.batch.candidate_at[0]
    mentions = (candidate_at != NO_CANDIDATE).nonzero().tolist()
    assert sorted(pairs) == sorted((int(candidate_at[p, depth]), p) for p, depth in mentions)


@given(DOCUMENT)
def test_a_document_by_itself_is_read_as_with_a_question_apart(sentences: tuple[tuple[str, ...], ...]) -> None:
    document = EncodedDocument(sentences, WORDS)
    alone, with_question = document.words, EncodedDocument(sentences, WORDS).make_batch((GAP,)).batch.document
    assert torch.equal(alone.rows, with_question.rows)
    assert torch.equal(alone.lengths, with_question.lengths)
    assert alone.mask.all()


def test_a_document_without_a_word_to_propose_has_no_candidates() -> None:
    found = EncodedDocument(((".", "..."),), WORDS).make_batch((GAP,))
    assert found.candidates.words == ()
    assert found.batch.candidates.shape == found.batch.eligible.shape == (1, 0)


def test_candidates_that_do_not_count_are_no_part_of_the_next_question() -> None:
    document = EncodedDocument((("Ana", "met", "Bo"),), WORDS)
    assert document.make_batch((GAP,), ("Ana", "Bo")).batch.eligible.tolist() == [[True, True]]
    assert document.make_batch((GAP,), ("Ana", "Ana")).batch.eligible.tolist() == [[True, False]]
    assert document.make_batch((GAP,), ("Ana", "Bo")).batch.eligible.tolist() == [[True, True]]
