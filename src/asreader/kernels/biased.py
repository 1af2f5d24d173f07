"""an encoder's weights -> what kernels read: weights and biases in one matrix, for vectors with a one behind (Triton).

W x + b as one product: a batched product adds no bias, and another pass over its result would cost as much as itself.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from asreader.kernels.recurrence import Given
from asreader.kernels.words import Places

BEHIND = 8
"""Columns behind a vector, a one and zeros: rows must begin where 16 bytes begin."""
ROWS = 4


@dataclass(frozen=True)
class Ready:
    """The weights of N readers' encoders, R = 2 N directions, in the precision of products."""

    inputs: Float[Tensor, "N both_gates E_and_8"]  # biases stand where the vectors have their ones
    recurrent: Float[Tensor, "R gates H"]
    biases: Float[Tensor, "R H"]  # of the recurrent product of new, in float32

    @classmethod
    def of(
        cls,
        inputs: Float[Tensor, "N D gates E"],
        recurrent: Float[Tensor, "N D gates H"],
        of_inputs: Float[Tensor, "N D gates"],
        of_products: Float[Tensor, "R H"],
        precision: torch.dtype,
    ) -> Ready:
        """From weights as they are and biases as `recurrence.biases` has them."""
        matrices = with_biases(inputs.flatten(1, 2), of_inputs.flatten(1), precision)
        return cls(matrices, recurrent.flatten(0, 1).to(precision), of_products.float().contiguous())

    @classmethod
    def room(
        cls, inputs: Float[Tensor, "N D gates E"], recurrent: Float[Tensor, "N D gates H"], precision: torch.dtype
    ) -> Ready:
        """For weights of these shapes."""
        (readers, directions, gates, width), hidden = inputs.shape, recurrent.shape[-1]
        return cls(
            inputs.new_zeros(readers, directions * gates, width + BEHIND, dtype=precision),
            recurrent.new_zeros(readers * directions, gates, hidden, dtype=precision),
            recurrent.new_zeros(readers * directions, hidden, dtype=torch.float32),
        )

    def given(self, vectors: Float[Tensor, "N W E_and_8"], places: Places, lengths: Int[Tensor, "N B"]) -> Given:
        """What the recurrences of both directions work on."""
        table = torch.bmm(vectors, self.inputs.transpose(1, 2)).unflatten(2, (2, -1))
        return Given(table, places, self.recurrent, self.biases, lengths)


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
