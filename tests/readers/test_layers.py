"""Layers against PyTorch's own modules, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from asreader import ops
from asreader.batches.batch import Words
from asreader.ops.keyed_dropout import dropout_key
from asreader.readers.layers import BidirectionalGRU, Dropout, EmbeddedWords, Embedding, EncodedWords, attend

VOCABULARY, INPUTS, HIDDEN = 11, 5, 4
LENGTHS = torch.tensor([6, 1, 4])


@pytest.fixture(params=["cpu", "reference"], autouse=True)
def implementation(request: pytest.FixtureRequest) -> Iterator[None]:
    with ops.using(request.param):
        yield


def make_words(vocabulary: int = VOCABULARY) -> Words:
    torch.manual_seed(5)
    rows = torch.randint(1, vocabulary, (3, 6))
    return Words(torch.where(torch.arange(6) < LENGTHS[:, None], rows, 0), LENGTHS)


def make_encoder(layers: int) -> BidirectionalGRU:
    torch.manual_seed(2)
    encoder = BidirectionalGRU(INPUTS, HIDDEN, layers).double()
    for parameter in encoder.parameters():  # biases start at zero
        parameter.data += 0.3 * torch.randn_like(parameter)
    return encoder


def run_packed(encoder: BidirectionalGRU, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """States and last states of PyTorch's GRU on packed sequences, layer by layer."""
    last = vectors
    for gru in encoder.layers:
        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        states, final = gru(packed)
        vectors, _ = pad_packed_sequence(states, batch_first=True, total_length=vectors.shape[1])
        last = torch.cat([final[0], final[1]], dim=-1)
    return vectors, last


@pytest.mark.parametrize("vocabulary", [VOCABULARY, 40])
@pytest.mark.parametrize("is_compact", [False, True])
def test_embedded_words_have_the_vectors_of_the_embedding(vocabulary: int, is_compact: bool) -> None:
    """Also compact ones, whether they are looked up by unique row or (with a large table) by word."""
    embed, words = Embedding(vocabulary, INPUTS).double(), make_words(vocabulary)
    table_rows = torch.arange(vocabulary) if is_compact else None
    embedded = embed.embed(replace(words, is_compact=is_compact, table_rows=table_rows))
    assert embedded.positions.is_identity == (is_compact and vocabulary > words.rows.numel())
    assert torch.equal(embedded.vectors, nn.functional.embedding(words.rows, embed.weight))
    assert embedded.rows is not None
    assert torch.equal(embedded.table, embed.weight[embedded.rows])


def test_unique_words_are_embedded_once() -> None:
    words = make_words()
    embedded = Embedding(VOCABULARY, INPUTS).embed(words)
    assert len(embedded.table) == embedded.positions.rows == len(words.rows.unique())
    assert embedded.positions.index.shape == (6, 3)


def test_vectors_of_their_own_stay_where_they_are() -> None:
    vectors = torch.randn(3, 6, INPUTS)
    assert torch.equal(EmbeddedWords.from_vectors(vectors, make_words()).vectors, vectors)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_encoded_words_are_those_of_torch(layers: int) -> None:
    words, encoder = make_words(), make_encoder(layers)
    embed = Embedding(VOCABULARY, INPUTS).double()
    encoded: EncodedWords = encoder(embed.embed(words))
    states, last = run_packed(encoder, embed(words.rows), words.lengths)
    torch.testing.assert_close(encoded.vectors, states, rtol=0, atol=1e-12)
    torch.testing.assert_close(encoded.last, last, rtol=0, atol=1e-12)
    assert encoded.vectors.shape == (3, 6, 2 * HIDDEN)
    assert not encoded.vectors[~words.mask].any()
    assert encoded.vectors[words.mask].all()


@pytest.mark.parametrize("layers", [1, 2])
def test_gradients_are_those_of_torch(layers: int) -> None:
    words, encoder = make_words(), make_encoder(layers)
    embed = Embedding(VOCABULARY, INPUTS).double()
    weights = [*encoder.parameters(), embed.weight]
    factors, of_last = torch.randn(3, 6, 2 * HIDDEN).double(), torch.randn(3, 2 * HIDDEN).double()
    encoded: EncodedWords = encoder(embed.embed(words))
    found = torch.autograd.grad((encoded.vectors * factors).sum() + (encoded.last * of_last).sum(), weights)
    states, last = run_packed(encoder, embed(words.rows), words.lengths)
    expected = torch.autograd.grad((states * factors).sum() + (last * of_last).sum(), weights)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_padding_does_not_change_states() -> None:
    words, encoder, embed = make_words(), make_encoder(2), Embedding(VOCABULARY, INPUTS).double()
    wide = Words(nn.functional.pad(words.rows, (0, 7)), words.lengths)
    one, other = encoder(embed.embed(words)), encoder(embed.embed(wide))
    torch.testing.assert_close(other.vectors[:, :6], one.vectors, rtol=0, atol=1e-12)
    torch.testing.assert_close(other.last, one.last, rtol=0, atol=1e-12)
    assert not other.vectors[:, 6:].any()


def test_attention_is_a_softmax_over_the_document_alone() -> None:
    words = make_words()
    encoded: EncodedWords = make_encoder(1)(Embedding(VOCABULARY, INPUTS).double().embed(words))
    question = torch.randn(3, 2 * HIDDEN).double()
    in_document = words.mask.clone()
    in_document[0, :2] = False  # a question before the document
    log_attention = attend(encoded, question, in_document)
    assert torch.equal(log_attention.isneginf(), ~in_document)
    for row in range(3):
        places = in_document[row]
        expected = (encoded.vectors[row, places] @ question[row]).log_softmax(dim=0)
        torch.testing.assert_close(log_attention[row, places], expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(log_attention.exp().sum(dim=1), torch.ones(3).double())


def draw(dropout: Dropout, values: Tensor, key: int) -> Tensor:
    with dropout_key(torch.tensor(key)):
        dropped: Tensor = dropout(values)
    return dropped


def test_dropout_is_a_function_of_its_key() -> None:
    dropout, values = Dropout(0.3).train(), torch.rand(50, 40) + 1
    first = draw(dropout, values, 7)
    torch.rand(9)  # the state of torch's generator does not matter
    assert torch.equal(draw(dropout, values, 7), first)
    assert not torch.equal(draw(dropout, values, 8), first)
    with dropout_key(torch.tensor(7)):
        one, other = dropout(values), dropout(values)
    assert torch.equal(one, first)
    assert not torch.equal(other, first)


def test_dropout_keeps_the_expectation_and_scales_what_stays() -> None:
    dropout, values = Dropout(0.3).train(), torch.ones(400, 100)
    dropped = draw(dropout, values, 3)
    assert {round(value, 5) for value in dropped.unique().tolist()} == {0.0, round(1 / 0.7, 5)}
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)
    assert (dropped == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)


def test_dropout_changes_nothing_when_it_should_not() -> None:
    values, words = torch.rand(5, 4), make_words()
    embedded = Embedding(VOCABULARY, INPUTS).embed(words)
    for dropout in (Dropout(0.9).eval(), Dropout(0.0).train()):
        assert torch.equal(draw(dropout, values, 1), values)
        with dropout_key(torch.tensor(1)):
            assert torch.equal(dropout.drop_words(embedded).table, embedded.table)
    assert torch.equal(Dropout(0.9).train()(values), values)  # without a key


def test_a_word_loses_the_same_numbers_wherever_it_stands() -> None:
    """Whatever the layout: unique rows of the batch, a compact table, or a vector for every position."""
    embed, words = Embedding(VOCABULARY, INPUTS), make_words()
    vectors = embed(words.rows)
    layouts = [
        embed.embed(words),
        embed.embed(replace(words, is_compact=True, table_rows=torch.arange(VOCABULARY))),
        EmbeddedWords.from_vectors(vectors, words, words.rows),
    ]
    dropout, found = Dropout(0.5).train(), []
    for layout in layouts:
        with dropout_key(torch.tensor(4)):
            found.append(dropout.drop_words(layout).vectors)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    is_dropped = found[0] == 0
    for row in words.rows.unique():
        places = words.rows == row
        assert (is_dropped[places] == is_dropped[places][0]).all()
    assert 0 < is_dropped.float().mean() < 1


@pytest.mark.parametrize("probability", [-0.1, 1.0])
def test_dropout_is_a_probability(probability: float) -> None:
    with pytest.raises(ValueError, match="from 0 to below 1"):
        Dropout(probability)
