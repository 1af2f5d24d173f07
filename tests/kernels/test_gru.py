from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from asreader.kernels import gru as kernel
from asreader.kernels import single
from asreader.kernels.gru import BidirectionalGRU, both_directions, of_rows, packed, side_by_side, unserved
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from asreader.batches.host import Words


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


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    rows=st.integers(2, 12),
    hidden=st.integers(1, 7),
    room=st.sampled_from([1, 1 << 20]),  # a few steps at a time, or all at once
    steps=st.sampled_from([1, 2, 96]),  # of a single sequence at a time; a longer one's distinct words are found
    seed=st.integers(0, 99),
)
def test_words_looked_up_in_a_table_are_read_like_their_vectors(
    lengths: list[int], rows: int, hidden: int, room: int, steps: int, seed: int
) -> None:
    torch.manual_seed(seed)
    gru = nn.GRU(4, hidden, batch_first=True, bidirectional=True).double()
    table = nn.Embedding(rows, 4).double()
    for parameter in gru.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    mask = words(lengths).mask
    sequences = Words(torch.randint(0, rows, mask.shape) * mask, mask, torch.tensor(lengths))
    weight = torch.randn(*mask.shape, 2 * hidden, dtype=torch.float64)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "ROOM", room)
        patch.setattr(single, "STEPS", steps)
        for states, last in (packed(gru, table(sequences.rows), sequences), of_rows(gru, table, sequences)):
            loss = (states * weight).sum() + (last * weight[:, 0]).sum() * 0.3
            found.append([states, last, *torch.autograd.grad(loss, [table.weight, *gru.parameters()])])
        with torch.inference_mode():
            answering = of_rows(gru, table, sequences)
    for slow, fast in zip(*found, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-10)
    for trained, answered in zip(found[1], answering, strict=False):
        torch.testing.assert_close(answered, trained, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("lengths", [[1], [70], [20, 31, 31]])
def test_under_autocast_the_recurrence_keeps_its_precision(lengths: list[int]) -> None:
    torch.manual_seed(0)
    gru, table, sequences = nn.GRU(8, 16, batch_first=True, bidirectional=True), nn.Embedding(2, 8), words(lengths)
    with torch.inference_mode():
        plain = of_rows(gru, table, sequences)
        with torch.autocast("cpu", torch.bfloat16):
            cast = of_rows(gru, table, sequences)
    for one, other in zip(plain, cast, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("lengths", [[6], [6, 2, 6]])
def test_a_table_and_its_vectors_are_the_same_source(layers: int, lengths: list[int]) -> None:
    torch.manual_seed(0)
    stack, table, sequences = BidirectionalGRU(3, 4, layers), nn.Embedding(2, 3), words(lengths)
    with torch.inference_mode():
        looked_up, given = stack(table, sequences), stack(table(sequences.rows), sequences)
        for one, other in zip(looked_up, given, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
        assert torch.equal(stack.last(table, sequences), looked_up[1])
        assert torch.equal(stack.last(table(sequences.rows), sequences), given[1])


def test_a_last_state_alone_has_gradients() -> None:
    stack, table = BidirectionalGRU(3, 4), nn.Embedding(2, 3)
    stack.last(table, words([6])).sum().backward()
    assert all(parameter.grad is not None for parameter in stack.parameters())


def _changed_in_place(stack: BidirectionalGRU) -> None:
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.mul_(1.5)


def _stepped(stack: BidirectionalGRU) -> None:
    for parameter in stack.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch.optim.Adam(stack.parameters(), lr=0.3).step()


def _loaded(stack: BidirectionalGRU) -> None:
    stack.load_state_dict(BidirectionalGRU(3, 4).state_dict())


def _replaced(stack: BidirectionalGRU) -> None:
    for parameter in stack.parameters():
        parameter.data = parameter.data + 0.5


def _changed_unseen(stack: BidirectionalGRU) -> None:
    for parameter in stack.parameters():
        parameter.data += 0.5
    stack.eval()


@pytest.mark.parametrize("change", [_changed_in_place, _stepped, _loaded, _replaced, _changed_unseen])
def test_a_single_sequence_is_read_with_the_weights_of_now(change: Callable[[BidirectionalGRU], None]) -> None:
    torch.manual_seed(0)
    stack, table, sequence = BidirectionalGRU(3, 4), nn.Embedding(2, 3), words([6])
    with torch.inference_mode():
        before = stack(table, sequence)[1]
    change(stack)
    with torch.inference_mode():
        after = stack(table, sequence)
    for fast, slow in zip(after, packed(stack.layers[0], table(sequence.rows), sequence), strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-5, atol=1e-6)
    assert (after[1] - before).abs().max() > 1e-3


def test_weights_are_put_in_order_once_for_many_single_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    stack, table, ordered = BidirectionalGRU(3, 4), nn.Embedding(2, 3), single.ordered
    made: list[nn.GRU] = []
    monkeypatch.setattr(single, "ordered", lambda gru: made.append(gru) or ordered(gru))
    for without_gradients in (torch.inference_mode, torch.no_grad):
        with without_gradients():
            for length in (3, 5, 120):
                stack(table, words([length]))
    assert len(made) == 1


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


def test_sizes_without_a_kernel_are_named() -> None:
    odd, cpu, gpu = BidirectionalGRU(3, 100), torch.device("cpu"), torch.device("cuda")
    assert unserved(odd, gpu, torch.bfloat16) == [100]
    assert unserved(odd, cpu, torch.bfloat16) == []
    assert unserved(nn.Linear(2, 2), gpu, torch.bfloat16) == []


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


@pytest.mark.parametrize("lengths", [[5, 2, 4], [1], [3, 3]])
def test_the_way_of_a_gpu_is_the_definition_too(lengths: list[int]) -> None:
    torch.manual_seed(2)
    gru = nn.GRU(6, 4, batch_first=True, bidirectional=True)
    vectors = torch.randn(len(lengths), max(lengths), 6, requires_grad=True)
    outer, last_outer = torch.randn(len(lengths), max(lengths), 8), torch.randn(len(lengths), 8)
    found = []
    for read in (packed, kernel._by_recurrence, side_by_side):
        states, last = read(gru, vectors, words(lengths))
        leaves = (vectors, *gru.parameters())
        found.append((states, last, *torch.autograd.grad((states * outer).sum() + (last * last_outer).sum(), leaves)))
    for definition, ours, chosen in zip(*found, strict=True):
        torch.testing.assert_close(ours, definition)
        torch.testing.assert_close(chosen, definition)
