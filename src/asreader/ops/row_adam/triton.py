"""Adam for large tables of which a step touches few rows (Triton): the others are updated when they are next read.

Adam moves a row long after its last gradient, because its first moment only decays. Doing so at every step for every
row costs more memory traffic than all the rest of a reader. A row that was left alone for k steps is instead taken
through them in registers, with the same arithmetic, when it is next read (`kernels.py`). After kernels.STEPS of them
nothing moves any more: the first moment has decayed to 1e-7 of what it was, and both moments take the remaining steps
at once. An exponential moving average of the weights comes along: towards a weight that rests it takes any number of
steps at once.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import triton
from jaxtyping import Float, Int
from torch import Tensor

from asreader.ops.grad_norm import find_clip_divisors
from asreader.ops.gru.kernel_weights import EXTRA_COLUMNS, KernelWeights
from asreader.ops.row_adam import BETAS, AdamRecipe, StackedParameter, kernels
from asreader.ops.triton_support import supports_triton
from asreader.ops.unique_rows import UniqueRows

CORRECTED = 20_000
"""Steps after which Adam's corrections are 1 in float32."""


supports = supports_triton


class Adam:
    """The contract of `ops/row_adam`: rows are updated when they are next read, dense parameters at once."""

    def __init__(
        self,
        parameters: Mapping[str, StackedParameter],
        tables: Sequence[str],
        steps: Float[Tensor, " N"],
        recipe: AdamRecipe,
    ) -> None:
        self._parameters, self._steps, self._recipe = parameters, steps, recipe
        rates, factors = (torch.tensor(each, device=steps.device) for each in (recipe.rates, recipe.factors))
        self._tables = {
            name: make_tables(
                own.weights.detach(),
                own.first.detach(),
                own.second.detach(),
                rates,
                steps,
                factors=factors,
                average=own.average,
                decay=recipe.ema_decay,
            )
            for name, own in parameters.items()
            if name in tables
        }
        self._rates, self._paces = rates, _make_paces(factors).to(steps.device)

    def read_rows(self, name: str, unique: UniqueRows) -> Float[Tensor, "N U E"]:
        """The vectors of a batch's unique rows after all steps so far."""
        table = self._tables[name]
        return table.read_rows(self._steps, unique, table.weights.dtype)[..., : table.weights.shape[2]]

    def step(self, gradients: Mapping[str, Tensor], unique: UniqueRows) -> None:
        """Change the weights by gradients; those of tables are of the unique rows."""
        laid_out = {name: gradient.contiguous() for name, gradient in gradients.items()}
        divisors = find_clip_divisors([*laid_out.values()], self._recipe.clip)
        self._steps.add_(1)
        for name, gradient in laid_out.items():
            if name in self._tables:
                self._tables[name].update_rows(gradient, divisors, self._steps, unique)
            else:
                own = self._parameters[name]
                update = DenseUpdate(
                    own.weights.detach(), own.first.detach(), own.second.detach(), own.average, gradient
                )
                self._update_dense(update, divisors)

    def _update_dense(self, update: DenseUpdate, divisors: Float[Tensor, " N"]) -> None:
        readers, count, width = len(update.weights), update.weights[0].numel(), update.weights.shape[-1]
        decay = self._recipe.ema_decay if update.average is not None else 0.0
        kernels.update_dense[(triton.cdiv(count, 1024), readers)](
            *update.tensors(), self._rates, self._paces, len(self._paces), divisors, self._steps, self._steps.stride(0),
            count, update.weights, WIDTH=width, ROOM=width, BLOCK=1024, DECAY=decay,
        )  # fmt: skip

    def synchronize(self) -> None:
        """Take all rows to the present step."""
        for table in self._tables.values():
            table.synchronize(self._steps)


@dataclass(frozen=True)
class DenseUpdate:
    """Weights of N readers that are used as a whole, and all that goes into a step of theirs."""

    weights: Float[Tensor, "N ..."]
    first: Float[Tensor, "N ..."]
    second: Float[Tensor, "N ..."]
    average: Float[Tensor, "N ..."] | None
    gradient: Float[Tensor, "N ..."]

    def tensors(self) -> tuple[Tensor, ...]:
        """As kernels take them: an average that there is not is not looked at."""
        average = self.weights if self.average is None else self.average
        return self.weights, self.first, self.second, average, self.gradient


@dataclass(frozen=True)
class RowTables:
    """The rows of N readers: weights and moments, the step each row has reached, the average of the weights."""

    weights: Float[Tensor, "N V E"]
    first: Float[Tensor, "N V E"]
    second: Float[Tensor, "N V E"]
    rates: Float[Tensor, " N"]
    paces: Float[Tensor, "steps 2"]  # what a rate and the root of a second moment are multiplied with; the last stay
    row_steps: Int[Tensor, "N V"]
    average: Float[Tensor, "N V E"] | None = None
    decay: float = 0.0  # what a step keeps of the average

    def synchronize(self, steps: Float[Tensor, " N"]) -> None:
        """Take all rows to the step that their reader has reached."""
        readers, table, width = self.weights.shape
        kernels.synchronize_rows[(table, readers)](
            self.weights, self.first, self.second, self.rates, self.paces, len(self.paces), self._average_or_weights,
            self.row_steps, steps, steps.stride(0), table, **self._sizes(width),
        )  # fmt: skip

    def read_rows(
        self, steps: Float[Tensor, " N"], words: UniqueRows, precision: torch.dtype
    ) -> Float[Tensor, "N U E_and_8"]:
        """The rows of some words as they are at the step that their reader has reached, a one behind each.

        They stay behind: `update` takes the same way again, in registers, which costs less than memory.
        """
        (readers, table, width), room = self.weights.shape, words.rows.shape[1]
        found = torch.empty(readers, room, width + EXTRA_COLUMNS, dtype=precision, device=self.weights.device)
        kernels.read_rows[(room, readers)](
            self.weights, self.first, self.second, self.rates, self.paces, len(self.paces), self.row_steps,
            words.rows, words.counts, steps, steps.stride(0), room, table, found, **self._sizes(width),
        )  # fmt: skip
        return found

    def update_rows(
        self, gradient: Float[Tensor, "N U E"], scale: Float[Tensor, " N"], steps: Tensor, words: UniqueRows
    ) -> None:
        """The steps that the words' rows have missed, and one more with gradients, divided by `scale`; `steps` counts
        it already."""
        (readers, table, width), room = self.weights.shape, words.rows.shape[1]
        kernels.update_rows[(room, readers)](
            self.weights, self.first, self.second, self.rates, self.paces, len(self.paces), self._average_or_weights,
            self.row_steps, words.rows, words.counts, gradient, scale, steps, steps.stride(0), room, table,
            **self._sizes(width),
        )  # fmt: skip

    def update_dense(
        self,
        matrix: DenseUpdate,
        divisors: Float[Tensor, " N"],
        steps: Float[Tensor, " N"],
        ready: Float[Tensor, "*shape"],
    ) -> None:
        """One step of matrices that are used as a whole and so never behind, in the precision of `ready` also there;
        rows there may be longer. A reader whose divisor is zero takes none."""
        readers, count, width = len(matrix.weights), matrix.weights[0].numel(), matrix.weights.shape[-1]
        kernels.update_dense[(triton.cdiv(count, 1024), readers)](
            *matrix.tensors(), self.rates, self.paces, len(self.paces), divisors, steps, steps.stride(0), count, ready,
            WIDTH=width, ROOM=ready.shape[-1], BLOCK=1024, DECAY=self.decay,
        )  # fmt: skip

    def update_biases(
        self,
        inputs: DenseUpdate,
        recurrent: DenseUpdate,
        divisors: Float[Tensor, " N"],
        steps: Float[Tensor, " N"],
        ready: KernelWeights,
    ) -> None:
        """The same of an encoder's biases."""
        readers, count = len(inputs.weights), inputs.weights[0].numel()
        kernels.update_biases[(triton.cdiv(count, 256), readers)](
            *inputs.tensors(), *recurrent.tensors(), self.rates, self.paces, len(self.paces), divisors, steps,
            steps.stride(0), count, ready.inputs, ready.biases, H=ready.biases.shape[-1], ROOM=ready.inputs.shape[-1],
            BLOCK=256, DECAY=self.decay,
        )  # fmt: skip

    @property
    def _average_or_weights(self) -> Tensor:
        return self.weights if self.average is None else self.average

    def _sizes(self, width: int) -> dict[str, float | int]:
        sizes = {"E": width, "EP": triton.next_power_of_2(width), "num_warps": 2 if width > 128 else 1}
        return sizes | {"DECAY": self.decay}


def make_tables(
    weights: Tensor,
    first: Tensor,
    second: Tensor,
    rates: Tensor,
    steps: Tensor,
    *,
    factors: Tensor | None = None,
    average: Tensor | None = None,
    decay: float = 0.0,
) -> RowTables:
    """RowTables whose rows have all reached the present step."""
    row_steps = steps.int()[:, None].expand(weights.shape[:2]).contiguous()
    paces = _make_paces(torch.ones(1) if factors is None else factors).to(weights.device)
    return RowTables(weights, first, second, rates, paces, row_steps, average, decay if average is not None else 0.0)


def _make_paces(factors: Float[Tensor, " some"]) -> Float[Tensor, "steps 2"]:
    """Adam's corrections of moments that began as zero, the first with the factors of the rates.

    As a table, for 1 - 0.999^t taken in float32 is off by some 0.00005 of itself at first, and roots and quotients for
    every missed step of every row take time.
    """
    (beta1, beta2), count, known = BETAS, max(len(factors), CORRECTED), factors.cpu().double()
    step = torch.arange(1, count + 1, dtype=torch.float64, device="cpu")
    whole = torch.cat([known, known[-1:].expand(count - len(known))])
    return torch.stack([whole / (1 - beta1**step), (1 - beta2**step).rsqrt()], dim=1).float()
