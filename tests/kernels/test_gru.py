from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from asreader.data.batching import Words
from asreader.kernels.gru import BidirectionalGRU, both_directions, packed


def words(lengths: list[int]) -> Words:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return Words(mask.long(), mask, torch.tensor(lengths))


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    inputs=st.integers(1, 6),
    hidden=st.integers(1, 7),
    seed=st.integers(0, 99),
)
def test_values_and_gradients_are_those_of_the_definition(
    lengths: list[int], inputs: int, hidden: int, seed: int
) -> None:
    torch.manual_seed(seed)
    gru = nn.GRU(inputs, hidden, batch_first=True, bidirectional=True).double()
    for parameter in gru.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    sequences = words(lengths)
    found = []
    for way in (packed, both_directions):
        vectors = torch.randn(len(lengths), max(lengths), inputs, dtype=torch.float64, generator=_generator(seed))
        vectors.requires_grad_()
        states, last = way(gru, vectors, sequences)
        weight = torch.randn(states.shape, dtype=torch.float64, generator=_generator(seed + 1))
        loss = (states * weight).sum() + (last * weight[:, 0]).sum() * 0.3
        gradients = torch.autograd.grad(loss, [vectors, *gru.parameters()])
        found.append([states, last, *gradients])
    for slow, fast in zip(*found, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-10)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("lengths", [[1], [1, 1], [5], [7, 7, 7], [1, 6], [130, 1, 64]])
def test_odd_shapes_in_single_precision(lengths: list[int]) -> None:
    torch.manual_seed(0)
    gru, sequences = nn.GRU(8, 16, batch_first=True, bidirectional=True), words(lengths)
    vectors = torch.randn(len(lengths), max(lengths), 8)
    for slow, fast in zip(packed(gru, vectors, sequences), both_directions(gru, vectors, sequences), strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-5, atol=1e-6)


def test_reading_without_a_backward_pass_gives_the_same() -> None:
    torch.manual_seed(0)
    gru, sequences = nn.GRU(8, 16, batch_first=True, bidirectional=True), words([9, 4, 1])
    vectors = torch.randn(3, 9, 8)
    training = both_directions(gru, vectors, sequences)
    with torch.inference_mode():
        answering = both_directions(gru, vectors, sequences)
    for kept, shared in zip(training, answering, strict=True):
        assert torch.equal(kept, shared)


def test_matrices_start_orthogonal_and_biases_at_zero() -> None:
    for name, parameter in BidirectionalGRU(12, 12).named_parameters():
        if "bias" in name:
            assert not parameter.any()
        else:
            for gate in parameter.chunk(3):
                torch.testing.assert_close(gate @ gate.T, torch.eye(12), rtol=0, atol=1e-5)


def test_layers_read_each_other_and_look_both_ways() -> None:
    torch.manual_seed(0)
    stack, sequences = BidirectionalGRU(3, 4, layers=2), words([5, 2])
    vectors = torch.randn(2, 5, 3)
    states, last = stack(vectors, sequences)
    lower, _ = packed(stack.layers[0], vectors, sequences)
    upper, upper_last = packed(stack.layers[1], lower, sequences)
    torch.testing.assert_close(states, upper, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(last, upper_last, rtol=1e-5, atol=1e-6)
