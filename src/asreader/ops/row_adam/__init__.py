"""gradients of N readers -> their weights after a step of Adam, each reader with its own step count and learning rate.

An implementation has a class `Adam(parameters, tables, recipe)` with `read_rows` (the vectors of a batch's unique
rows), `step` (one update of everything) and `synchronize` (bring all weights up to date).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from asreader import ops
from asreader.ops import Workload
from asreader.ops.unique_rows import UniqueRows

BETAS, EPSILON = (0.9, 0.999), 1e-8
"""Those of torch.optim.Adam."""


@dataclass(frozen=True)
class StackedParameter:
    """One parameter of N readers with Adam's moments and, if one is kept, the moving average of the weights."""

    weights: Float[Tensor, "N ..."]
    first: Float[Tensor, "N ..."]
    second: Float[Tensor, "N ..."]
    average: Float[Tensor, "N ..."] | None = None


@dataclass(frozen=True)
class AdamRecipe:
    """How readers learn: the rates of each, what all rates are multiplied with step by step, clipping, averaging."""

    rates: Sequence[float]
    factors: Sequence[float] = (1.0,)  # the last one stays
    clip: float = 10.0
    ema_decay: float = 0.0  # what a step keeps of the moving average; 0: there is none


@runtime_checkable
class StackedAdam(Protocol):
    """torch.optim.Adam after clip_grad_norm_, for N readers."""

    def read_rows(self, name: str, unique: UniqueRows) -> Float[Tensor, "N U E"]: ...
    def step(self, gradients: Mapping[str, Tensor], unique: UniqueRows) -> None: ...
    def synchronize(self) -> None: ...


def make_adam(
    parameters: Mapping[str, StackedParameter], tables: Sequence[str], steps: Float[Tensor, " N"], recipe: AdamRecipe
) -> StackedAdam:
    """`tables` names the embedding tables, whose gradients come for the unique rows of a batch; `steps` are counted."""
    first = next(iter(parameters.values())).weights
    implementation = ops.select("row_adam", Workload(first.device))
    adam: StackedAdam = implementation.Adam(parameters, tables, steps, recipe)
    return adam
