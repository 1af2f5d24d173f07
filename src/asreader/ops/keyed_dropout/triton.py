"""Keyed dropout on a GPU (Triton): the reference's hash in one launch.

Grid: (values of a reader / BLOCK, N); a program owns BLOCK values of one reader. Values are contiguous.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from asreader.ops.triton_support import supports_triton

BLOCK = 1024


supports = supports_triton


def apply_mask(
    values: Float[Tensor, "N ..."],
    keys: Int[Tensor, " N"],
    probability: float,
    salt: int,
    rows: Int[Tensor, "N U"] | None = None,
) -> Float[Tensor, "N ..."]:
    """What the reference does."""
    dropped, count = torch.empty_like(values), values[0].numel()
    _apply_mask[(triton.cdiv(count, BLOCK), len(values))](
        values, keys, values if rows is None else rows.contiguous(), dropped, 1 / (1 - probability),
        int(probability * (1 << 32)), salt, count, keys.stride(0), values.shape[-1], BY_ROW=rows is not None,
        BLOCK=BLOCK,
    )  # fmt: skip
    return dropped


@triton.jit
def _hash32(value):
    value = (((value >> 16) ^ value) * 0x45D9F3B) & 0xFFFFFFFF
    value = (((value >> 16) ^ value) * 0x45D9F3B) & 0xFFFFFFFF
    return (value >> 16) ^ value


@triton.jit
def _apply_mask(
    values, keys, rows, dropped, scale, threshold, salt, count, stride, width, BY_ROW: tl.constexpr, BLOCK: tl.constexpr
):
    n = tl.program_id(1).to(tl.int64)
    position = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(keys + n * stride).to(tl.int64) & 0xFFFFFFFF
    drawn_at = position.to(tl.int64)
    if BY_ROW:
        row = tl.load(rows + n * (count // width) + position // width, mask=position < count, other=0).to(tl.int64)
        drawn_at = row * width + position % width
    drawn = _hash32(_hash32(_hash32(key) ^ salt) ^ drawn_at)
    value = tl.load(values + n * count + position, mask=position < count, other=0)
    kept = tl.where(drawn >= threshold, value.to(tl.float32) * scale, 0.0)
    tl.store(dropped + n * count + position, kept.to(dropped.dtype.element_ty), mask=position < count)
