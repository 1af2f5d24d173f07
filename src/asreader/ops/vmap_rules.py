"""axes of `torch.func.vmap` -> the leading axis of readers that every operation has anyway."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor


def fold_readers(values: Sequence[Any], axes: Sequence[int | None], count: int) -> list[Any]:
    """Tensors with the axis of vmap folded into their first one; a tensor without it is repeated, others are kept."""
    return [
        _fold(value, axis, count) if isinstance(value, Tensor) else value
        for value, axis in zip(values, axes, strict=True)
    ]


def _fold(tensor: Tensor, axis: int | None, count: int) -> Tensor:
    whole = tensor.expand(count, *tensor.shape) if axis is None else tensor.movedim(axis, 0)
    return whole.flatten(0, 1)
