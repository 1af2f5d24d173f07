"""values at positions -> their sums for each row of a table: the gradient of looking rows up.

An implementation has `start_sum(positions, like)`: it clears what will get no sum and returns a function that takes the
values, launches the first kernel and returns a function that finishes. Between the two there may be other work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader import ops
from asreader.ops import Workload

SegmentSum = Callable[[Tensor], Callable[[], Tensor]]
"""Two-phase sum: takes the values and returns a function that finishes."""


@dataclass(frozen=True)
class RowOrder:
    """All positions of a batch sorted by row."""

    rows: Int[Tensor, "*N positions"]
    order: Int[Tensor, "*N positions"]  # the positions
    ends: Int[Tensor, "*N U"]  # where each row's segment of positions ends
    empty: Int[Tensor, "*N"]  # how many of the first positions hold no word

    def tensors(self) -> tuple[Tensor, ...]:
        """In the order of the fields."""
        return self.rows, self.order, self.ends, self.empty


@dataclass(frozen=True)
class Positions:
    """Which row of a table stands where: time first, as a recurrence steps."""

    index: Int[Tensor, "*N T B"]
    rows: int  # of the table
    is_identity: bool = False  # every position has a row of its own, in order
    empty: Int[Tensor, " N"] | None = None  # at how many positions no word stands: all have row 0
    order: RowOrder | None = field(default=None, repr=False)  # sorted before it is needed, if so

    @classmethod
    def identity(cls, shape: Sequence[int], device: torch.device) -> Positions:
        """Every position of batches of shape (N, T, B), or of one of shape (T, B), has a row of its own."""
        steps, batch = shape[-2:]
        index = torch.arange(steps * batch, dtype=torch.int32, device=device).view(steps, batch)
        return cls(index.expand(*shape).contiguous(), steps * batch, is_identity=True)

    @classmethod
    def from_tensors(cls, index: Tensor, rows: int, order: Sequence[Tensor] | None) -> Positions:
        """As they were before an operation took them apart."""
        return cls(index, rows, order=None if order is None else RowOrder(*order))

    @cached_property
    def by_row(self) -> RowOrder:
        """Positions of equal rows side by side, in the order in which they were."""
        if self.order is not None:
            return self.order
        numbers = self.index.flatten(1)
        # Two radix passes instead of four: a batch never has so many unique words.
        short = numbers.short() if self.rows < 1 << 15 else numbers
        ordered = short.sort(dim=1, stable=True)
        every = torch.arange(self.rows, dtype=short.dtype, device=short.device).repeat(len(short), 1)
        ends = torch.searchsorted(ordered.values, every, right=True, out_int32=True)
        empty = torch.zeros_like(ends[:, 0]) if self.empty is None else self.empty
        return RowOrder(ordered.values, ordered.indices.int(), ends, empty)


def start_sum(positions: Positions, like: Float[Tensor, "N U D columns"]) -> SegmentSum:
    """What sums values [R, positions, columns] into the shape of `like`: of R = N D recurrences each D in a row have
    the positions of one batch."""
    if positions.is_identity:  # nothing to add: the same numbers in another order
        directions = like.shape[2]
        return lambda values: lambda: values.unflatten(0, (-1, directions)).transpose(1, 2)
    implementation = ops.select("segment_sum", Workload(like.device, like.dtype))
    started: SegmentSum = implementation.start_sum(positions, like)
    return started


def sum_by_row(
    values: Float[Tensor, "R positions columns"], positions: Positions, shape: Sequence[int]
) -> Float[Tensor, "N U D columns"]:
    """The sums, in both phases at once."""
    return start_sum(positions, values.new_empty(tuple(shape)))(values)()
