"""rows of N batches -> their distinct words, in few launches (Triton); `words.distinct_plainly` defines it.

A batch is put together beside the step before it. What takes long there keeps that step from the memory and the
multiprocessors it wants, so that little is read: a byte for each row of the table, once.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from jaxtyping import Int
from torch import Tensor

from asreader.kernels.words import NOTHING, DistinctWords, Places

BLOCK = 1024
SCANNED = 4096
"""Rows of a table, or places of a batch, that one program counts at the same time."""


def distinct(
    document: Int[Tensor, "N B T"], question: Int[Tensor, "N B Q"], table: int, room: int, lines: int
) -> DistinctWords:
    """The words of batches."""
    document, question = document.contiguous(), question.contiguous()
    (readers, batch, steps), asked, device = document.shape, question.shape[2], document.device
    met = torch.zeros(readers, table, dtype=torch.uint8, device=device)
    shapes = (table,), (room,), (), (steps, batch), (asked, batch), (1, lines), (2,)
    number, rows, counts, written, line, words, empty = (
        torch.empty(readers, *shape, dtype=torch.int32, device=device) for shape in shapes
    )
    places = triton.cdiv(batch * max(steps, asked), BLOCK)
    _meet[(places, readers, 2)](document, question, met, batch * steps, batch * asked, table, BLOCK=BLOCK)
    _number[(readers,)](met, number, rows, counts, table, room, BLOCK=SCANNED, num_warps=8)
    _place[(places, readers)](document, number, written, batch, steps, table, BLOCK=BLOCK)
    _line[(readers,)](
        document, question, number, line, words, empty, batch, steps, asked, table, lines,
        BLOCK=min(SCANNED, triton.next_power_of_2(batch * asked)), num_warps=8,
    )  # fmt: skip
    return DistinctWords(
        rows,
        counts,
        Places(written, room, empty=empty[:, 0].contiguous()),
        Places(line, lines, empty=empty[:, 1].contiguous()),
        Places(words, room),
    )


@triton.jit
def _meet(document, question, met, document_places, question_places, table, BLOCK: tl.constexpr):
    """A one for every row that stands somewhere."""
    place, n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1).to(tl.int64)
    if tl.program_id(2) == 0:
        row = tl.load(document + n * document_places + place, mask=place < document_places, other=-1)
    else:
        row = tl.load(question + n * question_places + place, mask=place < question_places, other=-1)
    tl.store(met + n * table + row, tl.full([BLOCK], 1, tl.uint8), mask=row >= 0)


@triton.jit
def _number(met, number, rows, counts, table, room, BLOCK: tl.constexpr):
    """Numbers for the rows that were met, in their order, as far as there is room; unused room holds row 0."""
    n, total = tl.program_id(0).to(tl.int64), tl.zeros([], tl.int32)
    for first in range(0, table, BLOCK):
        row = first + tl.arange(0, BLOCK)
        here = tl.load(met + n * table + row, mask=row < table, other=0).to(tl.int32)
        own = total + tl.cumsum(here, axis=0) - 1
        tl.store(number + n * table + row, own, mask=here > 0)
        tl.store(rows + n * room + own, row, mask=(here > 0) & (own < room))
        total += tl.sum(here, axis=0)
    tl.store(counts + n, total)
    for first in range(0, room, BLOCK):
        place = first + tl.arange(0, BLOCK)
        tl.store(rows + n * room + place, tl.zeros([BLOCK], tl.int32), mask=(place >= total) & (place < room))


@triton.jit
def _row(words, n, place, B, T):
    """Which stands at a place, counted time first, of a batch that lies sequence first."""
    return tl.load(words + (n * B + place % B) * T + place // B, mask=place < B * T, other=EMPTY)


@triton.jit
def _place(document, number, found, B, T, table, BLOCK: tl.constexpr):
    place, n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1).to(tl.int64)
    real = place < B * T
    own = tl.load(number + n * table + _row(document, n, place, B, T), mask=real, other=0)
    tl.store(found + n * B * T + place, own, mask=real)


@triton.jit
def _line(document, question, number, found, lines, empty, B, T, Q, table, room, BLOCK: tl.constexpr):
    """A line for each word of the questions that stands somewhere, and how many places are empty."""
    n, total = tl.program_id(0).to(tl.int64), tl.zeros([], tl.int32)
    for first in range(0, B * Q, BLOCK):
        place = first + tl.arange(0, BLOCK)
        row = _row(question, n, place, B, Q)
        standing = (row != EMPTY).to(tl.int32)
        line = (total + tl.cumsum(standing, axis=0)) * standing
        tl.store(found + n * B * Q + place, line, mask=place < B * Q)
        own = tl.load(number + n * table + row, mask=row != EMPTY, other=0)
        tl.store(lines + n * room + tl.minimum(line, room - 1), own, mask=row != EMPTY)
        total += tl.sum(standing, axis=0)
    tl.store(empty + 2 * n + 1, B * Q - total)
    for first in range(0, room, BLOCK):
        place = first + tl.arange(0, BLOCK)
        unused = (place == 0) | (place > total)
        tl.store(lines + n * room + place, tl.zeros([BLOCK], tl.int32), mask=unused & (place < room))
    written = tl.zeros([], tl.int32)
    for first in range(0, B * T, BLOCK):
        place = first + tl.arange(0, BLOCK)
        row = tl.load(document + n * B * T + place, mask=place < B * T, other=EMPTY)
        written += tl.sum((row != EMPTY).to(tl.int32), axis=0)
    tl.store(empty + 2 * n, B * T - written)


EMPTY = tl.constexpr(NOTHING)
