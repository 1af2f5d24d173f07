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

from asreader.kernels.words import DistinctWords

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
STEPS = 160


@dataclass(frozen=True)
class Tables:
    """The rows of N readers: weights and moments, the step each row has reached, the average of the weights."""

    weights: Float[Tensor, "N V E"]
    first: Float[Tensor, "N V E"]
    second: Float[Tensor, "N V E"]
    rates: Float[Tensor, " N"]
    factors: Float[Tensor, " steps"]  # of the rates, step by step; the last one stays
    reached: Int[Tensor, "N V"]
    average: Float[Tensor, "N V E"] | None = None
    keep: float = 0.0  # what a step keeps of the average

    def catch_up(self, steps: Float[Tensor, " N"], words: DistinctWords | None = None) -> None:
        """Take the rows of some words, or all, to the step that their reader has reached."""
        readers, table, width = self.weights.shape
        rows, counts = (self.reached, self.reached) if words is None else (words.rows, words.counts)
        _catch_up[(rows.shape[1], readers)](
            self.weights, self.first, self.second, self.rates, self.factors, len(self.factors), self._averaged,
            self.reached, rows, counts, steps, steps.stride(0), rows.shape[1], table, ALL=words is None,
            **self._sizes(width),
        )  # fmt: skip

    def update(
        self, gradient: Float[Tensor, "N W E"], scale: Float[Tensor, " N"], steps: Tensor, words: DistinctWords
    ) -> None:
        """One step of the words' rows, their gradients divided by `scale`; `steps` counts this one already."""
        (readers, table, width), room = self.weights.shape, words.rows.shape[1]
        _update[(room, readers)](
            self.weights, self.first, self.second, self.rates, self.factors, len(self.factors), self._averaged,
            self.reached, words.rows, words.counts, gradient, scale, steps, steps.stride(0), room, table,
            **self._sizes(width),
        )  # fmt: skip

    def step(
        self,
        weights: Tensor,
        first: Tensor,
        second: Tensor,
        average: Tensor | None,
        gradient: Tensor,
        scale: Tensor,
        steps: Tensor,
    ) -> None:
        """One step of another parameter of the readers, which is used as a whole and so never behind."""
        count = weights[0].numel()
        _whole[(triton.cdiv(count, 1024), len(weights))](
            weights, first, second, self.rates, self.factors, len(self.factors),
            weights if average is None else average, gradient, scale, steps, steps.stride(0), count, BLOCK=1024,
            KEEP=self.keep,
        )  # fmt: skip

    @property
    def _averaged(self) -> Tensor:
        return self.weights if self.average is None else self.average

    def _sizes(self, width: int) -> dict[str, float]:
        sizes = {"E": width, "EP": triton.next_power_of_2(width), "num_warps": 4 if width > 128 else 1}
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
    factors = torch.ones(1, device=weights.device) if factors is None else factors
    return Tables(weights, first, second, rates, factors, reached, average, keep if average is not None else 0.0)


@triton.jit
def _unkept(step, KEEP: tl.constexpr):
    """1 - KEEP^step."""
    return 1 - tl.exp2(step * tl.log2(KEEP))


@triton.jit
def _share(step, KEEP: tl.constexpr):
    """With which the newest weights come into the average."""
    return (1 - KEEP) / _unkept(step, KEEP)


@triton.jit
def _catch_up(
    weights, first, second, rates, factors, most_factors, average, reached, rows, counts, steps, stride, room, V,
    ALL: tl.constexpr, E: tl.constexpr, EP: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    place, n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row = place if ALL else tl.load(rows + n * room + place)
    line = n * V + row
    last = tl.load(reached + line)
    missed = tl.load(steps + n * stride).to(tl.int32) - last
    if (ALL or place < tl.load(counts + n)) and missed > 0:
        e = tl.arange(0, EP)
        at, real = line * E + e, e < E
        m, v = tl.load(first + at, mask=real, other=0), tl.load(second + at, mask=real, other=0)
        # A row that has never had a gradient stays where it is, and its average with it.
        if (tl.sum(tl.abs(m)) > 0) | (KEEP > 0):
            weight, rate = tl.load(weights + at, mask=real, other=0), tl.load(rates + n)
            power1, power2 = tl.exp2(last * LOG1), tl.exp2(last * LOG2)
            taken = tl.minimum(missed, MOST)
            mean = tl.load(average + at, mask=real, other=0) if KEEP > 0 else weight
            for further in range(taken):
                power1 *= B1
                power2 *= B2
                m *= B1
                v *= B2
                factor = tl.load(factors + tl.minimum(last + further, most_factors - 1))
                weight -= rate * factor / (1 - power1) * m / (tl.sqrt(v) / tl.sqrt(1 - power2) + EPS)
                if KEEP > 0:
                    mean += _share(last + further + 1, KEEP) * (weight - mean)
            tl.store(weights + at, weight, mask=real)
            if KEEP > 0:  # the shares of all further steps, multiplied, are this quotient
                rest = tl.exp2((missed - taken) * tl.log2(KEEP)) * _unkept(last + taken, KEEP)
                left = tl.where(missed > taken, rest / _unkept(last + missed, KEEP), 1.0)
                tl.store(average + at, weight + (mean - weight) * left, mask=real)
            tl.store(first + at, m * tl.exp2((missed - taken) * LOG1), mask=real)
            tl.store(second + at, v * tl.exp2((missed - taken) * LOG2), mask=real)
        tl.store(reached + line, last + missed)


@triton.jit
def _step(weights, first, second, average, at, real, gradient, rate, step, KEEP: tl.constexpr):
    """Adam's step of some numbers, and their average's."""
    m = tl.load(first + at, mask=real, other=0)
    m += (1 - B1) * (gradient - m)
    v = B2 * tl.load(second + at, mask=real, other=0) + (1 - B2) * gradient * gradient
    correction1, correction2 = 1 - tl.exp2(step * LOG1), 1 - tl.exp2(step * LOG2)
    change = rate / correction1 * m / (tl.sqrt(v) / tl.sqrt(correction2) + EPS)
    weight = tl.load(weights + at, mask=real, other=0) - change
    tl.store(weights + at, weight, mask=real)
    tl.store(first + at, m, mask=real)
    tl.store(second + at, v, mask=real)
    if KEEP > 0:
        mean = tl.load(average + at, mask=real, other=0)
        tl.store(average + at, mean + _share(step, KEEP) * (weight - mean), mask=real)


@triton.jit
def _update(
    weights, first, second, rates, factors, most_factors, average, reached, rows, counts, gradient, scale, steps,
    stride, room, V, E: tl.constexpr, EP: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    place, n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if place < tl.load(counts + n):
        line = n * V + tl.load(rows + n * room + place)
        e = tl.arange(0, EP)
        step = tl.load(steps + n * stride)
        rate = tl.load(rates + n) * tl.load(factors + tl.minimum(step.to(tl.int32), most_factors) - 1)
        own = tl.load(gradient + (n * room + place) * E + e, mask=e < E, other=0) / tl.load(scale + n)
        _step(weights, first, second, average, line * E + e, e < E, own, rate, step, KEEP)
        tl.store(reached + line, step.to(tl.int32))


@triton.jit
def _whole(
    weights, first, second, rates, factors, most_factors, average, gradient, scale, steps, stride, count,
    BLOCK: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at, real = n * count + place, place < count
    step = tl.load(steps + n * stride)
    rate = tl.load(rates + n) * tl.load(factors + tl.minimum(step.to(tl.int32), most_factors) - 1)
    own = tl.load(gradient + at, mask=real, other=0).to(tl.float32) / tl.load(scale + n)
    _step(weights, first, second, average, at, real, own, rate, step, KEEP)


B1, B2, EPS, MOST = tl.constexpr(BETA1), tl.constexpr(BETA2), tl.constexpr(EPSILON), tl.constexpr(STEPS)
LOG1, LOG2 = tl.constexpr(math.log2(BETA1)), tl.constexpr(math.log2(BETA2))
