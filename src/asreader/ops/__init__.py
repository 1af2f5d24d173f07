"""Hot operations: a folder each, with a reference and faster implementations; this module chooses between them.

An implementation is a module `ops/OPERATION/NAME.py` with `supports(workload)`, which returns None or says why it
cannot be used. The first of `IMPLEMENTATIONS[OPERATION]` that supports a workload serves it; `using` overrides the
order, for tests and benchmarks. README.md lists the shape letters and says how to add an operation.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import torch

from asreader.errors import InputError

IMPLEMENTATIONS: dict[str, tuple[str, ...]] = {
    "gru": ("cuda", "triton", "cpu", "reference"),
    "attention_scores": ("triton", "reference"),
    "attention_loss": ("triton", "reference"),
    "pointer_sum": ("cpu", "reference"),
    "unique_rows": ("triton", "reference"),
    "segment_sum": ("triton", "cpu", "reference"),
    "gather_batch": ("triton", "reference"),
    "row_adam": ("triton", "reference"),
    "grad_norm": ("triton", "reference"),
    "keyed_dropout": ("triton", "reference"),
}
"""Operation -> names of its implementations, fastest first; the reference supports everything."""

_GPU_ONLY = ("cuda", "triton")  # Triton's interpreter runs on a CPU too, but only where `using` asks for it
_PREFERRED: ContextVar[dict[str, str]] = ContextVar("preferred implementations", default={})  # noqa: B039 - never changed


@dataclass(frozen=True)
class Workload:
    """What an implementation has to serve: where, in which precision, and how wide a state is."""

    device: torch.device
    dtype: torch.dtype = torch.float32
    hidden: int = 0


@dataclass(frozen=True)
class ImplementationChoice:
    """The implementation that serves an operation, and why each faster one does not."""

    operation: str
    implementation: str
    rejected: dict[str, str]


def select(operation: str, workload: Workload) -> ModuleType:
    """The module that serves an operation here."""
    choice = choose(operation, workload)
    return _load(operation, choice.implementation)


def choose(operation: str, workload: Workload) -> ImplementationChoice:
    """Which implementation serves, and why not a faster one."""
    preferred = _PREFERRED.get().get(operation)
    if preferred is not None:
        reason = _reason_against(operation, preferred, workload)
        if reason is None:
            return ImplementationChoice(operation, preferred, {})
    return _choose_fastest(operation, workload)


@cache
def _choose_fastest(operation: str, workload: Workload) -> ImplementationChoice:
    rejected: dict[str, str] = {}
    for name in IMPLEMENTATIONS[operation]:
        on_gpu = workload.device.type != "cpu" or name not in _GPU_ONLY
        reason = _reason_against(operation, name, workload) if on_gpu else "runs on a GPU only"
        if reason is None:
            return ImplementationChoice(operation, name, rejected)
        rejected[name] = reason
    raise AssertionError(f"{operation} has no reference")


def _reason_against(operation: str, name: str, workload: Workload) -> str | None:
    if name not in IMPLEMENTATIONS[operation]:
        return "there is none"
    try:
        module = _load(operation, name)
    except ImportError as error:  # Triton comes with PyTorch for GPUs, on most platforms
        return f"{error.name or error} is not installed"
    reason: str | None = module.supports(workload)
    return reason


@cache
def _load(operation: str, name: str) -> ModuleType:
    return importlib.import_module(f"asreader.ops.{operation}.{name}")


@contextmanager
def using(implementation: str, *operations: str) -> Iterator[None]:
    """Inside, these operations (all if none is named) use this implementation wherever it supports the workload."""
    unknown = [name for name in operations if name not in IMPLEMENTATIONS]
    if unknown:
        raise InputError(f"there is no operation {unknown[0]!r}; there are {', '.join(IMPLEMENTATIONS)}")
    token = _PREFERRED.set({**_PREFERRED.get(), **dict.fromkeys(operations or IMPLEMENTATIONS, implementation)})
    try:
        yield
    finally:
        _PREFERRED.reset(token)
