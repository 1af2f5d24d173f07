"""states and questions -> scores of all positions -> losses, and all their gradients (Triton).

Each is one pass over what it reads. `training/stacked` defines the same in plain PyTorch.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Bool, Float
from torch import Tensor

STEPS = 32
"""Positions that a program has before it at the same time."""


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


def to_states(gradient: Float[Tensor, "N B T"], question: Float[Tensor, "R B H"]) -> Float[Tensor, "R T B H"]:
    """Gradients of the states from those of the scores."""
    (recurrences, batch, hidden), steps = question.shape, gradient.shape[2]
    found = question.new_empty(recurrences, steps, batch, hidden)
    _to_states[(triton.cdiv(steps, STEPS), batch, recurrences)](
        gradient, question.contiguous(), found, steps, batch, H=hidden, WIDE=triton.next_power_of_2(hidden), STEPS=STEPS
    )
    return found


def losses(
    scores: Float[Tensor, "N B T"], readable: Bool[Tensor, "N B T"], answer_at: Bool[Tensor, "N B T"]
) -> tuple[Float[Tensor, "N B"], Float[Tensor, "N B"]]:
    """The logarithms of two sums: over all positions that may be read, and over those that support the answer."""
    readers, batch, steps = scores.shape
    everywhere, supported = (torch.empty(readers, batch, device=scores.device) for _ in range(2))
    _losses[(readers * batch,)](
        scores, _bytes(readable), _bytes(answer_at), everywhere, supported, steps,
        BLOCK=min(1024, triton.next_power_of_2(steps)),
    )  # fmt: skip
    return everywhere, supported


def to_scores(
    scores: Float[Tensor, "N B T"],
    readable: Bool[Tensor, "N B T"],
    answer_at: Bool[Tensor, "N B T"],
    sums: tuple[Float[Tensor, "N B"], Float[Tensor, "N B"]],
    gradient: Float[Tensor, "N B"],
) -> Float[Tensor, "N B T"]:
    """Gradients of the scores, of what has `gradient` at the difference of both logarithms."""
    readers, batch, steps = scores.shape
    found, block = torch.empty_like(scores), min(1024, triton.next_power_of_2(steps))
    _to_scores[(readers * batch, triton.cdiv(steps, block))](
        scores, _bytes(readable), _bytes(answer_at), *sums, gradient.contiguous(), found, steps, BLOCK=block
    )
    return found


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
def _to_states(gradient, question, found, T, B, H: tl.constexpr, WIDE: tl.constexpr, STEPS: tl.constexpr):
    b, r = tl.program_id(1), tl.program_id(2).to(tl.int64)
    t, h = tl.program_id(0) * STEPS + tl.arange(0, STEPS), tl.arange(0, WIDE)
    asked = tl.load(question + (r * B + b) * H + h, mask=h < H, other=0).to(tl.float32)
    own = tl.load(gradient + ((r // 2) * B + b) * T + t, mask=t < T, other=0)
    place = ((r * T + t) * B + b) * H
    within = (t < T)[:, None] & (h < H)[None, :]
    tl.store(
        found + place[:, None] + h[None, :], (own[:, None] * asked[None, :]).to(found.dtype.element_ty), mask=within
    )


@triton.jit
def _losses(scores, readable, answer_at, everywhere, supported, T, BLOCK: tl.constexpr):
    example = tl.program_id(0).to(tl.int64)
    top, best = tl.full([], LOWEST, tl.float32), tl.full([], LOWEST, tl.float32)
    total, part = tl.zeros([], tl.float32), tl.zeros([], tl.float32)
    for first in range(0, T, BLOCK):
        t = first + tl.arange(0, BLOCK)
        at, real = example * T + t, t < T
        score = tl.load(scores + at, mask=real, other=0)
        may = tl.where(tl.load(readable + at, mask=real, other=0) != 0, score, LOWEST)
        does = tl.where(tl.load(answer_at + at, mask=real, other=0) != 0, score, LOWEST)
        # Sums are scaled by the greatest term so far. What is not to be counted vanishes with the first that is.
        higher, better = tl.maximum(top, tl.max(may, axis=0)), tl.maximum(best, tl.max(does, axis=0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(may - higher), axis=0)
        part = part * tl.exp(best - better) + tl.sum(tl.exp(does - better), axis=0)
        top, best = higher, better
    tl.store(everywhere + example, top + tl.log(total))
    tl.store(supported + example, best + tl.log(part))


@triton.jit
def _to_scores(scores, readable, answer_at, everywhere, supported, gradient, found, T, BLOCK: tl.constexpr):
    example = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at, real = example * T + t, t < T
    score = tl.load(scores + at, mask=real, other=0)
    may = tl.load(readable + at, mask=real, other=0) != 0
    does = tl.load(answer_at + at, mask=real, other=0) != 0
    whole, part = tl.load(everywhere + example), tl.load(supported + example)
    own = tl.exp(tl.where(may, score - whole, LOWEST)) - tl.exp(tl.where(does, score - part, LOWEST))
    tl.store(found + at, tl.load(gradient + example) * own, mask=real)


LOWEST = tl.constexpr(-1e30)
