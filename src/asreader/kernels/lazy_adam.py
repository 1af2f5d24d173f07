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

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
STEPS = 160


@dataclass(frozen=True)
class Tables:
    """The rows of N readers: weights and moments, the step each row has reached, and who takes care of it."""

    weights: Float[Tensor, "N V E"]
    first: Float[Tensor, "N V E"]
    second: Float[Tensor, "N V E"]
    rates: Float[Tensor, " N"]
    reached: Int[Tensor, "N V"]
    owner: Int[Tensor, "N V"]

    def claim(self, rows: Int[Tensor, "N W"]) -> None:
        """Of all places of a batch that hold the same row, one, whichever, takes care of it."""
        _claim[(triton.cdiv(rows.shape[1], 256), rows.shape[0])](
            self.owner, rows, rows.shape[1], self.weights.shape[1], BLOCK=256
        )

    def catch_up(self, steps: Float[Tensor, " N"], rows: Int[Tensor, "N W"] | None = None) -> None:
        """Take the claimed rows, or all, to the step that their reader has reached."""
        readers, table, width = self.weights.shape
        count = table if rows is None else rows.shape[1]
        _catch_up[(count, readers)](
            self.weights, self.first, self.second, self.rates, self.reached, self.owner,
            self.owner if rows is None else rows, steps, steps.stride(0), count, table,
            ALL=rows is None, **_sizes(width),
        )  # fmt: skip

    def squares(self, gradient: Float[Tensor, "N V E"], rows: Int[Tensor, "N W"]) -> Float[Tensor, " N"]:
        """Each reader's sum of squared gradients over the claimed rows."""
        readers, table, width = self.weights.shape
        sums = torch.empty(rows.shape, device=rows.device)
        _squares[(rows.shape[1], readers)](gradient, self.owner, rows, sums, rows.shape[1], table, **_sizes(width))
        return sums.sum(dim=1)

    def update(
        self, gradient: Float[Tensor, "N V E"], scale: Float[Tensor, " N"], steps: Tensor, rows: Int[Tensor, "N W"]
    ) -> None:
        """One step of the claimed rows, their gradients divided by `scale`; `steps` counts this one already."""
        readers, table, width = self.weights.shape
        _update[(rows.shape[1], readers)](
            self.weights, self.first, self.second, self.rates, self.reached, self.owner, rows, gradient, scale,
            steps, steps.stride(0), rows.shape[1], table, **_sizes(width),
        )  # fmt: skip


def tables(weights: Tensor, first: Tensor, second: Tensor, rates: Tensor, steps: Tensor) -> Tables:
    """Tables whose rows have all reached the present step."""
    reached = steps.int()[:, None].expand(weights.shape[:2]).contiguous()
    return Tables(weights, first, second, rates, reached, torch.zeros_like(reached))


def _sizes(width: int) -> dict[str, int]:
    return {"E": width, "EP": triton.next_power_of_2(width), "num_warps": 4 if width > 128 else 1}


@triton.jit
def _claim(owner, rows, count, V, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1).to(tl.int64)
    row = tl.load(rows + n * count + place, mask=place < count, other=0)
    tl.store(owner + n * V + row, place, mask=place < count)


@triton.jit
def _catch_up(
    weights, first, second, rates, reached, owner, rows, steps, stride, count, V,
    ALL: tl.constexpr, E: tl.constexpr, EP: tl.constexpr,
):  # fmt: skip
    place, n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row = place if ALL else tl.load(rows + n * count + place)
    line = n * V + row
    last = tl.load(reached + line)
    missed = tl.load(steps + n * stride).to(tl.int32) - last
    if (ALL or tl.load(owner + line) == place) and missed > 0:
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
def _squares(gradient, owner, rows, sums, count, V, E: tl.constexpr, EP: tl.constexpr):
    place, n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    line = n * V + tl.load(rows + n * count + place)
    e = tl.arange(0, EP)
    g = tl.load(gradient + line * E + e, mask=e < E, other=0)
    tl.store(sums + n * count + place, tl.where(tl.load(owner + line) == place, tl.sum(g * g), 0.0))


@triton.jit
def _update(
    weights, first, second, rates, reached, owner, rows, gradient, scale, steps, stride, count, V,
    E: tl.constexpr, EP: tl.constexpr,
):  # fmt: skip
    place, n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    line = n * V + tl.load(rows + n * count + place)
    if tl.load(owner + line) == place:
        e = tl.arange(0, EP)
        at, real = line * E + e, e < E
        step = tl.load(steps + n * stride)
        g = tl.load(gradient + at, mask=real, other=0) / tl.load(scale + n)
        m = tl.load(first + at, mask=real, other=0)
        m += (1 - B1) * (g - m)
        v = B2 * tl.load(second + at, mask=real, other=0) + (1 - B2) * g * g
        correction1, correction2 = 1 - tl.exp2(step * LOG1), 1 - tl.exp2(step * LOG2)
        change = tl.load(rates + n) / correction1 * m / (tl.sqrt(v) / tl.sqrt(correction2) + EPS)
        tl.store(weights + at, tl.load(weights + at, mask=real, other=0) - change, mask=real)
        tl.store(first + at, m, mask=real)
        tl.store(second + at, v, mask=real)
        tl.store(reached + line, step.to(tl.int32))


B1, B2, EPS, MOST = tl.constexpr(BETA1), tl.constexpr(BETA2), tl.constexpr(EPSILON), tl.constexpr(STEPS)
LOG1, LOG2 = tl.constexpr(math.log2(BETA1)), tl.constexpr(math.log2(BETA2))
