"""The definition of segment sums: scatter-add in float32."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader.ops import Workload
from asreader.ops.segment_sum import Positions, SegmentSum


def supports(workload: Workload) -> str | None:
    """Everything."""
    return None


def start_sum(positions: Positions, like: Float[Tensor, "N U D columns"]) -> SegmentSum:
    """The contract of `ops/segment_sum`; all is done when the values come."""
    return lambda values: lambda: scatter_add(values, positions.index.flatten(1), positions.rows)


def scatter_add(
    values: Float[Tensor, "R positions columns"], index: Int[Tensor, "N positions"], rows: int
) -> Float[Tensor, "N U D columns"]:
    """Sums in float32 or wider, returned in the precision of the values."""
    directions = len(values) // len(index)
    wide = torch.promote_types(values.dtype, torch.float32)
    sums = values.new_zeros(len(values), rows, values.shape[2], dtype=wide)
    target = index.repeat_interleave(directions, dim=0).long()[..., None].expand_as(values)
    whole = sums.scatter_add_(1, target, values.to(wide)).to(values.dtype)
    return whole.view(-1, directions, *whole.shape[1:]).transpose(1, 2).contiguous()
