"""states and questions -> scores of all positions -> losses, and all their gradients (Triton).

`learnt` does it in one pass over the states, which are most of what there is to read; in bfloat16 `pointing.cu` is the
faster way to do that pass. `training/stacked` defines the same in plain PyTorch.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Bool, Float
from torch import Tensor

STEPS = 32
"""Positions that a program has before it at the same time."""
AT_ONCE = 8
"""And where it holds sums for each of them."""
DEPTH, WARPS = 2, 8
"""Positions that a warp of pointing.cu has on their way, and a block's warps."""
PROGRAMS = 512
"""Of `learnt`, at least: a few readers' documents are cut into parts until there are so many."""


@dataclass(frozen=True)
class Pointed:
    """What a batch's questions point at is worth, and what there is to learn from it."""

    missed: Float[Tensor, "N B"]  # -log P of every example's answer
    to_scores: Float[Tensor, "N B T"]
    to_question: Float[Tensor, "R B H"]


def learnt(
    states: Float[Tensor, "R T B H"],
    question: Float[Tensor, "R B H"],
    readable: Bool[Tensor, "N B T"],
    answer_at: Bool[Tensor, "N B T"],
    shares: Float[Tensor, " N"],
) -> Pointed:
    """Losses, and gradients of what they come to if each example has its reader's share in it.

    A question's gradient is the difference of two means of its document's states, weighted by their attention: over all
    positions that may be read, and over those that support the answer. Sums are scaled by the greatest term so far, so
    that the attention need not be known before the states are read.
    """
    masks = _bytes(readable), _bytes(answer_at)
    return _wholly_of(_partly_of(states, question.contiguous(), masks), masks, shares, question)


@dataclass(frozen=True)
class _Parts:
    """What is known of each part of a document, of all positions and of those that support the answer."""

    scores: Float[Tensor, "N B T"]
    greatest: Float[Tensor, "N B parts 2"]
    totals: Float[Tensor, "N B parts 2"]  # of what has the greatest as 1
    sums: Float[Tensor, "N B parts 2 D H"]  # of the states, so weighted


def _partly_of(
    states: Float[Tensor, "R T B H"], question: Float[Tensor, "R B H"], masks: tuple[Tensor, Tensor]
) -> _Parts:
    """The one pass over the states."""
    (_, steps, batch, hidden), readers = states.shape, len(states) // 2
    parts = min(triton.cdiv(PROGRAMS, readers * batch), triton.cdiv(steps, STEPS))
    length = triton.cdiv(triton.cdiv(steps, parts), AT_ONCE) * AT_ONCE
    parts = triton.cdiv(steps, length)
    shapes = (steps,), (parts, 2), (parts, 2), (parts, 2, 2, hidden)
    found = _Parts(*(torch.empty(readers, batch, *shape, device=states.device) for shape in shapes))
    made = [found.scores, found.greatest, found.totals, found.sums]
    given = [states, question, *masks, *made, states.stride(0), steps, batch, length]
    if _fits(states, question):
        kernel = _kernel(hidden, states.device.index or 0)
        kernel((readers * batch * parts, 1, 1), (32 * WARPS, 1, 1), [*given, parts], _room(hidden))
    else:
        wide = triton.next_power_of_2(hidden)
        _partly[(parts, batch, readers)](*given, H=hidden, WIDE=wide, STEPS=AT_ONCE, num_warps=8 if wide > 128 else 4)
    return found


def _wholly_of(
    parts: _Parts, masks: tuple[Tensor, Tensor], shares: Float[Tensor, " N"], question: Float[Tensor, "R B H"]
) -> Pointed:
    """What the parts come to, the questions' gradients in the questions' precision."""
    (readers, batch, steps), hidden, count = parts.scores.shape, question.shape[2], parts.totals.shape[2]
    found = Pointed(shares.new_empty(readers, batch), torch.empty_like(parts.scores), torch.empty_like(question))
    _wholly[(batch, readers, 2)](
        parts.scores, *masks, parts.greatest, parts.totals, parts.sums, shares,
        found.missed, found.to_scores, found.to_question, steps, batch, count,
        H=hidden, WIDE=triton.next_power_of_2(hidden), PARTS=triton.next_power_of_2(count),
        BLOCK=min(1024, triton.next_power_of_2(steps)),
    )  # fmt: skip
    return found


def scores(states: Float[Tensor, "R T B H"], question: Float[Tensor, "R B H"]) -> Float[Tensor, "N B T"]:
    """The products of every state with its question, of both directions together, in float32."""
    recurrences, steps, batch, hidden = states.shape
    found = torch.empty(recurrences // 2, batch, steps, device=states.device)
    _scores[(triton.cdiv(steps, STEPS), batch, len(found))](
        states, question.contiguous(), found, states.stride(0), steps, batch, **_sizes(hidden)
    )
    return found


def to_question(gradient: Float[Tensor, "N B T"], states: Float[Tensor, "R T B H"]) -> Float[Tensor, "R B H"]:
    """Gradients of the questions from those of the scores."""
    recurrences, steps, batch, hidden = states.shape
    found = torch.empty(recurrences, batch, hidden, device=states.device)
    sizes = _sizes(hidden)
    _to_question[(batch, recurrences, triton.cdiv(hidden, sizes["BLOCK"]))](
        gradient, states, found, states.stride(0), steps, batch, **sizes
    )
    return found


def to_states(scales: Float[Tensor, "some B T"], question: Float[Tensor, "R B H"]) -> Float[Tensor, "R T B H"]:
    """A sequence's vector, scaled for each step; scales are the same for both directions, or each has its own.

    So the gradients of the states come from those of the scores.
    """
    (recurrences, batch, hidden), steps = question.shape, scales.shape[2]
    found = question.new_empty(recurrences, steps, batch, hidden)
    _to_states[(triton.cdiv(steps, STEPS), batch, recurrences)](
        scales, question.contiguous(), found, steps, batch,
        SHARED=recurrences // len(scales), H=hidden, WIDE=triton.next_power_of_2(hidden), STEPS=STEPS,
    )  # fmt: skip
    return found


def _fits(states: Tensor, question: Tensor) -> bool:
    """Whether pointing.cu can do it, in runs of 16 bytes."""
    known = states.dtype == question.dtype == torch.bfloat16 and states[0].is_contiguous()
    runs = states.shape[3] % 8 == 0 and states.stride(0) % 8 == 0 and states.data_ptr() % 16 == 0
    return known and runs and torch.version.hip is None and hasattr(torch.cuda, "_compile_kernel")


@cache
def _kernel(hidden: int, device: int) -> Any:
    text, options = program(hidden)
    with torch.cuda.device(device):
        kernel = torch.cuda._compile_kernel(text, "point_partly", nvcc_options=options)
        kernel.set_shared_memory_config(_room(hidden))
    return kernel


def _room(hidden: int) -> int:
    """Bytes of shared memory, as pointing.cu uses them: a line for each warp, and two numbers."""
    return 4 * WARPS * (-(-hidden // 128) * 8 * 32 + 2)


def program(hidden: int) -> tuple[str, list[str]]:
    """The source of pointing.cu, and the compiler's options."""
    text = files("asreader.kernels").joinpath("pointing.cu").read_text(encoding="utf-8")
    return text, [f"-DHIDDEN={hidden}", f"-DDEPTH={DEPTH}", f"-DWARPS={WARPS}"]


def _bytes(mask: Bool[Tensor, "N B T"]) -> Tensor:
    return mask.contiguous().view(torch.uint8)


def _sizes(hidden: int) -> dict[str, Any]:
    """Of small programs, of which many wait for memory at the same time."""
    return {"H": hidden, "BLOCK": min(128, triton.next_power_of_2(hidden)), "STEPS": STEPS, "num_warps": 2}


@triton.jit
def _tile(states, r, t, b, across, T, B, h, H: tl.constexpr):
    """Some positions' states of one sequence."""
    place = r * across + (t.to(tl.int64) * B + b) * H
    return tl.load(states + place[:, None] + h[None, :], mask=(t < T)[:, None] & (h < H)[None, :], other=0)


@triton.jit
def _partly(
    states, question, readable, answer_at, scores, greatest, totals, sums, across, T, B, length,
    H: tl.constexpr, WIDE: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    part, b, n = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    example, h = n * B + b, tl.arange(0, WIDE)
    forth = tl.load(question + (2 * n * B + b) * H + h, mask=h < H, other=0).to(tl.float32)[None, :]
    back = tl.load(question + ((2 * n + 1) * B + b) * H + h, mask=h < H, other=0).to(tl.float32)[None, :]
    top, best = tl.full([], LOWEST, tl.float32), tl.full([], LOWEST, tl.float32)
    total, support = tl.zeros([], tl.float32), tl.zeros([], tl.float32)
    # For each of the positions at once, and added up at the end: of every position, and of those of the answer.
    every_forth, every_back = tl.zeros([STEPS, WIDE], tl.float32), tl.zeros([STEPS, WIDE], tl.float32)
    own_forth, own_back = tl.zeros([STEPS, WIDE], tl.float32), tl.zeros([STEPS, WIDE], tl.float32)
    end = tl.minimum((part + 1) * length, T)
    for first in tl.range(part * length, end, STEPS, num_stages=3):
        t = first + tl.arange(0, STEPS)
        at, real = example * T + t, t < end
        one = _tile(states, 2 * n, t, b, across, end, B, h, H).to(tl.float32)
        other = _tile(states, 2 * n + 1, t, b, across, end, B, h, H).to(tl.float32)
        score = tl.sum(one * forth + other * back, axis=1)
        tl.store(scores + at, score, mask=real)
        may = tl.where(tl.load(readable + at, mask=real, other=0) != 0, score, LOWEST)
        does = tl.where(tl.load(answer_at + at, mask=real, other=0) != 0, score, LOWEST)
        # What is not to be counted vanishes with the first that is, here or in another part.
        higher, better = tl.maximum(top, tl.max(may, axis=0)), tl.maximum(best, tl.max(does, axis=0))
        weight, old = tl.exp(may - higher), tl.exp(top - higher)
        every_forth = every_forth * old + one * weight[:, None]
        every_back = every_back * old + other * weight[:, None]
        total = total * old + tl.sum(weight, axis=0)
        weight, old = tl.exp(does - better), tl.exp(best - better)
        own_forth = own_forth * old + one * weight[:, None]
        own_back = own_back * old + other * weight[:, None]
        support = support * old + tl.sum(weight, axis=0)
        top, best = higher, better
    to = (example * tl.num_programs(0) + part) * 2
    tl.store(greatest + to, top)
    tl.store(greatest + to + 1, best)
    tl.store(totals + to, total)
    tl.store(totals + to + 1, support)
    tl.store(sums + 2 * to * H + h, tl.sum(every_forth, axis=0), mask=h < H)
    tl.store(sums + (2 * to + 1) * H + h, tl.sum(every_back, axis=0), mask=h < H)
    tl.store(sums + (2 * to + 2) * H + h, tl.sum(own_forth, axis=0), mask=h < H)
    tl.store(sums + (2 * to + 3) * H + h, tl.sum(own_back, axis=0), mask=h < H)


@triton.jit
def _wholly(
    scores, readable, answer_at, greatest, totals, sums, shares, missed, to_scores, to_question, T, B, parts,
    H: tl.constexpr, WIDE: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    b, n, direction = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2)
    example, h, part = n * B + b, tl.arange(0, WIDE), tl.arange(0, PARTS)
    to, there = (example * parts + part) * 2, part < parts
    tops, bests = tl.load(greatest + to, there, LOWEST), tl.load(greatest + to + 1, there, LOWEST)
    top, best = tl.max(tops, axis=0), tl.max(bests, axis=0)
    total = tl.sum(tl.load(totals + to, there, 0) * tl.exp(tops - top), axis=0)
    support = tl.sum(tl.load(totals + to + 1, there, 0) * tl.exp(bests - best), axis=0)
    share, mean = tl.load(shares + n), tl.zeros([WIDE], tl.float32)
    for which in range(parts):
        here = (example * parts + which) * 2
        every = tl.load(sums + (2 * here + direction) * H + h, mask=h < H, other=0)
        own = tl.load(sums + (2 * here + 2 + direction) * H + h, mask=h < H, other=0)
        mean += every * (tl.exp(tl.load(greatest + here) - top) / total)
        mean -= own * (tl.exp(tl.load(greatest + here + 1) - best) / support)
    place = ((2 * n + direction) * B + b) * H + h
    tl.store(to_question + place, (share * mean).to(to_question.dtype.element_ty), mask=h < H)
    if direction == 0:
        # Scores less the greatest one, and never a sum with it: it may be large, and would take their last bits away.
        tl.store(missed + example, top - best + (tl.log(total) - tl.log(support)))
        for first in range(0, T, BLOCK):
            t = first + tl.arange(0, BLOCK)
            at, real = example * T + t, t < T
            score = tl.load(scores + at, mask=real, other=0)
            may = tl.load(readable + at, mask=real, other=0) != 0
            does = tl.load(answer_at + at, mask=real, other=0) != 0
            attention = tl.exp(tl.where(may, score - top, LOWEST)) / total
            supporting = tl.exp(tl.where(does, score - best, LOWEST)) / support
            tl.store(to_scores + at, share * (attention - supporting), mask=real)


@triton.jit
def _scores(states, question, found, across, T, B, H: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    b, n = tl.program_id(1), tl.program_id(2).to(tl.int64)
    t = tl.program_id(0) * STEPS + tl.arange(0, STEPS)
    score = tl.zeros([STEPS], tl.float32)
    for part in tl.range(0, 2 * tl.cdiv(H, BLOCK), num_stages=4):
        r, h = 2 * n + part % 2, part // 2 * BLOCK + tl.arange(0, BLOCK)
        asked = tl.load(question + (r * B + b) * H + h, mask=h < H, other=0).to(tl.float32)
        score += tl.sum(_tile(states, r, t, b, across, T, B, h, H).to(tl.float32) * asked[None, :], axis=1)
    tl.store(found + (n * B + b) * T + t, score, mask=t < T)


@triton.jit
def _to_question(gradient, states, found, across, T, B, H: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    b, r = tl.program_id(0), tl.program_id(1).to(tl.int64)
    h = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for first in tl.range(0, T, STEPS, num_stages=4):
        t = first + tl.arange(0, STEPS)
        own = tl.load(gradient + ((r // 2) * B + b) * T + t, mask=t < T, other=0)
        total += tl.sum(_tile(states, r, t, b, across, T, B, h, H).to(tl.float32) * own[:, None], axis=0)
    tl.store(found + (r * B + b) * H + h, total, mask=h < H)


@triton.jit
def _to_states(
    scales, question, found, T, B, SHARED: tl.constexpr, H: tl.constexpr, WIDE: tl.constexpr, STEPS: tl.constexpr
):
    b, r = tl.program_id(1), tl.program_id(2).to(tl.int64)
    t, h = tl.program_id(0) * STEPS + tl.arange(0, STEPS), tl.arange(0, WIDE)
    asked = tl.load(question + (r * B + b) * H + h, mask=h < H, other=0).to(tl.float32)
    own = tl.load(scales + ((r // SHARED) * B + b) * T + t, mask=t < T, other=0)
    place = ((r * T + t) * B + b) * H
    within = (t < T)[:, None] & (h < H)[None, :]
    tl.store(
        found + place[:, None] + h[None, :], (own[:, None] * asked[None, :]).to(found.dtype.element_ty), mask=within
    )


LOWEST = tl.constexpr(-1e30)
