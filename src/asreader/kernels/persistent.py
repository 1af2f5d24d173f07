"""the recurrence as one kernel that stays on the GPU for the whole sequence (Triton); `recurrence.stepwise` is its oracle.

A GRU step is far too small for a GPU: launched step by step it waits for launches. Here every program keeps its share
of the recurrent weights on chip, steps through time by itself and meets the others in memory. H / SHARE programs share
one recurrence; each owns SHARE units of the state and reads the whole state of the step before.

There is no barrier: the memory for the states is filled with a pattern that no state can be (a NaN with all bits set),
and whoever reads it reads again until all of it is gone. One trip through the L2 cache per step is all that is left.
All programs must run at the same time, so a launch has no more of them than the device has multiprocessors.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

INTERPRETED = triton.knobs.runtime.interpret
"""On a CPU programs run one after the other: only a recurrence that one program does alone can be tested there."""


@triton.jit
def _awaited(pointers, mask):  # type: ignore[no-untyped-def]
    """Load a tile until nothing of it is missing; `volatile` goes past the L1 cache, which is not shared."""
    tile = tl.load(pointers, mask=mask, other=0, volatile=True)
    missing = tl.sum((tile == -1).to(tl.int32))
    while missing > 0:
        tile = tl.load(pointers, mask=mask, other=0, volatile=True)
        missing = tl.sum((tile == -1).to(tl.int32))
    return tile


@triton.jit
def _tanh(x):  # type: ignore[no-untyped-def]
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def _forward(
    inputs, weights, biases, lengths, states, kept, T, B,
    H: tl.constexpr, SHARE: tl.constexpr, BP: tl.constexpr, K0: tl.constexpr, K1: tl.constexpr,
    KEEP: tl.constexpr, PRECISION: tl.constexpr,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """states[r, 1 + t] from states[r, t] (even r) or states[r, 2 + t] (odd r); kept: reset, update, new, W h + b of new."""
    number = tl.program_id(0) // (H // SHARE)
    unit = tl.program_id(0) % (H // SHARE) * SHARE + tl.arange(0, SHARE)
    batch = tl.arange(0, BP)
    real = (batch < B)[None, :]
    back = number % 2
    r = number.to(tl.int64)
    dtype = inputs.dtype.element_ty
    whole = weights + r * 3 * H * H + unit[:, None] * H
    k0, k1 = tl.arange(0, K0), K0 + tl.arange(0, K1)
    inside = (k1 < H)[None, :]
    reset0, reset1 = tl.load(whole + k0[None, :]), tl.load(whole + k1[None, :], mask=inside, other=0)
    whole += H * H
    update0, update1 = tl.load(whole + k0[None, :]), tl.load(whole + k1[None, :], mask=inside, other=0)
    whole += H * H
    new0, new1 = tl.load(whole + k0[None, :]), tl.load(whole + k1[None, :], mask=inside, other=0)
    bias = tl.load(biases + number * H + unit).to(tl.float32)[:, None]
    length = tl.load(lengths + number * B + batch, mask=batch < B, other=0)[None, :]
    given = inputs + r * T * B * 3 * H + batch[None, :] * 3 * H + unit[:, None]
    before = states + r * (T + 2) * B * H + batch[None, :] * H
    after = before + unit[:, None]
    keep = kept + r * T * B * 4 * H + batch[None, :] * 4 * H + unit[:, None]
    state = tl.zeros((SHARE, BP), tl.float32)
    for step in range(T):
        t = step + back * (T - 1 - 2 * step)
        now = given + t.to(tl.int64) * B * 3 * H
        to_reset = tl.load(now, mask=real, other=0).to(tl.float32)
        to_update = tl.load(now + H, mask=real, other=0).to(tl.float32)
        to_new = tl.load(now + 2 * H, mask=real, other=0).to(tl.float32)
        last = before + (t + 2 * back).to(tl.int64) * B * H
        h0 = _awaited(last + k0[:, None], real).to(dtype, bitcast=True)
        reset = tl.dot(reset0, h0, input_precision=PRECISION)
        update = tl.dot(update0, h0, input_precision=PRECISION)
        new = tl.dot(new0, h0, input_precision=PRECISION)
        if K1 > 16 or K0 + K1 == H:
            h1 = _awaited(last + k1[:, None], real & (k1 < H)[:, None]).to(dtype, bitcast=True)
            reset = tl.dot(reset1, h1, reset, input_precision=PRECISION)
            update = tl.dot(update1, h1, update, input_precision=PRECISION)
            new = tl.dot(new1, h1, new, input_precision=PRECISION)
        reset, update, product = tl.sigmoid(reset + to_reset), tl.sigmoid(update + to_update), new + bias
        new = _tanh(to_new + reset * product)
        state = tl.where(t < length, new + update * (state - new), state)
        tl.store(
            after + (t + 1).to(tl.int64) * B * H, state.to(dtype).to(states.dtype.element_ty, bitcast=True), mask=real
        )
        if KEEP:
            here = keep + t.to(tl.int64) * B * 4 * H
            tl.store(here, reset.to(dtype), mask=real)
            tl.store(here + H, update.to(dtype), mask=real)
            tl.store(here + 2 * H, new.to(dtype), mask=real)
            tl.store(here + 3 * H, product.to(dtype), mask=real)


@triton.jit
def _backward(
    gradients, weights, lengths, states, kept, out, T, B,
    H: tl.constexpr, SHARE: tl.constexpr, BP: tl.constexpr, K0: tl.constexpr, K1: tl.constexpr, PRECISION: tl.constexpr,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """out[r, t]: gradients at W h of new, reset, update and at the input of new; the first three are what others await."""
    number = tl.program_id(0) // (H // SHARE)
    unit = tl.program_id(0) % (H // SHARE) * SHARE + tl.arange(0, SHARE)
    batch = tl.arange(0, BP)
    real = (batch < B)[None, :]
    back = number % 2
    r = number.to(tl.int64)
    dtype = kept.dtype.element_ty
    whole = weights + r * 3 * H * H + unit[:, None]
    k0, k1 = tl.arange(0, K0), K0 + tl.arange(0, K1)
    inside = (k1 < H)[None, :]
    reset0, reset1 = tl.load(whole + k0[None, :] * H), tl.load(whole + k1[None, :] * H, mask=inside, other=0)
    whole += H * H
    update0, update1 = tl.load(whole + k0[None, :] * H), tl.load(whole + k1[None, :] * H, mask=inside, other=0)
    whole += H * H
    new0, new1 = tl.load(whole + k0[None, :] * H), tl.load(whole + k1[None, :] * H, mask=inside, other=0)
    length = tl.load(lengths + number * B + batch, mask=batch < B, other=0)[None, :]
    given = gradients + r * T * B * H + batch[None, :] * H + unit[:, None]
    before = states + r * (T + 2) * B * H + batch[None, :] * H + unit[:, None]
    keep = kept + r * T * B * 4 * H + batch[None, :] * 4 * H + unit[:, None]
    bits = out.dtype.element_ty
    row = out + r * T * B * 4 * H + batch[None, :] * 4 * H
    carried = tl.zeros((SHARE, BP), tl.float32)
    for step in range(T):
        t = (T - 1 - step) - back * (T - 1 - 2 * step)
        here = keep + t.to(tl.int64) * B * 4 * H
        reset = tl.load(here, mask=real, other=0).to(tl.float32)
        update = tl.load(here + H, mask=real, other=0).to(tl.float32)
        new = tl.load(here + 2 * H, mask=real, other=0).to(tl.float32)
        product = tl.load(here + 3 * H, mask=real, other=0).to(tl.float32)
        last = (
            tl.load(before + (t + 2 * back).to(tl.int64) * B * H, mask=real, other=0)
            .to(dtype, bitcast=True)
            .to(tl.float32)
        )
        total = carried + tl.load(given + t.to(tl.int64) * B * H, mask=real, other=0).to(tl.float32)
        used = tl.where(t < length, total, 0.0)
        to_new = used * (1 - update) * (1 - new * new)
        to_update = used * (last - new) * update * (1 - update)
        to_reset = to_new * product * reset * (1 - reset)
        at = row + t.to(tl.int64) * B * 4 * H
        mine = at + unit[:, None]
        tl.store(mine, (to_new * reset).to(dtype).to(bits, bitcast=True), mask=real)
        tl.store(mine + H, to_reset.to(dtype).to(bits, bitcast=True), mask=real)
        tl.store(mine + 2 * H, to_update.to(dtype).to(bits, bitcast=True), mask=real)
        tl.store(mine + 3 * H, to_new.to(dtype).to(bits, bitcast=True), mask=real)
        carried = tl.where(t < length, total * update, total)
        first = at + k0[:, None]
        carried = tl.dot(new0, _awaited(first, real).to(dtype, bitcast=True), carried, input_precision=PRECISION)
        carried = tl.dot(reset0, _awaited(first + H, real).to(dtype, bitcast=True), carried, input_precision=PRECISION)
        carried = tl.dot(
            update0, _awaited(first + 2 * H, real).to(dtype, bitcast=True), carried, input_precision=PRECISION
        )
        if K1 > 16 or K0 + K1 == H:
            rest, held = at + k1[:, None], real & (k1 < H)[:, None]
            carried = tl.dot(new1, _awaited(rest, held).to(dtype, bitcast=True), carried, input_precision=PRECISION)
            carried = tl.dot(
                reset1, _awaited(rest + H, held).to(dtype, bitcast=True), carried, input_precision=PRECISION
            )
            carried = tl.dot(
                update1, _awaited(rest + 2 * H, held).to(dtype, bitcast=True), carried, input_precision=PRECISION
            )


def serves(device: torch.device, dtype: torch.dtype, hidden: int) -> bool:
    """Whether this way is open."""
    there = device.type == "cuda" or INTERPRETED
    return there and dtype in (torch.bfloat16, torch.float32) and hidden % 64 == 0 and 64 <= hidden <= 1024


def forward(inputs: Tensor, weights: Tensor, biases: Tensor, lengths: Tensor, keep: bool) -> tuple[Tensor, Tensor]:
    """The states with a row of zeros before and behind, and what a backward pass needs."""
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


def backward(gradient: Tensor, weights: Tensor, lengths: Tensor, states: Tensor, kept: Tensor) -> Tensor:
    """Gradients at the recurrent products of new, reset, update, and at the input of new."""
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


def _share(like: Tensor, hidden: int) -> tuple[int, int]:
    """Units of a program, so that their weights stay on chip, and how many recurrences run in one launch."""
    if INTERPRETED:
        return hidden, 1 << 20
    share = 16 if like.dtype == torch.float32 or hidden > 512 else 32
    processors = torch.cuda.get_device_properties(like.device).multi_processor_count
    # Always whole pairs, so that an odd number still means backwards.
    return share, max(2, processors // (hidden // share) // 2 * 2)


def _sizes(like: Tensor, hidden: int, share: int) -> dict[str, Any]:
    first, rest = _tiles(hidden)
    precision = "tf32x3" if like.dtype == torch.float32 else "ieee"
    width = max(16, triton.next_power_of_2(like.shape[2]))
    return {"H": hidden, "SHARE": share, "BP": width, "K0": first, "K1": rest, "PRECISION": precision, "num_warps": 4}


def _tiles(hidden: int) -> tuple[int, int]:
    """Two powers of two that cover the state, the second with a rest that is masked."""
    first = 1 << (hidden.bit_length() - 1)
    rest = hidden - first
    return first, max(16, triton.next_power_of_2(rest)) if rest else 16


def _missing(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Memory full of the pattern that is awaited to go."""
    integer = torch.int16 if like.dtype == torch.bfloat16 else torch.int32
    return torch.full(shape, -1, dtype=integer, device=like.device)
