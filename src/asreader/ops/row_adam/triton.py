"""Adam for large tables of which a step touches few rows (Triton): the others are updated when they are next read.

Adam moves a row long after its last gradient, because its first moment only decays. Doing so at every step for every
row costs more memory traffic than all the rest of a reader. A row that was left alone for k steps is instead taken
through them in registers, with the same arithmetic, when it is next read. After STEPS of them nothing moves any more:
the first moment has decayed to 1e-7 of what it was, and both moments take the remaining steps at once. An exponential
moving average of the weights comes along: towards a weight that rests it takes any number of steps at once.

Grids: `_read_rows` and `_update_rows` (U, N), a program owns one row of a batch; `_synchronize_rows` (V, N), one row of
the table; `_update_dense` and `_update_biases` (numbers / BLOCK, N). Layouts: tables [N, V, E]; matrices as they lie.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from asreader.ops import Workload
from asreader.ops.grad_norm import find_clip_divisors
from asreader.ops.gru.kernel_weights import EXTRA_COLUMNS, KernelWeights
from asreader.ops.row_adam import AdamRecipe, StackedParameter
from asreader.ops.unique_rows import UniqueRows

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
STEPS = 160
CORRECTED = 20_000
"""Steps after which Adam's corrections are 1 in float32."""


def supports(workload: Workload) -> str | None:
    """GPUs; a CPU only by Triton's interpreter."""
    if workload.device.type != "cuda" and not triton.knobs.runtime.interpret:
        return "runs on a GPU only"
    return None


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
        _update_dense[(triton.cdiv(count, 1024), readers)](
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
    """The rows of N readers: weights and moments, the step each row has row_steps, the average of the weights."""

    weights: Float[Tensor, "N V E"]
    first: Float[Tensor, "N V E"]
    second: Float[Tensor, "N V E"]
    rates: Float[Tensor, " N"]
    paces: Float[Tensor, "steps 2"]  # what a rate and the root of a second moment are multiplied with; the last stay
    row_steps: Int[Tensor, "N V"]
    average: Float[Tensor, "N V E"] | None = None
    decay: float = 0.0  # what a step keeps of the average

    def synchronize(self, steps: Float[Tensor, " N"]) -> None:
        """Take all rows to the step that their reader has row_steps."""
        readers, table, width = self.weights.shape
        _synchronize_rows[(table, readers)](
            self.weights, self.first, self.second, self.rates, self.paces, len(self.paces), self._average_or_weights,
            self.row_steps, steps, steps.stride(0), table, **self._sizes(width),
        )  # fmt: skip

    def read_rows(
        self, steps: Float[Tensor, " N"], words: UniqueRows, precision: torch.dtype
    ) -> Float[Tensor, "N U E_and_8"]:
        """The rows of some words as they are at the step that their reader has row_steps, a one behind each.

        They stay behind: `update` takes the same way again, in registers, which costs less than memory.
        """
        (readers, table, width), room = self.weights.shape, words.rows.shape[1]
        found = torch.empty(readers, room, width + EXTRA_COLUMNS, dtype=precision, device=self.weights.device)
        _read_rows[(room, readers)](
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
        _update_rows[(room, readers)](
            self.weights, self.first, self.second, self.rates, self.paces, len(self.paces), self._average_or_weights,
            self.row_steps, words.rows, words.counts, gradient, scale, steps, steps.stride(0), room, table,
            **self._sizes(width),
        )  # fmt: skip

    def update_dense(
        self,
        matrix: DenseUpdate,
        divisors: Float[Tensor, " N"],
        steps: Float[Tensor, " N"],
        ready: Float[Tensor, "N ..."],
    ) -> None:
        """One step of matrices that are used as a whole and so never behind, in the precision of `ready` also there;
        rows there may be longer. A reader whose divisor is zero takes none."""
        readers, count, width = len(matrix.weights), matrix.weights[0].numel(), matrix.weights.shape[-1]
        _update_dense[(triton.cdiv(count, 1024), readers)](
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
        _update_biases[(triton.cdiv(count, 256), readers)](
            *inputs.tensors(), *recurrent.tensors(), self.rates, self.paces, len(self.paces), divisors, steps,
            steps.stride(0), count, ready.inputs, ready.biases, H=ready.biases.shape[-1], ROOM=ready.inputs.shape[-1],
            BLOCK=256, DECAY=self.decay,
        )  # fmt: skip

    @property
    def _average_or_weights(self) -> Tensor:
        return self.weights if self.average is None else self.average

    def _sizes(self, width: int) -> dict[str, float]:
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
    """RowTables whose rows have all row_steps the present step."""
    row_steps = steps.int()[:, None].expand(weights.shape[:2]).contiguous()
    paces = _make_paces(torch.ones(1) if factors is None else factors).to(weights.device)
    return RowTables(weights, first, second, rates, paces, row_steps, average, decay if average is not None else 0.0)


def _make_paces(factors: Float[Tensor, " some"]) -> Float[Tensor, "steps 2"]:
    """Adam's corrections of moments that began as zero, the first with the factors of the rates.

    As a table, for 1 - 0.999^t taken in float32 is off by some 0.00005 of itself at first, and roots and quotients for
    every missed step of every row take time.
    """
    count, known = max(len(factors), CORRECTED), factors.cpu().double()
    step = torch.arange(1, count + 1, dtype=torch.float64, device="cpu")
    whole = torch.cat([known, known[-1:].expand(count - len(known))])
    return torch.stack([whole / (1 - BETA1**step), (1 - BETA2**step).rsqrt()], dim=1).float()


@triton.jit
def _one_minus_power(step, DECAY: tl.constexpr):
    """1 - DECAY^step."""
    return 1 - tl.exp2(step * tl.log2(DECAY))


@triton.jit
def _ema_weight(step, DECAY: tl.constexpr):
    """With which the newest weights come into the average."""
    return (1 - DECAY) / _one_minus_power(step, DECAY)


@triton.jit
def _load_pace(paces, most, step):
    """Those of a step."""
    at = paces + 2 * (tl.minimum(step, most) - 1)
    return tl.load(at), tl.load(at + 1)


@triton.jit
def _catch_up(
    weight, m, v, mean, last, missed, rate, paces, most, DECAY: tl.constexpr
):  # fmt: skip
    """Some numbers of a row after the steps that it has missed: weights, both moments, the average."""
    root = tl.sqrt(v)
    # Without a first moment a weight stays where it is.
    taken = tl.where(tl.sum(tl.abs(m)) > 0, tl.minimum(missed, MOST), 0)
    for further in range(taken):
        m *= B1
        root *= ROOT2
        pace, larger = _load_pace(paces, most, last + further + 1)
        inverse = tl.rsqrt(root * larger + EPS)  # its square takes a third of what a quotient does
        weight -= rate * pace * m * (inverse * inverse)
        if DECAY > 0:
            mean += _ema_weight(last + further + 1, DECAY) * (weight - mean)
    if DECAY > 0:  # the shares of all further steps, multiplied, are this quotient
        rest = tl.exp2((missed - taken) * tl.log2(DECAY)) * _one_minus_power(last + taken, DECAY)
        left = tl.where(missed > taken, rest / _one_minus_power(last + missed, DECAY), 1.0)
        mean = weight + (mean - weight) * left
    return weight, m * tl.exp2((missed - taken) * LOG1), v * tl.exp2(missed * LOG2), mean


@triton.jit
def _synchronize_rows(
    weights, first, second, rates, paces, most, average, row_steps, steps, stride, V,
    E: tl.constexpr, EP: tl.constexpr, DECAY: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(1).to(tl.int64)
    line = n * V + tl.program_id(0)
    last = tl.load(row_steps + line)
    missed = tl.load(steps + n * stride).to(tl.int32) - last
    if missed > 0:
        e = tl.arange(0, EP)
        at, real = line * E + e, e < E
        m, v = tl.load(first + at, mask=real, other=0), tl.load(second + at, mask=real, other=0)
        # A row that has never had a gradient stays where it is, and its average with it. (The first moment alone is no
        # sign of that: after a thousand steps it has faded to nothing, the second has not.)
        if (tl.sum(tl.abs(m) + v) > 0) | (DECAY > 0):
            weight = tl.load(weights + at, mask=real, other=0)
            mean = tl.load(average + at, mask=real, other=0) if DECAY > 0 else weight
            weight, m, v, mean = _catch_up(weight, m, v, mean, last, missed, tl.load(rates + n), paces, most, DECAY)
            tl.store(weights + at, weight, mask=real)
            tl.store(first + at, m, mask=real)
            tl.store(second + at, v, mask=real)
            if DECAY > 0:
                tl.store(average + at, mean, mask=real)
        tl.store(row_steps + line, last + missed)


@triton.jit
def _read_rows(
    weights, first, second, rates, paces, most, row_steps, rows, counts, steps, stride, room, V, found,
    E: tl.constexpr, EP: tl.constexpr, DECAY: tl.constexpr,
):  # fmt: skip
    place, n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    line, e = n * V + tl.load(rows + n * room + place), tl.arange(0, EP)
    at, real = line * E + e, e < E
    # All at once, wanted or not: one after the other would take longer.
    weight, last, count = tl.load(weights + at, mask=real, other=0), tl.load(row_steps + line), tl.load(counts + n)
    m, v = tl.load(first + at, mask=real, other=0), tl.load(second + at, mask=real, other=0)
    missed = tl.load(steps + n * stride).to(tl.int32) - last
    if (place < count) and missed > 0:
        weight, m, v, _ = _catch_up(weight, m, v, weight, last, missed, tl.load(rates + n), paces, most, 0.0)
    here, behind = found + (n * room + place) * (E + AFTER), tl.arange(0, AFTER)
    tl.store(here + e, weight.to(found.dtype.element_ty), mask=real)
    tl.store(here + E + behind, (behind == 0).to(found.dtype.element_ty))


@triton.jit
def _adam_step(weight, m, v, mean, gradient, rate, paces, most, step, DECAY: tl.constexpr):
    """Some numbers after a step of Adam."""
    m += (1 - B1) * (gradient - m)
    v = B2 * v + (1 - B2) * gradient * gradient
    pace, larger = _load_pace(paces, most, step.to(tl.int32))
    weight -= rate * pace * m / (tl.sqrt(v) * larger + EPS)
    if DECAY > 0:
        mean += _ema_weight(step, DECAY) * (weight - mean)
    return weight, m, v, mean


@triton.jit
def _update_rows(
    weights, first, second, rates, paces, most, average, row_steps, rows, counts, gradient, scale, steps,
    stride, room, V, E: tl.constexpr, EP: tl.constexpr, DECAY: tl.constexpr,
):  # fmt: skip
    place, n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row, count = tl.load(rows + n * room + place), tl.load(counts + n)
    if place < count:
        line, e = n * V + row, tl.arange(0, EP)
        at, real = line * E + e, e < E
        step, last = tl.load(steps + n * stride), tl.load(row_steps + line)
        rate, missed = tl.load(rates + n), step.to(tl.int32) - 1 - last
        weight, m = tl.load(weights + at, mask=real, other=0), tl.load(first + at, mask=real, other=0)
        v = tl.load(second + at, mask=real, other=0)
        mean = tl.load(average + at, mask=real, other=0) if DECAY > 0 else weight
        if missed > 0:
            weight, m, v, mean = _catch_up(weight, m, v, mean, last, missed, rate, paces, most, DECAY)
        own = tl.load(gradient + (n * room + place) * E + e, mask=real, other=0).to(tl.float32) / tl.load(scale + n)
        weight, m, v, mean = _adam_step(weight, m, v, mean, own, rate, paces, most, step, DECAY)
        tl.store(weights + at, weight, mask=real)
        tl.store(first + at, m, mask=real)
        tl.store(second + at, v, mask=real)
        if DECAY > 0:
            tl.store(average + at, mean, mask=real)
        tl.store(row_steps + line, step.to(tl.int32))


@triton.jit
def _load_step_store(
    weights, first, second, average, gradient, at, real, divisor, rate, paces, most, step, DECAY: tl.constexpr
):  # fmt: skip
    """Some weights after their step, which is put into memory; as they are, where there is none to take."""
    weight = tl.load(weights + at, mask=real, other=0)
    if divisor > 0:
        v = tl.load(second + at, mask=real, other=0)
        m = tl.load(first + at, mask=real, other=0)
        own = tl.load(gradient + at, mask=real, other=0).to(tl.float32) / divisor
        mean = tl.load(average + at, mask=real, other=0) if DECAY > 0 else weight
        weight, m, v, mean = _adam_step(weight, m, v, mean, own, rate, paces, most, step, DECAY)
        tl.store(weights + at, weight, mask=real)
        tl.store(first + at, m, mask=real)
        tl.store(second + at, v, mask=real)
        if DECAY > 0:
            tl.store(average + at, mean, mask=real)
    return weight


@triton.jit
def _update_dense(
    weights, first, second, average, gradient, rates, paces, most, divisors, steps, stride, count, ready,
    WIDTH: tl.constexpr, ROOM: tl.constexpr, BLOCK: tl.constexpr, DECAY: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at, real = n * count + place, place < count
    divisor, rate, step = tl.load(divisors + n), tl.load(rates + n), tl.load(steps + n * stride)
    weight = _load_step_store(
        weights, first, second, average, gradient, at, real, divisor, rate, paces, most, step, DECAY
    )
    to = ready + n * (count // WIDTH) * ROOM + place // WIDTH * ROOM + place % WIDTH
    tl.store(to, weight.to(ready.dtype.element_ty), mask=real)


@triton.jit
def _update_biases(
    weights, first, second, average, gradient, own_weights, own_first, own_second, own_average, own_gradient, rates,
    paces, most, divisors, steps, stride, count, inputs, biases,
    H: tl.constexpr, ROOM: tl.constexpr, BLOCK: tl.constexpr, DECAY: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at, real = n * count + place, place < count
    divisor, rate, step = tl.load(divisors + n), tl.load(rates + n), tl.load(steps + n * stride)
    given = _load_step_store(
        weights, first, second, average, gradient, at, real, divisor, rate, paces, most, step, DECAY
    )
    own = _load_step_store(
        own_weights, own_first, own_second, own_average, own_gradient, at, real, divisor, rate, paces, most, step, DECAY
    )
    # What `ops.gru.combine_biases` says: the reset gate scales the recurrent bias of new, so that it stays apart.
    row, of_new = place % (3 * H), place % (3 * H) >= 2 * H
    whole = given + tl.where(of_new, 0.0, own)
    tl.store(inputs + at * ROOM + ROOM - AFTER, whole.to(inputs.dtype.element_ty), mask=real)
    tl.store(biases + (n * (count // (3 * H)) + place // (3 * H)) * H + row - 2 * H, own, mask=real & of_new)


B1, B2, EPS, MOST = tl.constexpr(BETA1), tl.constexpr(BETA2), tl.constexpr(EPSILON), tl.constexpr(STEPS)
AFTER = tl.constexpr(EXTRA_COLUMNS)
LOG1, LOG2, ROOT2 = (tl.constexpr(number) for number in (math.log2(BETA1), math.log2(BETA2), math.sqrt(BETA2)))
