"""Norms of many tensors of many readers in few passes, against PyTorch's own."""

from __future__ import annotations

import pytest
import torch

from asreader import ops
from asreader.ops.grad_norm import find_clip_divisors

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SIZES = [(9, 1000), (2, 3, 5), (8192,), (1,), (8193,), (40,)]
READERS = 3


def draw_gradients() -> list[torch.Tensor]:
    torch.manual_seed(1)
    gradients = [torch.randn(READERS, *size, device=DEVICE) for size in SIZES]
    # The first may be handed over in half precision without losing anything.
    return [gradients[0].bfloat16().float(), *gradients[1:]]


@pytest.mark.parametrize("implementation", ["triton", "reference"])
@pytest.mark.parametrize("clip", [0.5, 300.0])
def test_gradients_are_divided_as_pytorch_clips_them(clip: float, implementation: str) -> None:
    if implementation == "triton":
        pytest.importorskip("triton")
    gradients = draw_gradients()
    with ops.using(implementation, "grad_norm"):
        found = find_clip_divisors(gradients, clip)
    for reader in range(READERS):
        own = [torch.nn.Parameter(torch.zeros(size, device=DEVICE)) for size in SIZES]
        for parameter, gradient in zip(own, gradients, strict=True):
            parameter.grad = gradient[reader].clone()
        torch.nn.utils.clip_grad_norm_(own, clip)
        assert own[1].grad is not None
        torch.testing.assert_close(gradients[1][reader] / found[reader], own[1].grad, rtol=1e-5, atol=0.0)
    assert (found == 1).all() == (clip == 300.0)


def test_squares_may_come_in_parts_and_in_half_precision() -> None:
    triton = pytest.importorskip("asreader.ops.grad_norm.triton")
    gradients = draw_gradients()
    squares = [triton.sum_squares([gradients[0].bfloat16()]), triton.sum_squares(gradients[1:])]
    out = torch.empty(READERS, device=DEVICE)
    found = triton.find_divisors(squares, 0.5, out)
    assert found is out
    with ops.using("reference", "grad_norm"):
        torch.testing.assert_close(found, find_clip_divisors(gradients, 0.5), rtol=1e-5, atol=0.0)
