"""Dropout by key: a pure function with the right share, whose gradient lacks what the numbers lack."""

from __future__ import annotations

import pytest
import torch
from asreader.kernels.dropout import dropped

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def kept(values: torch.Tensor, keys: torch.Tensor, salt: int = 0) -> torch.Tensor:
    return dropped(values, keys, 0.25, salt) != 0


def test_what_is_dropped_depends_on_key_and_salt_alone() -> None:
    values, keys = torch.rand(3, 50, 40, device=DEVICE) + 1, torch.tensor([5, 6, 5], device=DEVICE)
    first = kept(values, keys)
    assert torch.equal(first, kept(values * 7, keys))
    assert torch.equal(first[0], first[2])
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first, kept(values, keys, salt=1))
    assert dropped(values, keys, 0.0) is values


def test_the_share_the_scale_and_the_gradient() -> None:
    values = torch.ones(2, 300, 100, device=DEVICE, requires_grad=True)
    found = dropped(values, torch.tensor([1, 2**31 - 1], device=DEVICE), 0.25)
    assert (found == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)  # 60,000 draws: five deviations
    assert found.detach().unique().tolist() == [0.0, pytest.approx(1 / 0.75)]
    assert torch.equal(torch.autograd.grad(found.sum(), values)[0], found.detach())


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_kernel(share: float) -> None:
    """On a CPU by Triton's interpreter: another draw than torch's, but the same law."""
    kernel = pytest.importorskip("asreader.ops.keyed_dropout.triton")
    values, keys = torch.rand(2, 5000, device=DEVICE) + 1, torch.tensor([3, 4], dtype=torch.int32, device=DEVICE)
    found = kernel.masked(values, keys, share, 0)
    assert torch.equal(found, kernel.masked(values, keys, share, 0))
    there = found != 0
    torch.testing.assert_close(found[there], (values / (1 - share))[there])
    assert there.float().mean().item() == pytest.approx(1 - share, abs=0.025)
    assert not torch.equal(there[0], there[1])
