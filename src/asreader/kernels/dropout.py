"""numbers of N readers -> the same with some of each dropped, as a pure function of each reader's key.

A captured step cannot draw from a generator that the host seeds; here the draw is a hash of the key and the place.
On a GPU it is one kernel (Triton), elsewhere torch's generator seeded by the key: another draw, the same distribution.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def dropped(
    values: Float[Tensor, N * rest], keys: Int[Tensor, " N"], share: float, salt: int = 0
) -> Float[Tensor, N * rest]:
    """A share of all numbers is zero, the others are scaled up; `salt` tells several draws of one step apart."""
    if not share:
        return values
    found: Tensor = _Dropped.apply(values, keys, share, salt)
    return found


def of_words(table: nn.Embedding, rows: Int[Tensor, "B T"], dropout: nn.Dropout) -> Float[Tensor, "B T E"]:
    """The vectors of rows, by torch's own generator: a word lacks the same numbers wherever it stands in the batch."""
    distinct, place = rows.unique(return_inverse=True)
    vectors: Tensor = dropout(table(distinct))[place]
    return vectors


class _Dropped(torch.autograd.Function):
    """What is dropped from the numbers is dropped from their gradients."""

    @staticmethod
    def forward(context: Any, values: Tensor, keys: Tensor, share: float, salt: int) -> Tensor:
        context.save_for_backward(keys)
        context.share, context.salt = share, salt
        return _masked(values.contiguous(), keys, share, salt)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (keys,) = context.saved_tensors
        return _masked(gradient.contiguous(), keys, context.share, context.salt), None, None, None


def _masked(values: Tensor, keys: Tensor, share: float, salt: int) -> Tensor:
    if values.device.type == "cuda":
        from asreader.kernels import dropout_kernel

        return dropout_kernel.masked(values, keys, share, salt)
    kept = torch.empty(values.shape, dtype=torch.bool)
    for own, key in zip(kept, keys.tolist(), strict=True):
        generator = torch.Generator().manual_seed(key * 16 + salt)
        own.copy_(torch.rand(own.shape, generator=generator) >= share)
    return values * kept / (1 - share)
