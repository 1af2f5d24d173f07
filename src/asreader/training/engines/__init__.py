"""Engines: each file here takes training steps in its own way; `loop.fit` drives all of them alike.

An engine is a module `NAME.py` with

    supports(spec: JobSpec) -> str | None              None, or why it cannot be used: shown to the user
    open_engine(spec: JobSpec) -> context manager of an Engine
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from asreader import plugins
from asreader.batches.plan import StepPlan
from asreader.errors import InputError
from asreader.inference.reader import pick_device
from asreader.inference.store_evaluation import Evaluation
from asreader.settings import Config
from asreader.training.job import Job

ORDER = ("fused_attention_sum", "stacked", "plain")
"""What `train.engine = "auto"` tries; ddp and plug-ins of others must be asked for."""


@dataclass(frozen=True)
class JobSpec:
    """What is to be trained: settings of equal shape, and how many readers have them."""

    settings: Config
    readers: int = 1

    @property
    def device(self) -> torch.device:
        """The device of train.device."""
        return pick_device(self.settings.train.device)

    @property
    def precision(self) -> torch.dtype:
        """The precision of products."""
        name = self.settings.train.precision
        if name == "auto":
            has_bfloat16 = self.device.type == "cuda" and torch.cuda.is_bf16_supported()
            name = "bfloat16" if has_bfloat16 else "float32"
        return torch.bfloat16 if name == "bfloat16" else torch.float32


@dataclass(frozen=True)
class PendingLosses:
    """Mean losses of steps that were launched; a GPU may still be computing them."""

    values: Float[Tensor, "steps N"]
    ready: torch.cuda.Event | None = None

    def wait(self) -> Float[Tensor, "steps N"]:
        """The losses on the host."""
        if self.ready is not None:
            self.ready.synchronize()
        return self.values


@runtime_checkable
class Engine(Protocol):
    """Takes steps for jobs of equal shape."""

    name: str
    device: torch.device
    is_main: bool  # whether this process validates and writes
    max_jobs: int  # that are trained at the same time
    max_steps: int  # of one `run`

    def attach(self, jobs: Sequence[Job]) -> None: ...
    def run(self, plans: Sequence[Sequence[StepPlan]], should_stop: Callable[[], bool]) -> PendingLosses: ...
    def evaluate(self, jobs: Sequence[Job], *, averaged: bool) -> list[Evaluation]: ...
    def synchronize(self) -> None: ...
    def any(self, flag: bool) -> bool: ...
    def broadcast(self, values: Sequence[float]) -> list[float]: ...


def choose_engine(spec: JobSpec) -> tuple[str, dict[str, str]]:
    """The engine that serves, and why each faster one does not."""
    wanted = spec.settings.train.engine
    rejected: dict[str, str] = {}
    for name in ORDER if wanted == "auto" else (wanted,):
        reason = _load(name).supports(spec)
        if reason is None:
            return name, rejected
        rejected[name] = reason
    raise InputError(f"train.engine={wanted} cannot be used: {rejected[wanted]}")


@contextmanager
def open_engine(name: str, spec: JobSpec) -> Iterator[Engine]:
    """The engine of this name, released afterwards."""
    manager: AbstractContextManager[Engine] = _load(name).open_engine(spec)
    with manager as engine:
        yield engine


def _load(name: str) -> ModuleType:
    return plugins.load_plugin("training.engines", name)
