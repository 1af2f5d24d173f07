"""Unique rows of batches on a GPU (Triton), in four launches that read little memory.

A batch is prepared while the step before it runs, and must not take memory bandwidth or multiprocessors from it.

Grids: `_mark_rows` (positions / BLOCK, N, 2) sets a byte for each row that occurs; `_number_rows` (N) numbers the
marked rows in order with a running sum; `_number_document` (positions / BLOCK, N) looks the numbers up, time first;
`_number_question` (N) gives every word of the questions an own number and counts empty positions.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from jaxtyping import Int
from torch import Tensor

from asreader.ops.segment_sum import Positions
from asreader.ops.triton_support import supports_triton
from asreader.ops.unique_rows import NO_WORD, UniqueRows

BLOCK = 1024
SCANNED = 4096
"""Rows of a table, or places of a batch, that one program counts at the same time."""


supports = supports_triton


def find_unique_rows(
    document: Int[Tensor, "N B T"], question: Int[Tensor, "N B Q"], table: int, bound: int, tokens: int
) -> UniqueRows:
    """The contract of `ops/unique_rows`."""
    document, question = document.contiguous(), question.contiguous()
    (readers, batch, steps), asked, device = document.shape, question.shape[2], document.device
    marks = torch.zeros(readers, table, dtype=torch.uint8, device=device)
    shapes = (table,), (bound,), (), (steps, batch), (asked, batch), (1, tokens), (2,)
    number, rows, counts, written, token, words, empty = (
        torch.empty(readers, *shape, dtype=torch.int32, device=device) for shape in shapes
    )
    blocks = triton.cdiv(batch * max(steps, asked), BLOCK)
    _mark_rows[(blocks, readers, 2)](document, question, marks, batch * steps, batch * asked, table, BLOCK=BLOCK)
    _number_rows[(readers,)](marks, number, rows, counts, table, bound, BLOCK=SCANNED, num_warps=8)
    _number_document[(blocks, readers)](document, number, written, batch, steps, table, BLOCK=BLOCK)
    _number_question[(readers,)](
        document, question, number, token, words, empty, batch, steps, asked, table, tokens,
        BLOCK=min(SCANNED, triton.next_power_of_2(batch * asked)), num_warps=8,
    )  # fmt: skip
    return UniqueRows(
        rows,
        counts,
        number,
        Positions(written, bound, empty=empty[:, 0].contiguous()),
        Positions(token, tokens, empty=empty[:, 1].contiguous()),
        Positions(words, bound),
    )


@triton.jit
def _mark_rows(document, question, met, document_places, question_places, table, BLOCK: tl.constexpr):
    """A one for every row that stands somewhere."""
    place, n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1).to(tl.int64)
    if tl.program_id(2) == 0:
        row = tl.load(document + n * document_places + place, mask=place < document_places, other=-1)
    else:
        row = tl.load(question + n * question_places + place, mask=place < question_places, other=-1)
    tl.store(met + n * table + row, tl.full([BLOCK], 1, tl.uint8), mask=row >= 0)


@triton.jit
def _number_rows(met, number, rows, counts, table, room, BLOCK: tl.constexpr):
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
def _number_document(document, number, found, B, T, table, BLOCK: tl.constexpr):
    place, n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1).to(tl.int64)
    real = place < B * T
    own = tl.load(number + n * table + _row(document, n, place, B, T), mask=real, other=0)
    tl.store(found + n * B * T + place, own, mask=real)


@triton.jit
def _number_question(document, question, number, found, lines, empty, B, T, Q, table, room, BLOCK: tl.constexpr):
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


EMPTY = tl.constexpr(NO_WORD)
