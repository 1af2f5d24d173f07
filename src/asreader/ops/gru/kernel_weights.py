"""weights of N readers' encoders -> the layout of the GPU kernels: biases are a column of the input weights.

W x + b is one product with vectors that end in a one: a batched product adds no bias, and another pass over its result
would cost as much as the product. Kernel `_append_biases`: grid (rows / ROWS), a program owns ROWS rows of weights.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from asreader.ops.gru import RecurrenceInputs
from asreader.ops.segment_sum import Positions

EXTRA_COLUMNS = 8
"""Columns appended to a vector, a one and zeros: rows must start at multiples of 16 bytes."""
ROWS = 4


@dataclass(frozen=True)
class KernelWeights:
    """The weights of N readers' encoders, R = 2 N directions, in the precision of products."""

    inputs: Float[Tensor, "N both_gates E_and_8"]  # biases stand where the vectors have their ones
    recurrent: Float[Tensor, "R gates H"]
    biases: Float[Tensor, "R H"]  # of the recurrent product of new, in float32

    @classmethod
    def pack(
        cls,
        inputs: Float[Tensor, "N D gates E"],
        recurrent: Float[Tensor, "N D gates H"],
        of_inputs: Float[Tensor, "N D gates"],
        of_products: Float[Tensor, "R H"],
        precision: torch.dtype,
    ) -> KernelWeights:
        """From weights as they are and biases as `combine_biases` has them."""
        matrices = append_biases(inputs.flatten(1, 2), of_inputs.flatten(1), precision)
        return cls(matrices, recurrent.flatten(0, 1).to(precision), of_products.float().contiguous())

    @classmethod
    def allocate(
        cls, inputs: Float[Tensor, "N D gates E"], recurrent: Float[Tensor, "N D gates H"], precision: torch.dtype
    ) -> KernelWeights:
        """Memory for weights of these shapes."""
        (readers, directions, gates, width), hidden = inputs.shape, recurrent.shape[-1]
        return cls(
            inputs.new_zeros(readers, directions * gates, width + EXTRA_COLUMNS, dtype=precision),
            recurrent.new_zeros(readers * directions, gates, hidden, dtype=precision),
            recurrent.new_zeros(readers * directions, hidden, dtype=torch.float32),
        )

    def recurrence_inputs(
        self, vectors: Float[Tensor, "N U E_and_8"], positions: Positions, lengths: Int[Tensor, "N B"]
    ) -> RecurrenceInputs:
        """What the recurrences of both directions work on, from the vectors of the unique words."""
        table = torch.bmm(vectors, self.inputs.transpose(1, 2)).unflatten(2, (2, -1))
        return RecurrenceInputs(table, positions, self.recurrent, self.biases, lengths)


def append_ones(vectors: Float[Tensor, "N U E"]) -> Float[Tensor, "N U E_and_8"]:
    """Vectors with a one appended to each."""
    found = vectors.new_zeros(*vectors.shape[:2], vectors.shape[2] + EXTRA_COLUMNS)
    found[..., :-EXTRA_COLUMNS] = vectors
    found[..., -EXTRA_COLUMNS] = 1
    return found


def append_biases(
    weights: Float[Tensor, "N rows E"], biases: Float[Tensor, "N rows"], precision: torch.dtype
) -> Float[Tensor, "N rows E_and_8"]:
    """Weights in a lower precision with their biases where the vectors have their ones."""
    readers, rows, width = weights.shape
    found = torch.empty(readers, rows, width + EXTRA_COLUMNS, dtype=precision, device=weights.device)
    _append_biases[(triton.cdiv(readers * rows, ROWS),)](
        weights.contiguous(), biases.contiguous(), found, readers * rows, E=width, EXTRA_COLUMNS=EXTRA_COLUMNS,
        WIDE=triton.next_power_of_2(width + EXTRA_COLUMNS), ROWS=ROWS,
    )  # fmt: skip
    return found


@triton.jit
def _append_biases(
    weights, biases, found, rows, E: tl.constexpr, EXTRA_COLUMNS: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr
):
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDE)
    line, real = row.to(tl.int64)[:, None], (row < rows)[:, None]
    own = tl.load(weights + line * E + column[None, :], mask=real & (column < E)[None, :], other=0)
    bias = tl.load(biases + row, mask=row < rows, other=0)
    whole = tl.where((column == E)[None, :], bias[:, None], own).to(found.dtype.element_ty)
    tl.store(
        found + line * (E + EXTRA_COLUMNS) + column[None, :], whole, mask=real & (column < E + EXTRA_COLUMNS)[None, :]
    )
