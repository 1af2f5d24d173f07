"""Segment sums on a CPU: a row at a time by PyTorch's gradient of an embedding."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from asreader.ops import Workload
from asreader.ops.segment_sum import Positions, SegmentSum


def supports(workload: Workload) -> str | None:
    """float32 and float64 on a CPU."""
    if workload.device.type != "cpu":
        return "runs on a CPU only"
    return None if workload.dtype in (torch.float32, torch.float64) else f"does not sum in {workload.dtype}"


def start_sum(positions: Positions, like: Float[Tensor, "N U D columns"]) -> SegmentSum:
    """The contract of `ops/segment_sum`; all is done when the values come."""

    def sum_values(values: Float[Tensor, "R positions columns"]) -> Float[Tensor, "N U D columns"]:
        index, rows = positions.index.flatten(1).long(), positions.rows
        readers, directions = len(index), len(values) // len(index)
        first = torch.arange(readers)[:, None] * rows
        # Directions side by side, so that each position is one long row.
        wide = values.unflatten(0, (readers, directions)).movedim(1, 2).flatten(0, 1).flatten(1)
        sums = torch.ops.aten.embedding_dense_backward(wide, (index + first).flatten(), readers * rows, -1, False)
        return sums.view(readers, rows, directions, -1)  # type: ignore[no-any-return]

    return lambda values: lambda: sum_values(values)
