"""Norms of gradients on a GPU (Triton): one pass over the gradients where they lie, summed in a fixed order.

Grids: `_sum_squares` (parts of up to four tensors, N), a program owns BLOCK numbers of one reader's tensor; `_divisors`
(N). Layout: partial sums [N, parts].
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from asreader.ops.triton_support import supports_triton

BLOCK = 8192
"""Numbers that a program sums."""
SMALLEST = 1e-6
"""Added to a norm by torch.nn.utils.clip_grad_norm_."""


supports = supports_triton


def sum_squares(gradients: Sequence[Float[Tensor, "N ..."]]) -> Float[Tensor, "N _parts"]:
    """Sums of the squares of some gradients, in parts: what norms are made of, as soon as some gradients are known."""
    readers = len(gradients[0])
    counts = [gradient[0].numel() for gradient in gradients]
    parts = [triton.cdiv(count, BLOCK) for count in counts]
    sums = torch.empty(readers, sum(parts), device=gradients[0].device)
    each = [*zip(gradients, counts, parts, strict=True)]
    for begin in range(0, len(each), 4):
        # Four at a time: a launch for each of the small ones would take longer than its work.
        some = each[begin : begin + 4]
        tensors, numbers, programs = zip(*some, *[(sums, 0, 0)] * (4 - len(some)), strict=True)
        _sum_squares[(sum(programs), readers)](
            *tensors, *numbers, *programs[:3], sums, sum(parts[:begin]), sums.shape[1], BLOCK=BLOCK, num_warps=8
        )
    return sums


def find_divisors(
    squares: Sequence[Float[Tensor, "N _parts"]], clip: float, out: Float[Tensor, " N"] | None = None
) -> Float[Tensor, " N"]:
    """1, or by how much a reader's norm is too large, from the squares of all its gradients."""
    sums = torch.cat([*squares], dim=1)
    found = torch.empty(len(sums), device=sums.device) if out is None else out
    _divisors[(len(sums),)](sums, found, sums.shape[1], clip, SMALLEST, BLOCK=triton.next_power_of_2(sums.shape[1]))
    return found


@triton.jit
def _square(gradient, n, count, part, BLOCK: tl.constexpr):
    place = part * BLOCK + tl.arange(0, BLOCK)
    own = tl.load(gradient + n * count + place, mask=place < count, other=0).to(tl.float32)
    return tl.sum(own * own)


@triton.jit
def _sum_squares(
    a, b, c, d, a_count, b_count, c_count, d_count, a_parts, b_parts, c_parts, sums, first, room, BLOCK: tl.constexpr
):
    part, n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    to = sums + n * room + first + part
    if part < a_parts:
        tl.store(to, _square(a, n, a_count, part, BLOCK))
    elif part < a_parts + b_parts:
        tl.store(to, _square(b, n, b_count, part - a_parts, BLOCK))
    elif part < a_parts + b_parts + c_parts:
        tl.store(to, _square(c, n, c_count, part - a_parts - b_parts, BLOCK))
    else:
        tl.store(to, _square(d, n, d_count, part - a_parts - b_parts - c_parts, BLOCK))


@triton.jit
def _divisors(sums, found, room, most, smallest, BLOCK: tl.constexpr):
    n, part = tl.program_id(0), tl.arange(0, BLOCK)
    norm = tl.sqrt(tl.sum(tl.load(sums + n * room + part, mask=part < room, other=0)))
    tl.store(found + n, tl.maximum((norm + smallest) / most, 1.0))
