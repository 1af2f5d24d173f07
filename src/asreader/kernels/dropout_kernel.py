"""numbers and keys -> numbers with some dropped (Triton): Philox of the reader's key at the number's place."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor


def masked(
    values: Float[Tensor, N * rest], keys: Int[Tensor, " N"], share: float, salt: int
) -> Float[Tensor, N * rest]:
    """What `dropout.dropped` does, for contiguous numbers."""
    found, count = torch.empty_like(values), values[0].numel()
    _masked[(triton.cdiv(count, 1024), len(values))](
        values, keys, found, share, salt, count, keys.stride(0), BLOCK=1024
    )
    return found


@triton.jit
def _masked(values, keys, found, share, salt, count, stride, BLOCK: tl.constexpr):
    n = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(keys + n * stride).to(tl.int64) * 16 + salt
    kept = tl.rand(key, place) >= share
    value = tl.load(values + n * count + place, mask=place < count, other=0).to(tl.float32)
    scaled = tl.where(kept, value / (1 - share), 0.0)
    tl.store(found + n * count + place, scaled.to(found.dtype.element_ty), mask=place < count)
