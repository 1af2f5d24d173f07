"""Adam for large tables of which a step touches few rows (Triton): the others are brought up to date when they are met.

Adam moves a row long after its last gradient, because its first moment only fades. Doing so at every step for every row
costs more memory traffic than all the rest of a reader. A row that was left alone for k steps is instead taken through
them in registers, with the same arithmetic, when it is next read. After STEPS of them nothing moves any more: the first
moment has shrunk to 1e-7 of what it was, and both moments go the rest of the way at once.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import math
from dataclasses import dataclass

import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from asreader.kernels.words import DistinctWords

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
STEPS = 160


@dataclass(frozen=True)
class Tables:
    """The rows of N readers: weights and moments, and the step each row has reached."""

    weights: Float[Tensor, "N V E"]
    first: Float[Tensor, "N V E"]
    second: Float[Tensor, "N V E"]
    rates: Float[Tensor, " N"]
    reached: Int[Tensor, "N V"]

    def catch_up(self, steps: Float[Tensor, " N"], words: DistinctWords | None = None) -> None:
        """Take the rows of some words, or all, to the step that their reader has reached."""
        readers, table, width = self.weights.shape
        rows, counts = (self.reached, self.reached) if words is None else (words.rows, words.counts)
        _catch_up[(rows.shape[1], readers)](
            self.weights, self.first, self.second, self.rates, self.reached, rows, counts, steps, steps.stride(0),
            rows.shape[1], table, ALL=words is None, **_sizes(width),
        )  # fmt: skip

    def update(
        self, gradient: Float[Tensor, "N W E"], scale: Float[Tensor, " N"], steps: Tensor, words: DistinctWords
    ) -> None:
        """One step of the words' rows, their gradients divided by `scale`; `steps` counts this one already."""
        (readers, table, width), room = self.weights.shape, words.rows.shape[1]
        _update[(room, readers)](
            self.weights, self.first, self.second, self.rates, self.reached, words.rows, words.counts, gradient, scale,
            steps, steps.stride(0), room, table, **_sizes(width),
        )  # fmt: skip

    def step(
        self, weights: Tensor, first: Tensor, second: Tensor, gradient: Tensor, scale: Tensor, steps: Tensor
    ) -> None:
        """One step of another parameter of the readers, which is used as a whole and so never behind."""
        count = weights[0].numel()
        _whole[(triton.cdiv(count, 1024), len(weights))](
            weights, first, second, self.rates, gradient, scale, steps, steps.stride(0), count, BLOCK=1024
        )


def tables(weights: Tensor, first: Tensor, second: Tensor, rates: Tensor, steps: Tensor) -> Tables:
    """Tables whose rows have all reached the present step."""
    reached = steps.int()[:, None].expand(weights.shape[:2]).contiguous()
    return Tables(weights, first, second, rates, reached)


def _sizes(width: int) -> dict[str, int]:
    return {"E": width, "EP": triton.next_power_of_2(width), "num_warps": 4 if width > 128 else 1}


@triton.jit
def _catch_up(
    weights, first, second, rates, reached, rows, counts, steps, stride, room, V,
    ALL: tl.constexpr, E: tl.constexpr, EP: tl.constexpr,
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
        if tl.sum(tl.abs(m)) > 0:  # a row that has never had a gradient stays where it is
            weight, rate = tl.load(weights + at, mask=real, other=0), tl.load(rates + n)
            power1, power2 = tl.exp2(last * LOG1), tl.exp2(last * LOG2)
            taken = tl.minimum(missed, MOST)
            for _ in range(taken):
                power1 *= B1
                power2 *= B2
                m *= B1
                v *= B2
                weight -= rate / (1 - power1) * m / (tl.sqrt(v) / tl.sqrt(1 - power2) + EPS)
            tl.store(weights + at, weight, mask=real)
            tl.store(first + at, m * tl.exp2((missed - taken) * LOG1), mask=real)
            tl.store(second + at, v * tl.exp2((missed - taken) * LOG2), mask=real)
        tl.store(reached + line, last + missed)


@triton.jit
def _update(
    weights, first, second, rates, reached, rows, counts, gradient, scale, steps, stride, room, V,
    E: tl.constexpr, EP: tl.constexpr,
):  # fmt: skip
    place, n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if place < tl.load(counts + n):
        line = n * V + tl.load(rows + n * room + place)
        e = tl.arange(0, EP)
        at, real = line * E + e, e < E
        step = tl.load(steps + n * stride)
        g = tl.load(gradient + (n * room + place) * E + e, mask=real, other=0) / tl.load(scale + n)
        m = tl.load(first + at, mask=real, other=0)
        m += (1 - B1) * (g - m)
        v = B2 * tl.load(second + at, mask=real, other=0) + (1 - B2) * g * g
        correction1, correction2 = 1 - tl.exp2(step * LOG1), 1 - tl.exp2(step * LOG2)
        change = tl.load(rates + n) / correction1 * m / (tl.sqrt(v) / tl.sqrt(correction2) + EPS)
        tl.store(weights + at, tl.load(weights + at, mask=real, other=0) - change, mask=real)
        tl.store(first + at, m, mask=real)
        tl.store(second + at, v, mask=real)
        tl.store(reached + line, step.to(tl.int32))


@triton.jit
def _whole(weights, first, second, rates, gradient, scale, steps, stride, count, BLOCK: tl.constexpr):
    n = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at, real = n * count + place, place < count
    step = tl.load(steps + n * stride)
    g = tl.load(gradient + at, mask=real, other=0).to(tl.float32) / tl.load(scale + n)
    m = tl.load(first + at, mask=real, other=0)
    m += (1 - B1) * (g - m)
    v = B2 * tl.load(second + at, mask=real, other=0) + (1 - B2) * g * g
    correction1, correction2 = 1 - tl.exp2(step * LOG1), 1 - tl.exp2(step * LOG2)
    change = tl.load(rates + n) / correction1 * m / (tl.sqrt(v) / tl.sqrt(correction2) + EPS)
    tl.store(weights + at, tl.load(weights + at, mask=real, other=0) - change, mask=real)
    tl.store(first + at, m, mask=real)
    tl.store(second + at, v, mask=real)


B1, B2, EPS, MOST = tl.constexpr(BETA1), tl.constexpr(BETA2), tl.constexpr(EPSILON), tl.constexpr(STEPS)
LOG1, LOG2 = tl.constexpr(math.log2(BETA1)), tl.constexpr(math.log2(BETA2))
