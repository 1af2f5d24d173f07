"""The loss of the attention sum on a GPU (Triton, and CUDA for bfloat16): one pass over the states.

Sums are scaled by the greatest term so far (an online softmax), so the attention need not be known before the states
are read. `attention_loss.cu` does the pass faster in bfloat16.

Grids: `_sum_parts` (parts, B, N): a program owns a part of one document; `_reduce_parts` (B, N, 2): a program owns one
example and direction. Layouts: states [R, T, B, H] with any stride of R, question [R, B, H], sums [N, B, parts, 2, 2,
H] over all positions (0) and those of the answer (1), each for both directions.
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

from asreader.ops.attention_loss import LossGradients
from asreader.ops.attention_scores.triton import load_states
from asreader.ops.triton_support import supports_triton

STEPS = 32
"""Positions that a part has at least."""
AT_ONCE = 8
"""Positions that a program of `_sum_parts` loads together."""
DEPTH, WARPS = 2, 8
"""Positions that a warp of attention_loss.cu has in flight, and warps of a block."""
PROGRAMS = 512
"""Programs to launch at least: documents of few readers are cut into parts until there are so many."""


supports = supports_triton


def compute_loss_gradients(
    states: Float[Tensor, "R T B H"],
    question: Float[Tensor, "R B H"],
    in_document: Bool[Tensor, "N B T"],
    answer_at: Bool[Tensor, "N B T"],
    weights: Float[Tensor, " N"],
) -> LossGradients:
    """The contract of `ops/attention_loss`."""
    masks = _as_bytes(in_document), _as_bytes(answer_at)
    return _reduce(_sum(states, question.contiguous(), masks), masks, weights, question)


@dataclass(frozen=True)
class _Parts:
    """What is known of each part of a document, of all positions and of those that support the answer."""

    scores: Float[Tensor, "N B T"]
    greatest: Float[Tensor, "N B parts 2"]
    totals: Float[Tensor, "N B parts 2"]  # of what has the greatest as 1
    sums: Float[Tensor, "N B parts 2 D H"]  # of the states, so weighted


def _sum(states: Float[Tensor, "R T B H"], question: Float[Tensor, "R B H"], masks: tuple[Tensor, Tensor]) -> _Parts:
    """The one pass over the states."""
    (_, steps, batch, hidden), readers = states.shape, len(states) // 2
    parts = min(triton.cdiv(PROGRAMS, readers * batch), triton.cdiv(steps, STEPS))
    length = triton.cdiv(triton.cdiv(steps, parts), AT_ONCE) * AT_ONCE
    parts = triton.cdiv(steps, length)
    shapes = (steps,), (parts, 2), (parts, 2), (parts, 2, 2, hidden)
    found = _Parts(*(torch.empty(readers, batch, *shape, device=states.device) for shape in shapes))
    made = [found.scores, found.greatest, found.totals, found.sums]
    given = [states, question, *masks, *made, states.stride(0), steps, batch, length]
    if _fits_cuda(states, question):
        kernel = _compile_kernel(hidden, states.device.index or 0)
        kernel((readers * batch * parts, 1, 1), (32 * WARPS, 1, 1), [*given, parts], _shared_bytes(hidden))
    else:
        wide = triton.next_power_of_2(hidden)
        _sum_parts[(parts, batch, readers)](
            *given, H=hidden, WIDE=wide, STEPS=AT_ONCE, num_warps=8 if wide > 128 else 4
        )
    return found


def _reduce(
    parts: _Parts, masks: tuple[Tensor, Tensor], weights: Float[Tensor, " N"], question: Float[Tensor, "R B H"]
) -> LossGradients:
    """What the parts come to, the questions' gradients in the questions' precision."""
    (readers, batch, steps), hidden, count = parts.scores.shape, question.shape[2], parts.totals.shape[2]
    found = LossGradients(weights.new_empty(readers, batch), torch.empty_like(parts.scores), torch.empty_like(question))
    _reduce_parts[(batch, readers, 2)](
        parts.scores, *masks, parts.greatest, parts.totals, parts.sums, weights,
        found.losses, found.to_scores, found.to_question, steps, batch, count,
        H=hidden, WIDE=triton.next_power_of_2(hidden), PARTS=triton.next_power_of_2(count),
        BLOCK=min(1024, triton.next_power_of_2(steps)),
    )  # fmt: skip
    return found


def _fits_cuda(states: Tensor, question: Tensor) -> bool:
    """Whether attention_loss.cu can do it, in runs of 16 bytes."""
    known = states.dtype == question.dtype == torch.bfloat16 and states[0].is_contiguous()
    runs = states.shape[3] % 8 == 0 and states.stride(0) % 8 == 0 and states.data_ptr() % 16 == 0
    return known and runs and torch.version.hip is None and hasattr(torch.cuda, "_compile_kernel")


@cache
def _compile_kernel(hidden: int, device: int) -> Any:
    text, options = kernel_source(hidden)
    with torch.cuda.device(device):
        kernel = torch.cuda._compile_kernel(text, "point_partly", nvcc_options=options)
        kernel.set_shared_memory_config(_shared_bytes(hidden))
    return kernel


def _shared_bytes(hidden: int) -> int:
    """Bytes of shared memory, as attention_loss.cu uses them: a line for each warp, and two numbers."""
    return 4 * WARPS * (-(-hidden // 128) * 8 * 32 + 2)


def kernel_source(hidden: int) -> tuple[str, list[str]]:
    """The source of attention_loss.cu, and the compiler's options."""
    text = files("asreader.ops.attention_loss").joinpath("attention_loss.cu").read_text(encoding="utf-8")
    return text, [f"-DHIDDEN={hidden}", f"-DDEPTH={DEPTH}", f"-DWARPS={WARPS}"]


def _as_bytes(mask: Bool[Tensor, "N B T"]) -> Tensor:
    return mask.contiguous().view(torch.uint8)


@triton.jit
def _sum_parts(
    states, question, in_document, answer_at, scores, greatest, totals, sums, across, T, B, length,
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
        one = load_states(states, 2 * n, t, b, across, end, B, h, H).to(tl.float32)
        other = load_states(states, 2 * n + 1, t, b, across, end, B, h, H).to(tl.float32)
        score = tl.sum(one * forth + other * back, axis=1)
        tl.store(scores + at, score, mask=real)
        may = tl.where(tl.load(in_document + at, mask=real, other=0) != 0, score, LOWEST)
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
def _reduce_parts(
    scores, in_document, answer_at, greatest, totals, sums, weights, losses, to_scores, to_question, T, B, parts,
    H: tl.constexpr, WIDE: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    b, n, direction = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2)
    example, h, part = n * B + b, tl.arange(0, WIDE), tl.arange(0, PARTS)
    to, there = (example * parts + part) * 2, part < parts
    tops, bests = tl.load(greatest + to, there, LOWEST), tl.load(greatest + to + 1, there, LOWEST)
    top, best = tl.max(tops, axis=0), tl.max(bests, axis=0)
    total = tl.sum(tl.load(totals + to, there, 0) * tl.exp(tops - top), axis=0)
    support = tl.sum(tl.load(totals + to + 1, there, 0) * tl.exp(bests - best), axis=0)
    weight, mean = tl.load(weights + n), tl.zeros([WIDE], tl.float32)
    for which in range(parts):
        here = (example * parts + which) * 2
        every = tl.load(sums + (2 * here + direction) * H + h, mask=h < H, other=0)
        own = tl.load(sums + (2 * here + 2 + direction) * H + h, mask=h < H, other=0)
        mean += every * (tl.exp(tl.load(greatest + here) - top) / total)
        mean -= own * (tl.exp(tl.load(greatest + here + 1) - best) / support)
    place = ((2 * n + direction) * B + b) * H + h
    tl.store(to_question + place, (weight * mean).to(to_question.dtype.element_ty), mask=h < H)
    if direction == 0:
        # Scores less the greatest one, and never a sum with it: it may be large, and would take their last bits away.
        tl.store(losses + example, top - best + (tl.log(total) - tl.log(support)))
        for first in range(0, T, BLOCK):
            t = first + tl.arange(0, BLOCK)
            at, real = example * T + t, t < T
            score = tl.load(scores + at, mask=real, other=0)
            may = tl.load(in_document + at, mask=real, other=0) != 0
            does = tl.load(answer_at + at, mask=real, other=0) != 0
            attention = tl.exp(tl.where(may, score - top, LOWEST)) / total
            supporting = tl.exp(tl.where(does, score - best, LOWEST)) / support
            tl.store(to_scores + at, weight * (attention - supporting), mask=real)


LOWEST = tl.constexpr(-1e30)
