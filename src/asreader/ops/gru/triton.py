"""The recurrence as one persistent kernel (Triton): it stays on the GPU for a whole sequence.

A GRU step is far too small for a GPU: launched step by step it waits for launches. Here every program keeps its part of
the recurrent weights on chip, steps through time and exchanges states with the others through memory.

Grid: (R * H / SHARE). H / SHARE programs share one recurrence; each owns SHARE units of the state and reads the whole
state of the step before. Layouts: inputs [R, T, B, 3H], states [R, T + 2, B, H] with a row of zeros before and behind,
kept [R, T, B, 4H] = r, z, n, W_n h + b; out [R, T, B, 4H] = gradients at the products of n, r, z and at the input of n.

There is no barrier: the memory for the states is filled with a pattern that no state can be (a NaN with all bits set),
and a program that reads it reads again until the pattern is gone. One trip through the L2 cache per step is left. All
programs must run at the same time, so a launch has no more of them than the device has multiprocessors.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime import driver

from asreader.ops import Workload
from asreader.ops.attention_scores.triton import scale_questions
from asreader.ops.gru.reference import look_up_inputs

NEEDS_WHOLE_DEVICE = True
"""No other launch of the kind may run at the same time: two, each with some of its programs running, would deadlock."""
INTERPRETED = triton.knobs.runtime.interpret
"""On a CPU programs run one after the other: only a recurrence that one program does alone can be tested there."""


@triton.jit
def _load_when_ready(pointers, mask):
    """Load a tile until nothing of it is missing; `volatile` goes past the L1 cache, which is not shared."""
    tile = tl.load(pointers, mask=mask, other=0, volatile=True)
    missing = tl.sum((tile == -1).to(tl.int32))
    while missing > 0:
        tile = tl.load(pointers, mask=mask, other=0, volatile=True)
        missing = tl.sum((tile == -1).to(tl.int32))
    return tile


@triton.jit
def _exp(x):
    """tl.exp raises 2 to the rounded product of x and log2(e); what rounding takes away is put back here."""
    whole = x * LOG2E
    rest = tl.fma(x, LOG2E, -whole) + x * LOG2E_REST
    power = tl.exp2(whole)
    return power + power * (rest * LN2)


@triton.jit
def _sigmoid(x):
    # Nothing could be put back to infinity; what is no number stays none.
    return 1 / (1 + _exp(tl.clamp(-x, -80.0, 80.0, propagate_nan=tl.PropagateNan.ALL)))


@triton.jit
def _tanh(x):
    """A series where x is small: there 2 sigmoid(2x) - 1, a difference of numbers near 1, has few bits left."""
    near = tl.clamp(x, -0.6, 0.6)
    s = near * near
    near += near * s * (-0.33333298 + s * (0.13331915 + s * (-0.05378329 + s * (0.02079462 - 0.00589395 * s))))
    return tl.where(tl.abs(x) < 0.6, near, 2 * _sigmoid(2 * x) - 1)


@triton.jit
def _matrix(pointer, unit, k, across, along, H: tl.constexpr):
    """A program's part of one gate's recurrent matrix, as it is or transposed; it is read once and stays on chip."""
    return tl.load(pointer + unit[:, None] * across + k[None, :] * along, mask=(k < H)[None, :], other=0)


@triton.jit
def _product(matrix, pointer, k, real, total, dtype, PRECISION: tl.constexpr, H: tl.constexpr):
    """total + matrix times what stands at `pointer`, as soon as all of it is there."""
    tile = _load_when_ready(pointer + k[:, None], real & (k < H)[:, None]).to(dtype, bitcast=True)
    return tl.dot(matrix, tile, total, input_precision=PRECISION)


@triton.jit
def _forward(
    inputs, weights, biases, lengths, states, kept, T, B,
    H: tl.constexpr, SHARE: tl.constexpr, BP: tl.constexpr, K0: tl.constexpr, K1: tl.constexpr, TWO: tl.constexpr,
    KEEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """states[r, 1 + t] from states[r, t] (even r) or states[r, 2 + t] (odd r); kept: reset, update, new, W h + b."""
    number = tl.program_id(0) // (H // SHARE)
    unit = tl.program_id(0) % (H // SHARE) * SHARE + tl.arange(0, SHARE)
    batch, k0, k1 = tl.arange(0, BP), tl.arange(0, K0), K0 + tl.arange(0, K1)
    real, back, r = (batch < B)[None, :], number % 2, number.to(tl.int64)
    dtype = inputs.dtype.element_ty
    whole = weights + r * 3 * H * H
    reset0, reset1 = _matrix(whole, unit, k0, H, 1, H), _matrix(whole, unit, k1, H, 1, H)
    update0, update1 = _matrix(whole + H * H, unit, k0, H, 1, H), _matrix(whole + H * H, unit, k1, H, 1, H)
    new0, new1 = _matrix(whole + 2 * H * H, unit, k0, H, 1, H), _matrix(whole + 2 * H * H, unit, k1, H, 1, H)
    bias = tl.load(biases + number * H + unit).to(tl.float32)[:, None]
    length = tl.load(lengths + number * B + batch, mask=batch < B, other=0)[None, :]
    state = tl.zeros((SHARE, BP), tl.float32)
    for step in range(T):
        t = step + back * (T - 1 - 2 * step)
        line = (r * T + t) * B + batch[None, :]
        given = inputs + line * 3 * H + unit[:, None]
        reset = tl.load(given, mask=real, other=0).to(tl.float32)
        update = tl.load(given + H, mask=real, other=0).to(tl.float32)
        to_new = tl.load(given + 2 * H, mask=real, other=0).to(tl.float32)
        product = tl.zeros((SHARE, BP), tl.float32) + bias
        last = states + (line + (2 * r + 2 * back) * B) * H
        h0 = _load_when_ready(last + k0[:, None], real).to(dtype, bitcast=True)
        reset = tl.dot(reset0, h0, reset, input_precision=PRECISION)
        update = tl.dot(update0, h0, update, input_precision=PRECISION)
        product = tl.dot(new0, h0, product, input_precision=PRECISION)
        if TWO:
            h1 = _load_when_ready(last + k1[:, None], real & (k1 < H)[:, None]).to(dtype, bitcast=True)
            reset = tl.dot(reset1, h1, reset, input_precision=PRECISION)
            update = tl.dot(update1, h1, update, input_precision=PRECISION)
            product = tl.dot(new1, h1, product, input_precision=PRECISION)
        reset, update = _sigmoid(reset), _sigmoid(update)
        new = _tanh(to_new + reset * product)
        state = tl.where(t < length, new + update * (state - new), state)
        here = states + (line + (2 * r + 1) * B) * H + unit[:, None]
        tl.store(here, state.to(dtype).to(states.dtype.element_ty, bitcast=True), mask=real)
        if KEEP:
            _keep(kept + line * 4 * H + unit[:, None], reset, update, new, product, real, H)


@triton.jit
def _keep(here, first, second, third, fourth, real, H: tl.constexpr):
    """Four tiles side by side, as the type that the memory has."""
    tl.store(here, first.to(here.dtype.element_ty), mask=real)
    tl.store(here + H, second.to(here.dtype.element_ty), mask=real)
    tl.store(here + 2 * H, third.to(here.dtype.element_ty), mask=real)
    tl.store(here + 3 * H, fourth.to(here.dtype.element_ty), mask=real)


@triton.jit
def _bits(tile, dtype, bits):
    return tile.to(dtype).to(bits, bitcast=True)


@triton.jit
def _backward(
    gradients, weights, lengths, states, kept, out, T, B,
    H: tl.constexpr, SHARE: tl.constexpr, BP: tl.constexpr, K0: tl.constexpr, K1: tl.constexpr, TWO: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """out[r, t]: gradients at W h of new, reset, update, which all programs await, and at the input of new."""
    number = tl.program_id(0) // (H // SHARE)
    unit = tl.program_id(0) % (H // SHARE) * SHARE + tl.arange(0, SHARE)
    batch, k0, k1 = tl.arange(0, BP), tl.arange(0, K0), K0 + tl.arange(0, K1)
    real, back, r = (batch < B)[None, :], number % 2, number.to(tl.int64)
    dtype = kept.dtype.element_ty
    bits = out.dtype.element_ty
    whole = weights + r * 3 * H * H
    reset0, reset1 = _matrix(whole, unit, k0, 1, H, H), _matrix(whole, unit, k1, 1, H, H)
    update0, update1 = _matrix(whole + H * H, unit, k0, 1, H, H), _matrix(whole + H * H, unit, k1, 1, H, H)
    new0, new1 = _matrix(whole + 2 * H * H, unit, k0, 1, H, H), _matrix(whole + 2 * H * H, unit, k1, 1, H, H)
    length = tl.load(lengths + number * B + batch, mask=batch < B, other=0)[None, :]
    carried = tl.zeros((SHARE, BP), tl.float32)
    for step in range(T):
        t = (T - 1 - step) - back * (T - 1 - 2 * step)
        line = (r * T + t) * B + batch[None, :]
        here = kept + line * 4 * H + unit[:, None]
        reset = tl.load(here, mask=real, other=0).to(tl.float32)
        update = tl.load(here + H, mask=real, other=0).to(tl.float32)
        new = tl.load(here + 2 * H, mask=real, other=0).to(tl.float32)
        product = tl.load(here + 3 * H, mask=real, other=0).to(tl.float32)
        last = tl.load(states + (line + (2 * r + 2 * back) * B) * H + unit[:, None], mask=real, other=0)
        total = carried + tl.load(gradients + line * H + unit[:, None], mask=real, other=0).to(tl.float32)
        used = tl.where(t < length, total, 0.0)
        to_new = used * (1 - update) * (1 - new * new)
        to_update = used * (last.to(dtype, bitcast=True).to(tl.float32) - new) * update * (1 - update)
        to_reset = to_new * product * reset * (1 - reset)
        at = out + line * 4 * H
        to_product = _bits(to_new * reset, dtype, bits)
        _keep(at + unit[:, None], to_product, _bits(to_reset, dtype, bits), _bits(to_update, dtype, bits),
              _bits(to_new, dtype, bits), real, H)  # fmt: skip
        carried = tl.where(t < length, total * update, total)
        carried = _product(new0, at, k0, real, carried, dtype, PRECISION, H)
        carried = _product(reset0, at + H, k0, real, carried, dtype, PRECISION, H)
        carried = _product(update0, at + 2 * H, k0, real, carried, dtype, PRECISION, H)
        if TWO:
            carried = _product(new1, at, k1, real, carried, dtype, PRECISION, H)
            carried = _product(reset1, at + H, k1, real, carried, dtype, PRECISION, H)
            carried = _product(update1, at + 2 * H, k1, real, carried, dtype, PRECISION, H)


def supports(workload: Workload) -> str | None:
    """Whether the weights of a program and the states of a few sequences fit on chip, and all programs of both
    directions run at the same time."""
    device, dtype, hidden = workload.device, workload.dtype, workload.hidden
    if device.type != "cuda" and not INTERPRETED:
        return "runs on a GPU only"
    if dtype not in (torch.bfloat16, torch.float32):
        return f"does not compute in {dtype}"
    if hidden % 64 or not 64 <= hidden <= 1024:
        return "hidden is not a multiple of 64 up to 1024"
    if not _widest(device, dtype, hidden):
        return "the weights do not fit into the shared memory of this GPU"
    if not INTERPRETED and 2 * (hidden // _units(dtype, hidden)) > _processors(device):
        return "this GPU has too few multiprocessors"
    return None


def forward(
    table: Tensor, index: Tensor, weights: Tensor, biases: Tensor, lengths: Tensor, keep: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The contract of `ops/gru`."""
    inputs, lengths = look_up_inputs(table, index), lengths.repeat_interleave(2, dim=0)
    parts = [
        _forward_part(own.contiguous(), each.contiguous(), weights, biases, keep)
        for own, each in zip(_parts(inputs, weights), _parts(lengths, weights, dim=1), strict=True)
    ]
    states, kept = zip(*parts, strict=True)
    return _whole(states), (_whole(kept),) if keep else ()


def backward(
    gradient: Tensor,
    scales: Tensor | None,
    weights: Tensor,
    lengths: Tensor,
    padded: Tensor,
    kept: tuple[Tensor, ...],
) -> tuple[Tensor, None]:
    """The contract of `ops/gru`."""
    gradient = gradient if scales is None else scale_questions(scales, gradient)
    lengths = lengths.repeat_interleave(2, dim=0)
    parts = (_parts(tensor, weights) for tensor in (gradient, padded, *kept))
    found = [
        _backward_part(own.contiguous(), met.contiguous(), noted.contiguous(), each.contiguous(), weights)
        for own, met, noted, each in zip(*parts, _parts(lengths, weights, dim=1), strict=True)
    ]
    return _whole(found), None


def _forward_part(
    inputs: Tensor, lengths: Tensor, weights: Tensor, biases: Tensor, keep: bool
) -> tuple[Tensor, Tensor]:
    recurrences, steps, batch, gates = inputs.shape
    hidden = gates // 3
    states = _missing((recurrences, steps + 2, batch, hidden), inputs)
    states[:, 0], states[:, -1] = 0, 0
    kept = inputs.new_empty((recurrences, steps, batch, 4 * hidden) if keep else (1,))
    share, together = _share(inputs, hidden)
    for first in range(0, recurrences, together):
        some = slice(first, first + together)
        _forward[(len(states[some]) * (hidden // share),)](
            inputs[some], weights[some], biases[some], lengths[some], states[some], kept[some] if keep else kept,
            steps, batch, KEEP=keep, **_sizes(inputs, hidden, share),
        )  # fmt: skip
    return states.view(inputs.dtype), kept


def _backward_part(gradient: Tensor, states: Tensor, kept: Tensor, lengths: Tensor, weights: Tensor) -> Tensor:
    recurrences, steps, batch, hidden = gradient.shape
    out = _missing((recurrences, steps, batch, 4 * hidden), kept)
    bits = states.view(out.dtype)
    share, together = _share(kept, hidden)
    for first in range(0, recurrences, together):
        some = slice(first, first + together)
        _backward[(len(out[some]) * (hidden // share),)](
            gradient[some], weights[some], lengths[some], bits[some], kept[some], out[some], steps, batch,
            **_sizes(kept, hidden, share),
        )  # fmt: skip
    return out.view(kept.dtype)


def _parts(tensor: Tensor, weights: Tensor, dim: int = 2) -> tuple[Tensor, ...]:
    """So many sequences at a time as the chip holds beside these weights."""
    width = _widest(weights.device, weights.dtype, weights.shape[2])
    return tuple(
        tensor.narrow(dim, first, min(width, tensor.shape[dim] - first)) for first in range(0, tensor.shape[dim], width)
    )


def _whole(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=2)


def _widest(device: torch.device, dtype: torch.dtype, hidden: int) -> int:
    """Of how many sequences the chip can hold the states, beside a program's weights; 0 where there is no room."""
    if INTERPRETED:
        return 1 << 20
    if device.type != "cuda":
        return 0
    room = driver.active.utils.get_device_properties(device.index or 0)["max_shared_mem"]
    fitting = (width for width in (64, 32, 16) if count_shared_bytes(dtype, hidden, width) <= room)
    return next(fitting, 0)


def count_shared_bytes(dtype: torch.dtype, hidden: int, width: int) -> int:
    """Bytes of shared memory: weights of all three gates, and the first part of the states. A product in three TF32
    parts has its factors there twice."""
    first, second = _tiles(hidden)
    numbers = 3 * _units(dtype, hidden) * (first + second) + first * width
    return numbers * (8 if dtype == torch.float32 else 2)


def _units(dtype: torch.dtype, hidden: int) -> int:
    """Of a program."""
    return 16 if dtype == torch.float32 or hidden > 512 else 32


def _tiles(hidden: int) -> tuple[int, int]:
    """Two powers of two that cover the state, the second with a rest that is masked."""
    first = 1 << (hidden.bit_length() - 1)
    return first, max(16, triton.next_power_of_2(hidden - first)) if hidden > first else 0


def _share(like: Tensor, hidden: int) -> tuple[int, int]:
    """Units of a program, so that their weights stay on chip, and how many recurrences run in one launch."""
    if INTERPRETED:
        return hidden, 1 << 20
    share = _units(like.dtype, hidden)
    # Always whole pairs, so that an odd number still means backwards.
    return share, _processors(like.device) // (hidden // share) // 2 * 2


def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def _sizes(like: Tensor, hidden: int, share: int) -> dict[str, Any]:
    first, second = _tiles(hidden)
    precision = "tf32x3" if like.dtype == torch.float32 else "ieee"
    width = max(16, triton.next_power_of_2(like.shape[2]))
    tiles = {"K0": first, "K1": max(16, second), "TWO": second > 0}
    return {"H": hidden, "SHARE": share, "BP": width, **tiles, "PRECISION": precision, "num_warps": 4, "num_stages": 1}


def _missing(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Memory full of the pattern that is awaited to go."""
    integer = torch.int16 if like.dtype == torch.bfloat16 else torch.int32
    return torch.full(shape, -1, dtype=integer, device=like.device)


LOG2E, LOG2E_REST, LN2 = (
    tl.constexpr(1.44269502162933349609375),
    tl.constexpr(1.925963033500011e-08),
    tl.constexpr(math.log(2)),
)
