"""Attention scores on a GPU (Triton): products of every state with its question, and their gradients.

Grids: `_score` (T / STEPS, B, N), a program owns STEPS positions of one document; `_sum_states` (B, R, H / BLOCK), a
program owns BLOCK units of one question's gradient; `_scale` (T / STEPS, B, R). Layouts: states [R, T, B, H] with any
stride of R, question [R, B, H], scores [N, B, T]: of both directions together, in float32.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from asreader.ops.triton_support import supports_triton

STEPS = 32
"""Positions of a program."""


supports = supports_triton


def score_states(states: Float[Tensor, "R T B H"], question: Float[Tensor, "R B H"]) -> Float[Tensor, "N B T"]:
    """The products of every state with its question, of both directions together, in float32."""
    recurrences, steps, batch, hidden = states.shape
    found = torch.empty(recurrences // 2, batch, steps, device=states.device)
    _score[(triton.cdiv(steps, STEPS), batch, len(found))](
        states, question.contiguous(), found, states.stride(0), steps, batch, **_sizes(hidden)
    )
    return found


def sum_states(gradient: Float[Tensor, "N B T"], states: Float[Tensor, "R T B H"]) -> Float[Tensor, "R B H"]:
    """Gradients of the questions from those of the scores."""
    recurrences, steps, batch, hidden = states.shape
    found = torch.empty(recurrences, batch, hidden, device=states.device)
    sizes = _sizes(hidden)
    _sum_states[(batch, recurrences, triton.cdiv(hidden, sizes["BLOCK"]))](
        gradient, states, found, states.stride(0), steps, batch, **sizes
    )
    return found


def scale_questions(scales: Float[Tensor, "some B T"], question: Float[Tensor, "R B H"]) -> Float[Tensor, "R T B H"]:
    """A sequence's vector, scaled for each step; scales are the same for both directions, or each has its own.

    So the gradients of the states come from those of the scores.
    """
    (recurrences, batch, hidden), steps = question.shape, scales.shape[2]
    found = question.new_empty(recurrences, steps, batch, hidden)
    _scale[(triton.cdiv(steps, STEPS), batch, recurrences)](
        scales, question.contiguous(), found, steps, batch,
        SHARED=recurrences // len(scales), H=hidden, WIDE=triton.next_power_of_2(hidden), STEPS=STEPS,
    )  # fmt: skip
    return found


def _sizes(hidden: int) -> dict[str, Any]:
    """Of small programs, of which many wait for memory at the same time."""
    return {"H": hidden, "BLOCK": min(128, triton.next_power_of_2(hidden)), "STEPS": STEPS, "num_warps": 2}


@triton.jit
def load_states(states, r, t, b, across, T, B, h, H: tl.constexpr):
    """Some positions' states of one sequence."""
    place = r * across + (t.to(tl.int64) * B + b) * H
    return tl.load(states + place[:, None] + h[None, :], mask=(t < T)[:, None] & (h < H)[None, :], other=0)


@triton.jit
def _score(states, question, found, across, T, B, H: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    b, n = tl.program_id(1), tl.program_id(2).to(tl.int64)
    t = tl.program_id(0) * STEPS + tl.arange(0, STEPS)
    score = tl.zeros([STEPS], tl.float32)
    for part in tl.range(0, 2 * tl.cdiv(H, BLOCK), num_stages=4):
        r, h = 2 * n + part % 2, part // 2 * BLOCK + tl.arange(0, BLOCK)
        asked = tl.load(question + (r * B + b) * H + h, mask=h < H, other=0).to(tl.float32)
        score += tl.sum(load_states(states, r, t, b, across, T, B, h, H).to(tl.float32) * asked[None, :], axis=1)
    tl.store(found + (n * B + b) * T + t, score, mask=t < T)


@triton.jit
def _sum_states(gradient, states, found, across, T, B, H: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    b, r = tl.program_id(0), tl.program_id(1).to(tl.int64)
    h = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for first in tl.range(0, T, STEPS, num_stages=4):
        t = first + tl.arange(0, STEPS)
        own = tl.load(gradient + ((r // 2) * B + b) * T + t, mask=t < T, other=0)
        total += tl.sum(load_states(states, r, t, b, across, T, B, h, H).to(tl.float32) * own[:, None], axis=0)
    tl.store(found + (r * B + b) * H + h, total, mask=h < H)


@triton.jit
def _scale(
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
