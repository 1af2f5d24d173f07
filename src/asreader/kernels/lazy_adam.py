"""Adam for large tables of which a step touches few rows (Triton): the others are brought up to date when they are met.

Adam moves a row long after its last gradient, because its first moment only fades. Doing so at every step for every row
costs more memory traffic than all the rest of a reader. A row that was left alone for k steps is instead taken through
them in registers, with the same arithmetic, when it is next read. After STEPS of them nothing moves any more: the first
moment has shrunk to 1e-7 of what it was, and both moments go the rest of the way at once. A moving average of the
weights (`training/averaging`) comes along: towards a weight that rests it goes any number of steps at once.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from asreader.kernels.biased import BEHIND, Ready
from asreader.kernels.words import DistinctWords

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
STEPS = 160
CORRECTED = 20_000
"""Steps after which Adam's corrections are 1 in float32."""


@dataclass(frozen=True)
class Stepping:
    """Weights of N readers and all that goes into a step of theirs."""

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
class Tables:
    """The rows of N readers: weights and moments, the step each row has reached, the average of the weights."""

    weights: Float[Tensor, "N V E"]
    first: Float[Tensor, "N V E"]
    second: Float[Tensor, "N V E"]
    rates: Float[Tensor, " N"]
    paces: Float[Tensor, "steps 2"]  # what a rate and the root of a second moment are multiplied with; the last stay
    reached: Int[Tensor, "N V"]
    average: Float[Tensor, "N V E"] | None = None
    keep: float = 0.0  # what a step keeps of the average

    def settle(self, steps: Float[Tensor, " N"]) -> None:
        """Take all rows to the step that their reader has reached."""
        readers, table, width = self.weights.shape
        _settle[(table, readers)](
            self.weights, self.first, self.second, self.rates, self.paces, len(self.paces), self._averaged,
            self.reached, steps, steps.stride(0), table, **self._sizes(width),
        )  # fmt: skip

    def vectors(
        self, steps: Float[Tensor, " N"], words: DistinctWords, precision: torch.dtype
    ) -> Float[Tensor, "N W E_and_8"]:
        """The rows of some words as they are at the step that their reader has reached, a one behind each.

        They stay behind: `update` takes the same way again, in registers, which costs less than memory.
        """
        (readers, table, width), room = self.weights.shape, words.rows.shape[1]
        found = torch.empty(readers, room, width + BEHIND, dtype=precision, device=self.weights.device)
        _vectors[(room, readers)](
            self.weights, self.first, self.second, self.rates, self.paces, len(self.paces), self.reached,
            words.rows, words.counts, steps, steps.stride(0), room, table, found, **self._sizes(width),
        )  # fmt: skip
        return found

    def update(
        self, gradient: Float[Tensor, "N W E"], scale: Float[Tensor, " N"], steps: Tensor, words: DistinctWords
    ) -> None:
        """The steps that the words' rows have missed, and one more with gradients, divided by `scale`; `steps` counts
        it already."""
        (readers, table, width), room = self.weights.shape, words.rows.shape[1]
        _update[(room, readers)](
            self.weights, self.first, self.second, self.rates, self.paces, len(self.paces), self._averaged,
            self.reached, words.rows, words.counts, gradient, scale, steps, steps.stride(0), room, table,
            **self._sizes(width),
        )  # fmt: skip

    def step(
        self, matrix: Stepping, divisors: Float[Tensor, " N"], steps: Float[Tensor, " N"], ready: Float[Tensor, "N ..."]
    ) -> None:
        """One step of matrices that are used as a whole and so never behind, in the precision of `ready` also there;
        rows there may be longer. A reader whose divisor is zero takes none."""
        readers, count, width = len(matrix.weights), matrix.weights[0].numel(), matrix.weights.shape[-1]
        _whole[(triton.cdiv(count, 1024), readers)](
            *matrix.tensors(), self.rates, self.paces, len(self.paces), divisors, steps, steps.stride(0), count, ready,
            WIDTH=width, ROOM=ready.shape[-1], BLOCK=1024, KEEP=self.keep,
        )  # fmt: skip

    def step_biases(
        self,
        inputs: Stepping,
        recurrent: Stepping,
        divisors: Float[Tensor, " N"],
        steps: Float[Tensor, " N"],
        ready: Ready,
    ) -> None:
        """The same of an encoder's biases."""
        readers, count = len(inputs.weights), inputs.weights[0].numel()
        _biases[(triton.cdiv(count, 256), readers)](
            *inputs.tensors(), *recurrent.tensors(), self.rates, self.paces, len(self.paces), divisors, steps,
            steps.stride(0), count, ready.inputs, ready.biases, H=ready.biases.shape[-1], ROOM=ready.inputs.shape[-1],
            BLOCK=256, KEEP=self.keep,
        )  # fmt: skip

    @property
    def _averaged(self) -> Tensor:
        return self.weights if self.average is None else self.average

    def _sizes(self, width: int) -> dict[str, float]:
        sizes = {"E": width, "EP": triton.next_power_of_2(width), "num_warps": 2 if width > 128 else 1}
        return sizes | {"KEEP": self.keep}


def tables(
    weights: Tensor,
    first: Tensor,
    second: Tensor,
    rates: Tensor,
    steps: Tensor,
    *,
    factors: Tensor | None = None,
    average: Tensor | None = None,
    keep: float = 0.0,
) -> Tables:
    """Tables whose rows have all reached the present step."""
    reached = steps.int()[:, None].expand(weights.shape[:2]).contiguous()
    paces = _paces(torch.ones(1) if factors is None else factors).to(weights.device)
    return Tables(weights, first, second, rates, paces, reached, average, keep if average is not None else 0.0)


def _paces(factors: Float[Tensor, " some"]) -> Float[Tensor, "steps 2"]:
    """Adam's corrections of moments that began as zero, the first with the factors of the rates.

    As a table, for 1 - 0.999^t taken in float32 is off by some 0.00005 of itself at first, and roots and quotients for
    every missed step of every row take time.
    """
    count, known = max(len(factors), CORRECTED), factors.cpu().double()
    step = torch.arange(1, count + 1, dtype=torch.float64, device="cpu")
    whole = torch.cat([known, known[-1:].expand(count - len(known))])
    return torch.stack([whole / (1 - BETA1**step), (1 - BETA2**step).rsqrt()], dim=1).float()


@triton.jit
def _unkept(step, KEEP: tl.constexpr):
    """1 - KEEP^step."""
    return 1 - tl.exp2(step * tl.log2(KEEP))


@triton.jit
def _share(step, KEEP: tl.constexpr):
    """With which the newest weights come into the average."""
    return (1 - KEEP) / _unkept(step, KEEP)


@triton.jit
def _pace(paces, most, step):
    """Those of a step."""
    at = paces + 2 * (tl.minimum(step, most) - 1)
    return tl.load(at), tl.load(at + 1)


@triton.jit
def _caught_up(
    weight, m, v, mean, last, missed, rate, paces, most, KEEP: tl.constexpr
):  # fmt: skip
    """Some numbers of a row after the steps that it has missed: weights, both moments, the average."""
    root = tl.sqrt(v)
    # Without a first moment a weight stays where it is.
    taken = tl.where(tl.sum(tl.abs(m)) > 0, tl.minimum(missed, MOST), 0)
    for further in range(taken):
        m *= B1
        root *= ROOT2
        pace, larger = _pace(paces, most, last + further + 1)
        inverse = tl.rsqrt(root * larger + EPS)  # its square takes a third of what a quotient does
        weight -= rate * pace * m * (inverse * inverse)
        if KEEP > 0:
            mean += _share(last + further + 1, KEEP) * (weight - mean)
    if KEEP > 0:  # the shares of all further steps, multiplied, are this quotient
        rest = tl.exp2((missed - taken) * tl.log2(KEEP)) * _unkept(last + taken, KEEP)
        left = tl.where(missed > taken, rest / _unkept(last + missed, KEEP), 1.0)
        mean = weight + (mean - weight) * left
    return weight, m * tl.exp2((missed - taken) * LOG1), v * tl.exp2(missed * LOG2), mean


@triton.jit
def _settle(
    weights, first, second, rates, paces, most, average, reached, steps, stride, V,
    E: tl.constexpr, EP: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(1).to(tl.int64)
    line = n * V + tl.program_id(0)
    last = tl.load(reached + line)
    missed = tl.load(steps + n * stride).to(tl.int32) - last
    if missed > 0:
        e = tl.arange(0, EP)
        at, real = line * E + e, e < E
        m, v = tl.load(first + at, mask=real, other=0), tl.load(second + at, mask=real, other=0)
        # A row that has never had a gradient stays where it is, and its average with it. (The first moment alone is no
        # sign of that: after a thousand steps it has faded to nothing, the second has not.)
        if (tl.sum(tl.abs(m) + v) > 0) | (KEEP > 0):
            weight = tl.load(weights + at, mask=real, other=0)
            mean = tl.load(average + at, mask=real, other=0) if KEEP > 0 else weight
            weight, m, v, mean = _caught_up(weight, m, v, mean, last, missed, tl.load(rates + n), paces, most, KEEP)
            tl.store(weights + at, weight, mask=real)
            tl.store(first + at, m, mask=real)
            tl.store(second + at, v, mask=real)
            if KEEP > 0:
                tl.store(average + at, mean, mask=real)
        tl.store(reached + line, last + missed)


@triton.jit
def _vectors(
    weights, first, second, rates, paces, most, reached, rows, counts, steps, stride, room, V, found,
    E: tl.constexpr, EP: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    place, n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    line, e = n * V + tl.load(rows + n * room + place), tl.arange(0, EP)
    at, real = line * E + e, e < E
    # All at once, wanted or not: one after the other would take longer.
    weight, last, count = tl.load(weights + at, mask=real, other=0), tl.load(reached + line), tl.load(counts + n)
    m, v = tl.load(first + at, mask=real, other=0), tl.load(second + at, mask=real, other=0)
    missed = tl.load(steps + n * stride).to(tl.int32) - last
    if (place < count) and missed > 0:
        weight, m, v, _ = _caught_up(weight, m, v, weight, last, missed, tl.load(rates + n), paces, most, 0.0)
    here, behind = found + (n * room + place) * (E + AFTER), tl.arange(0, AFTER)
    tl.store(here + e, weight.to(found.dtype.element_ty), mask=real)
    tl.store(here + E + behind, (behind == 0).to(found.dtype.element_ty))


@triton.jit
def _stepped(weight, m, v, mean, gradient, rate, paces, most, step, KEEP: tl.constexpr):
    """Some numbers after a step of Adam."""
    m += (1 - B1) * (gradient - m)
    v = B2 * v + (1 - B2) * gradient * gradient
    pace, larger = _pace(paces, most, step.to(tl.int32))
    weight -= rate * pace * m / (tl.sqrt(v) * larger + EPS)
    if KEEP > 0:
        mean += _share(step, KEEP) * (weight - mean)
    return weight, m, v, mean


@triton.jit
def _update(
    weights, first, second, rates, paces, most, average, reached, rows, counts, gradient, scale, steps,
    stride, room, V, E: tl.constexpr, EP: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    place, n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row, count = tl.load(rows + n * room + place), tl.load(counts + n)
    if place < count:
        line, e = n * V + row, tl.arange(0, EP)
        at, real = line * E + e, e < E
        step, last = tl.load(steps + n * stride), tl.load(reached + line)
        rate, missed = tl.load(rates + n), step.to(tl.int32) - 1 - last
        weight, m = tl.load(weights + at, mask=real, other=0), tl.load(first + at, mask=real, other=0)
        v = tl.load(second + at, mask=real, other=0)
        mean = tl.load(average + at, mask=real, other=0) if KEEP > 0 else weight
        if missed > 0:
            weight, m, v, mean = _caught_up(weight, m, v, mean, last, missed, rate, paces, most, KEEP)
        own = tl.load(gradient + (n * room + place) * E + e, mask=real, other=0).to(tl.float32) / tl.load(scale + n)
        weight, m, v, mean = _stepped(weight, m, v, mean, own, rate, paces, most, step, KEEP)
        tl.store(weights + at, weight, mask=real)
        tl.store(first + at, m, mask=real)
        tl.store(second + at, v, mask=real)
        if KEEP > 0:
            tl.store(average + at, mean, mask=real)
        tl.store(reached + line, step.to(tl.int32))


@triton.jit
def _taken(
    weights, first, second, average, gradient, at, real, divisor, rate, paces, most, step, KEEP: tl.constexpr
):  # fmt: skip
    """Some weights after their step, which is put into memory; as they are, where there is none to take."""
    weight = tl.load(weights + at, mask=real, other=0)
    if divisor > 0:
        v = tl.load(second + at, mask=real, other=0)
        m = tl.load(first + at, mask=real, other=0)
        own = tl.load(gradient + at, mask=real, other=0).to(tl.float32) / divisor
        mean = tl.load(average + at, mask=real, other=0) if KEEP > 0 else weight
        weight, m, v, mean = _stepped(weight, m, v, mean, own, rate, paces, most, step, KEEP)
        tl.store(weights + at, weight, mask=real)
        tl.store(first + at, m, mask=real)
        tl.store(second + at, v, mask=real)
        if KEEP > 0:
            tl.store(average + at, mean, mask=real)
    return weight


@triton.jit
def _whole(
    weights, first, second, average, gradient, rates, paces, most, divisors, steps, stride, count, ready,
    WIDTH: tl.constexpr, ROOM: tl.constexpr, BLOCK: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at, real = n * count + place, place < count
    divisor, rate, step = tl.load(divisors + n), tl.load(rates + n), tl.load(steps + n * stride)
    weight = _taken(weights, first, second, average, gradient, at, real, divisor, rate, paces, most, step, KEEP)
    to = ready + n * (count // WIDTH) * ROOM + place // WIDTH * ROOM + place % WIDTH
    tl.store(to, weight.to(ready.dtype.element_ty), mask=real)


@triton.jit
def _biases(
    weights, first, second, average, gradient, own_weights, own_first, own_second, own_average, own_gradient, rates,
    paces, most, divisors, steps, stride, count, inputs, biases,
    H: tl.constexpr, ROOM: tl.constexpr, BLOCK: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at, real = n * count + place, place < count
    divisor, rate, step = tl.load(divisors + n), tl.load(rates + n), tl.load(steps + n * stride)
    given = _taken(weights, first, second, average, gradient, at, real, divisor, rate, paces, most, step, KEEP)
    own = _taken(
        own_weights, own_first, own_second, own_average, own_gradient, at, real, divisor, rate, paces, most, step, KEEP
    )
    # What `recurrence.biases` says: the reset gate scales the recurrent bias of new, so that it stays apart.
    row, of_new = place % (3 * H), place % (3 * H) >= 2 * H
    whole = given + tl.where(of_new, 0.0, own)
    tl.store(inputs + at * ROOM + ROOM - AFTER, whole.to(inputs.dtype.element_ty), mask=real)
    tl.store(biases + (n * (count // (3 * H)) + place // (3 * H)) * H + row - 2 * H, own, mask=real & of_new)


B1, B2, EPS, MOST = tl.constexpr(BETA1), tl.constexpr(BETA2), tl.constexpr(EPSILON), tl.constexpr(STEPS)
AFTER = tl.constexpr(BEHIND)
LOG1, LOG2, ROOT2 = (tl.constexpr(number) for number in (math.log2(BETA1), math.log2(BETA2), math.sqrt(BETA2)))
