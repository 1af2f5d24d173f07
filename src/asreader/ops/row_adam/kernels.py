"""Triton kernels of Adam for rows that are updated when they are next read: missed steps are taken in registers.

Grids: `read_rows` and `update_rows` (U, N), a program owns one row of a batch; `synchronize_rows` (V, N), one row of
the table; `update_dense` and `update_biases` (numbers / BLOCK, N). Layouts: tables [N, V, E]; matrices as they lie.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import math

import triton
import triton.language as tl

from asreader.ops.gru.kernel_weights import EXTRA_COLUMNS
from asreader.ops.row_adam import BETAS, EPSILON

STEPS = 160
"""Missed steps that are taken one by one; after them the first moment moves nothing any more."""

B1, B2, EPS, MOST = *(tl.constexpr(beta) for beta in BETAS), tl.constexpr(EPSILON), tl.constexpr(STEPS)
LOG1, LOG2, ROOT2 = (tl.constexpr(number) for number in (*map(math.log2, BETAS), math.sqrt(BETAS[1])))
AFTER = tl.constexpr(EXTRA_COLUMNS)


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
def synchronize_rows(
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
def read_rows(
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
def update_rows(
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
def update_dense(
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
def update_biases(
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
