"""The definition is `Batcher` over a store that holds the one question."""

from __future__ import annotations

from dataclasses import fields

import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from asreader.batches.document import Document
from asreader.batches.host import Batch, Batcher, Mentions, Words
from asreader.data.example import GAP, Example
from asreader.data.store import encode_examples
from asreader.data.vocabulary import Vocabulary

WORDS = Vocabulary(("the", "gave", "to", "apple"), unknown=3, entities=4)
WORD = st.sampled_from(["the", "gave", "Ana", "Bo", "New", "York", "@entity1", "@entity5", "Cy", "De", ".", "to"])
PHRASE = st.one_of(WORD, st.lists(WORD, max_size=3).map(" ".join))
DOCUMENT = st.lists(st.lists(WORD, min_size=1, max_size=6).map(tuple), min_size=1, max_size=4).map(tuple)
QUESTION = st.lists(WORD, max_size=4).map(lambda words: (*words, GAP))
ASKED = st.lists(st.tuples(QUESTION, st.lists(PHRASE, max_size=6).map(tuple)), min_size=1, max_size=3)


def flat(batch: Batch) -> dict[str, object]:
    """A Batch in plain numbers; which pair of a mention comes first does not matter."""
    found: dict[str, object] = {}
    for field in fields(batch):
        value = getattr(batch, field.name)
        if isinstance(value, Mentions):
            found[field.name] = sorted(zip(value.candidates.tolist(), value.positions.tolist(), strict=True))
        elif isinstance(value, Words):
            found |= {f"{field.name}.{part.name}": listed(getattr(value, part.name)) for part in fields(value)}
        else:
            found[field.name] = listed(value)
    return found


def listed(tensor: torch.Tensor) -> tuple[torch.dtype, object]:
    return tensor.dtype, tensor.tolist()


@given(DOCUMENT, ASKED, st.sampled_from(["apart", "before", "after", "around"]))
def test_every_question_is_the_batch_that_a_store_would_give(
    sentences: tuple[tuple[str, ...], ...], asked: list[tuple[tuple[str, ...], tuple[str, ...]]], at: str
) -> None:
    document = Document(sentences, WORDS, at)
    for question, candidates in asked:
        example = Example("", sentences, question, candidates)
        assume(example.choices)
        found = document.asked(question, candidates)
        assert flat(found.batch) == flat(Batcher(encode_examples([example]), WORDS, question_at=at).batch([0]))
        assert found.choices.words == example.choices
        assert found.stop - found.start == len(example.words)
        pairs = [(c, p + found.start) for c, places in enumerate(found.choices.places) for p in places]
        assert sorted(pairs) == flat(found.batch)["mentions"]


@given(DOCUMENT)
def test_a_document_by_itself_is_read_as_with_a_question_apart(sentences: tuple[tuple[str, ...], ...]) -> None:
    alone, with_question = Document(sentences, WORDS).words, Document(sentences, WORDS).asked((GAP,)).batch.document
    for field in fields(alone):
        assert torch.equal(getattr(alone, field.name), getattr(with_question, field.name))


def test_a_document_without_a_word_to_propose_has_no_choices() -> None:
    found = Document(((".", "..."),), WORDS).asked((GAP,))
    assert found.choices.words == ()
    assert found.batch.candidates.shape == found.batch.eligible.shape == (1, 0)


def test_candidates_that_do_not_count_are_no_part_of_the_next_question() -> None:
    document = Document((("Ana", "met", "Bo"),), WORDS)
    assert document.asked((GAP,), ("Ana", "Bo")).batch.eligible.tolist() == [[True, True]]
    assert document.asked((GAP,), ("Ana", "Ana")).batch.eligible.tolist() == [[True, False]]
    assert document.asked((GAP,), ("Ana", "Bo")).batch.eligible.tolist() == [[True, True]]
