"""weights and biases -> one matrix for products with vectors that have a one behind them (Triton).

W x + b as one product: a batched product adds no bias, and another pass over its result would cost as much as itself.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

BEHIND = 8
"""Columns behind a vector, a one and zeros: rows must begin where 16 bytes begin."""
ROWS = 4


def with_ones(vectors: Float[Tensor, "N W E"]) -> Float[Tensor, "N W E_and_8"]:
    """Vectors with a one behind each."""
    found = vectors.new_zeros(*vectors.shape[:2], vectors.shape[2] + BEHIND)
    found[..., :-BEHIND] = vectors
    found[..., -BEHIND] = 1
    return found


def with_biases(
    weights: Float[Tensor, "N rows E"], biases: Float[Tensor, "N rows"], precision: torch.dtype
) -> Float[Tensor, "N rows E_and_8"]:
    """Weights in a lower precision with their biases where the vectors have their ones."""
    readers, rows, width = weights.shape
    found = torch.empty(readers, rows, width + BEHIND, dtype=precision, device=weights.device)
    _with_biases[(triton.cdiv(readers * rows, ROWS),)](
        weights.contiguous(), biases.contiguous(), found, readers * rows, E=width, BEHIND=BEHIND,
        WIDE=triton.next_power_of_2(width + BEHIND), ROWS=ROWS,
    )  # fmt: skip
    return found


@triton.jit
def _with_biases(
    weights, biases, found, rows, E: tl.constexpr, BEHIND: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr
):
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDE)
    line, real = row.to(tl.int64)[:, None], (row < rows)[:, None]
    own = tl.load(weights + line * E + column[None, :], mask=real & (column < E)[None, :], other=0)
    bias = tl.load(biases + row, mask=row < rows, other=0)
    whole = tl.where((column == E)[None, :], bias[:, None], own).to(found.dtype.element_ty)
    tl.store(found + line * (E + BEHIND) + column[None, :], whole, mask=real & (column < E + BEHIND)[None, :])
