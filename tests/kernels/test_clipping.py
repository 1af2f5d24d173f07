"""Norms of many tensors of many readers in few passes, against PyTorch's own."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton")
from asreader.ops.grad_norm import triton

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("most", [0.5, 300.0])
def test_gradients_are_divided_as_pytorch_clips_them(most: float) -> None:
    torch.manual_seed(1)
    sizes, readers = [(9, 1000), (2, 3, 5), (8192,), (1,), (8193,), (40,)], 3
    gradients = [torch.randn(readers, *size, device=DEVICE) for size in sizes]
    gradients[0] = gradients[0].bfloat16()
    found = triton.divisors([triton.squares(gradients[:1]), triton.squares(gradients[1:])], most)
    for reader in range(readers):
        own = [torch.nn.Parameter(torch.zeros(size, device=DEVICE)) for size in sizes]
        for parameter, gradient in zip(own, gradients, strict=True):
            parameter.grad = gradient[reader].float()
        before = own[1].grad.clone()
        torch.nn.utils.clip_grad_norm_(own, most)
        torch.testing.assert_close(before / found[reader], own[1].grad, rtol=1e-5, atol=0.0)
    assert (found == 1).all() == (most == 300.0)
