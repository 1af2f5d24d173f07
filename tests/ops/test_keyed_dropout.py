"""Dropout by key: a pure function with the right probability, whose gradient lacks what the values lack."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from asreader import ops
from asreader.ops.keyed_dropout import drop, drop_for_readers, dropout_key, hash32

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def is_kept(values: Tensor, keys: Tensor, salt: int = 0) -> Tensor:
    return drop_for_readers(values, keys, 0.25, salt) != 0


def test_what_is_dropped_depends_on_key_and_salt_alone() -> None:
    values, keys = torch.rand(3, 50, 40, device=DEVICE) + 1, torch.tensor([5, 6, 5], device=DEVICE)
    first = is_kept(values, keys)
    assert torch.equal(first, is_kept(values * 7, keys))
    assert torch.equal(first[0], first[2])
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first, is_kept(values, keys, salt=1))
    assert drop_for_readers(values, keys, 0.0, 0) is values


def test_the_share_the_scale_and_the_gradient() -> None:
    values = torch.ones(2, 300, 100, device=DEVICE, requires_grad=True)
    found = drop_for_readers(values, torch.tensor([1, 2**31 - 1], device=DEVICE), 0.25, 0)
    assert (found == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)  # 60,000 draws: five deviations
    assert found.detach().unique().tolist() == [0.0, pytest.approx(1 / 0.75)]
    assert torch.equal(torch.autograd.grad(found.sum(), values)[0], found.detach())


def test_neighbours_are_dropped_independently() -> None:
    """Positions, keys and salts that differ by one."""
    values = torch.ones(2, 100_000, device=DEVICE)
    keys = torch.tensor([7, 8], device=DEVICE)
    first, salted = is_kept(values, keys), is_kept(values, keys, salt=1)
    for one, other in ((first[0, 1:], first[0, :-1]), (first[0], first[1]), (first[0], salted[0])):
        assert (one & other).float().mean().item() == pytest.approx(0.75**2, abs=0.01)


def test_outside_of_a_key_nothing_is_dropped() -> None:
    values = torch.ones(5)
    assert drop(values, 0.5) is values
    with dropout_key(torch.tensor(1)):
        assert drop(values, 0.0) is values
        assert not torch.equal(drop(torch.ones(100), 0.5), torch.ones(100))
    assert drop(values, 0.5) is values


def test_every_call_under_a_key_draws_anew_and_the_same_key_the_same() -> None:
    values = torch.ones(200, device=DEVICE)

    def draw_twice() -> list[Tensor]:
        with dropout_key(torch.tensor(3, device=DEVICE)):
            return [drop(values, 0.5) for _ in range(2)]

    (first, second), again = draw_twice(), draw_twice()
    assert not torch.equal(first, second)
    assert torch.equal(first, again[0]) and torch.equal(second, again[1])


@pytest.mark.parametrize("by_row", [False, True])
def test_readers_together_drop_what_each_drops_alone(by_row: bool) -> None:
    keys = torch.tensor([5, 9], device=DEVICE)
    values = torch.rand(2, 30, 4, device=DEVICE).add(1).requires_grad_()
    rows = torch.randint(0, 90, (2, 30), device=DEVICE)

    def drop_one(own: Tensor, key: Tensor, which: Tensor) -> Tensor:
        with dropout_key(key):
            return drop(own, 0.3, which if by_row else None)

    together = torch.func.vmap(drop_one)(values, keys, rows)
    alone = torch.stack([drop_one(values[n], keys[n], rows[n]) for n in range(2)])
    assert torch.equal(together, alone)
    assert torch.equal(together, drop_for_readers(values, keys, 0.3, 0, rows if by_row else None))
    gradients = [torch.autograd.grad(found.sum(), values)[0] for found in (together, alone)]
    assert torch.equal(*gradients)


def test_a_row_loses_the_same_wherever_its_vector_stands() -> None:
    rows = torch.tensor([4, 2, 4, 0], device=DEVICE)
    with dropout_key(torch.tensor(1, device=DEVICE)):
        found = drop(torch.ones(4, 64, device=DEVICE), 0.5, rows)
    with dropout_key(torch.tensor(1, device=DEVICE)):
        whole = drop(torch.ones(5, 64, device=DEVICE), 0.5)  # as rows 0 to 4
    assert torch.equal(found, whole[rows])


@pytest.mark.parametrize("probability", [0.1, 0.5])
@pytest.mark.parametrize("by_row", [False, True])
def test_the_kernel_draws_what_the_reference_draws(probability: float, by_row: bool) -> None:
    pytest.importorskip("triton")
    torch.manual_seed(0)
    values = torch.rand(3, 130, 40, device=DEVICE) + 1
    keys = torch.tensor([3, -4, 2**31 - 1], dtype=torch.int32, device=DEVICE)
    rows = torch.randint(0, 200_000, (3, 130), device=DEVICE) if by_row else None
    found = []
    for implementation in ("triton", "reference"):
        with ops.using(implementation, "keyed_dropout"):
            found.append(drop_for_readers(values, keys, probability, 2, rows))
    assert torch.equal(found[0] != 0, found[1] != 0)
    torch.testing.assert_close(*found)
    assert not torch.equal(found[0][0] != 0, found[0][1] != 0)


def test_hashes_of_arrays_and_tensors_agree() -> None:
    numbers = torch.arange(1000)
    assert hash32(numbers).tolist() == hash32(numbers.numpy()).tolist()
    assert hash32(numbers).unique().numel() == 1000
    assert hash32(numbers).min() >= 0 and hash32(numbers).max() < 1 << 32
