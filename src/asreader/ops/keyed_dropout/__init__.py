"""values -> the same with some dropped, as a pure function of a key: no generator has a state that must be saved.

What is dropped is a hash of the key, of the number of the call since `dropout_key` was entered, and of the word's row
or the position in the tensor. So a CPU and a GPU, one reader and N readers drop the same, and a replayed CUDA graph
draws from the key that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader import ops
from asreader.ops import Workload
from asreader.ops.vmap_rules import fold_readers

_MIX = 0x45D9F3B


class _Calls:
    """The key of a step, and how many calls have drawn from it."""

    def __init__(self, key: Int[Tensor, ""]) -> None:
        self.key, self.count = key, 0


_CALLS: ContextVar[_Calls | None] = ContextVar("dropout key", default=None)


@contextmanager
def dropout_key(key: Int[Tensor, ""]) -> Iterator[None]:
    """Inside, calls of `drop` draw from this key: the first, the second and so on, each with a draw of its own."""
    token = _CALLS.set(_Calls(key))
    try:
        yield
    finally:
        _CALLS.reset(token)


def drop(
    values: Float[Tensor, "*shape"], probability: float, rows: Int[Tensor, " U"] | None = None
) -> Float[Tensor, "*shape"]:
    """Zero each value with this probability and scale the others up; unchanged outside `dropout_key`.

    With rows, values are vectors and what is dropped depends on the row that a vector has, not on where it stands.
    """
    calls = _CALLS.get()
    if calls is None or not probability:
        return values
    salt, calls.count = calls.count, calls.count + 1
    own_rows = None if rows is None else rows[None]
    dropped: Tensor = _Drop.apply(values[None], calls.key[None], own_rows, probability, salt)  # type: ignore[no-untyped-call]
    return dropped[0]


def drop_for_readers(
    values: Float[Tensor, "N ..."],
    keys: Int[Tensor, " N"],
    probability: float,
    salt: int,
    rows: Int[Tensor, "N U"] | None = None,
) -> Float[Tensor, "N ..."]:
    """The same with a key for each reader; `salt` is the number of the call."""
    if not probability:
        return values
    dropped: Tensor = _Drop.apply(values, keys, rows, probability, salt)  # type: ignore[no-untyped-call]
    return dropped


def hash32(value: Any) -> Any:
    """32 bits mixed so that neighbours are as different as any other two; int64 tensors and NumPy arrays."""
    for _ in range(2):
        value = ((value >> 16) ^ value) * _MIX & 0xFFFFFFFF
    return (value >> 16) ^ value


class _Drop(torch.autograd.Function):
    """What is dropped from the values is dropped from their gradients."""

    @staticmethod
    def forward(values: Tensor, keys: Tensor, rows: Tensor | None, probability: float, salt: int) -> Tensor:
        return _apply_mask(values, keys, rows, probability, salt)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, keys, rows, ctx.probability, ctx.salt = inputs
        ctx.save_for_backward(keys, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        keys, rows = ctx.saved_tensors
        return _apply_mask(gradient, keys, rows, ctx.probability, ctx.salt), None, None, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        values: Tensor,
        keys: Tensor,
        rows: Tensor | None,
        probability: float,
        salt: int,
    ) -> tuple[Tensor, int]:
        count = info.batch_size
        folded = fold_readers((values, keys, rows), in_dims[:3], count)
        dropped = _Drop.apply(*folded, probability, salt)  # type: ignore[no-untyped-call]
        return dropped.unflatten(0, (count, -1)), 0


def _apply_mask(values: Tensor, keys: Tensor, rows: Tensor | None, probability: float, salt: int) -> Tensor:
    implementation = ops.select("keyed_dropout", Workload(values.device, values.dtype))
    masked: Tensor = implementation.apply_mask(values.contiguous(), keys, probability, salt, rows)
    return masked
