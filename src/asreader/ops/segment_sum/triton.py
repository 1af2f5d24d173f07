"""Segment sums on a GPU (Triton, and CUDA for bfloat16): deterministic, without atomics.

Positions come sorted by row. A program owns CHUNK of them, whatever rows they belong to, and sums each row's values as
one small matrix product with zeros and ones; `segment_sum.cu` does it value by value, faster. A row that goes on beyond
its chunk leaves a partial sum at the edge of the chunk, and a second kernel adds the partial sums in order. Chunks
without any word are skipped.

Grids: `_clear_rows` (rows / CLEARED, N); `_sum_chunks` (chunks, R); `_sum_edges` (chunks, R, columns / BLOCK).
Layouts: values [R, positions, columns] with any row stride, sums [N, U, D, columns], edges [R, chunks, 2, columns].
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from asreader.ops.segment_sum import Positions, RowOrder, SegmentSum
from asreader.ops.triton_support import supports_triton

CHUNK = 64
CLEARED = 16
"""Rows that a program clears."""
DEPTH = 8
"""Loads that a thread of segment_sum.cu has in flight."""


supports = supports_triton


def start_sum(positions: Positions, like: Float[Tensor, "N U D columns"]) -> SegmentSum:
    """The contract of `ops/segment_sum`."""
    order = positions.by_row
    return partial(sum_chunks, order=order, sums=clear_rows(order, like))


def clear_rows(order: RowOrder, like: Float[Tensor, "N U D columns"]) -> Float[Tensor, "N U D columns"]:
    """Memory for the sums, with zeros for all rows that stand nowhere."""
    sums, (readers, rows) = torch.empty_like(like), order.ends.shape
    width = like[0, 0].numel()
    block = min(1024, triton.next_power_of_2(width))
    _clear_rows[(triton.cdiv(rows, CLEARED), readers)](
        order.ends, order.empty, sums, rows, width, CLEARED=CLEARED, BLOCK=block
    )
    return sums


def sum_chunks(
    values: Float[Tensor, "R positions columns"], order: RowOrder, sums: Float[Tensor, "N U D columns"]
) -> Callable[[], Float[Tensor, "N U D columns"]]:
    """Sum within chunks; the returned function adds what rows have in several chunks."""
    recurrences, positions, columns = values.shape
    rows, chunks = order.ends.shape[1], triton.cdiv(positions, CHUNK)
    block = min(128, max(16, triton.next_power_of_2(columns)))
    directions = recurrences // len(order.rows)
    edges = torch.empty(recurrences, chunks, 2, columns, device=values.device)
    sizes = (directions, positions, rows, columns)
    arguments = [values, order.order, order.rows, order.empty, sums, edges, *sizes, *values.stride()[:2]]
    if _fits_cuda(values, order, sums):
        threads = min(160, triton.cdiv(columns, 8 * 32) * 32)
        blocks = chunks * recurrences * triton.cdiv(columns, 8 * threads)
        kernel = _compile_kernel(threads, values.device.index or 0)
        kernel((blocks, 1, 1), (threads, 1, 1), [*arguments, chunks, recurrences], 8 * CHUNK)
    else:
        precision = "ieee" if values.dtype == torch.float32 else None
        _sum_chunks[(chunks, recurrences)](
            *arguments, CHUNK=CHUNK, BLOCK=block, PRECISION=precision, num_warps=4, num_stages=3
        )

    def sum_edges() -> Float[Tensor, "N U D columns"]:
        wide = min(512, triton.next_power_of_2(columns))
        _sum_edges[(chunks, recurrences, triton.cdiv(columns, wide))](
            order.rows, order.ends, order.empty, sums, edges, *sizes, CHUNK=CHUNK, BLOCK=wide, num_warps=4
        )
        return sums

    return sum_edges


def _fits_cuda(values: Tensor, order: RowOrder, sums: Tensor) -> bool:
    """Whether segment_sum.cu can be used: bfloat16, and loads of 16 bytes."""
    known = values.dtype == sums.dtype == torch.bfloat16 and order.rows.dtype == torch.int16
    runs = values.data_ptr() % 16 == 0 and all(size % 8 == 0 for size in (*values.stride()[:2], values.shape[2]))
    compiled = torch.version.hip is None and hasattr(torch.cuda, "_compile_kernel")
    return known and runs and values.stride(2) == 1 and compiled


@cache
def _compile_kernel(threads: int, device: int) -> Any:
    text, options = kernel_source(threads)
    with torch.cuda.device(device):
        return torch.cuda._compile_kernel(text, "sums_in_chunks", nvcc_options=options)


def kernel_source(threads: int) -> tuple[str, list[str]]:
    """The source of segment_sum.cu, and the compiler's options."""
    text = files("asreader.ops.segment_sum").joinpath("segment_sum.cu").read_text(encoding="utf-8")
    return text, [f"-DCHUNK={CHUNK}", f"-DDEPTH={DEPTH}", f"-DTHREADS={threads}"]


@triton.jit
def _clear_rows(ends, empty, sums, room, line, CLEARED: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(1).to(tl.int64)
    first_word = tl.program_id(0) * CLEARED
    begin = tl.load(ends + n * room + first_word - 1, mask=first_word > 0, other=0)
    begin = tl.maximum(begin, tl.load(empty + n))
    for word in range(first_word, tl.minimum(first_word + CLEARED, room)):
        end = tl.load(ends + n * room + word)
        if end <= begin:
            for first in range(0, line, BLOCK):
                column = first + tl.arange(0, BLOCK)
                to = sums + (n * room + word) * line + column
                tl.store(to, tl.zeros([BLOCK], sums.dtype.element_ty), mask=column < line)
        begin = tl.maximum(begin, end)


@triton.jit
def _sum_chunks(
    values, order, numbers, empty, sums, edges, shared, places, room, columns, across, along,
    CHUNK: tl.constexpr, BLOCK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    chunk, r = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if tl.minimum((chunk + 1) * CHUNK, places) <= tl.load(empty + r // shared):
        return
    own = numbers + (r // shared) * places
    at = chunk * CHUNK + tl.arange(0, CHUNK)
    word = tl.load(own + at, mask=at < places, other=-1).to(tl.int32)
    last = tl.load(own + at - 1, mask=(at < places) & (at > 0), other=-1).to(tl.int32)
    last = tl.where(at == chunk * CHUNK, word, last)
    rank = tl.cumsum((word != last).to(tl.int32), axis=0)  # of a place's word among those of the chunk
    mine = (rank[None, :] == tl.arange(0, CHUNK)[:, None]) & (word >= 0)[None, :]
    name = tl.max(tl.where(mine, word[None, :], -1), axis=1)
    before = tl.load(own + chunk * CHUNK - 1, mask=chunk > 0, other=-2).to(tl.int32)
    after = tl.load(own + (chunk + 1) * CHUNK, mask=(chunk + 1) * CHUNK < places, other=-2).to(tl.int32)
    closed, opened = (name >= 0) & (name != before) & (name != after), (name == before) | (name == after)
    edge = (r * tl.num_programs(0) + chunk) * 2 + tl.where(name == before, 0, 1)
    place = tl.load(order + (r // shared) * places + at, mask=at < places, other=0).to(tl.int64)
    for first in range(0, columns, BLOCK):
        column = first + tl.arange(0, BLOCK)
        real = (at < places)[:, None] & (column < columns)[None, :]
        tile = tl.load(values + r * across + place[:, None] * along + column[None, :], mask=real, other=0)
        total = tl.dot(mine.to(tile.dtype), tile, input_precision=PRECISION)
        within = (column < columns)[None, :]
        line = ((r // shared) * room + name.to(tl.int64)) * shared + r % shared
        here = sums + line[:, None] * columns + column[None, :]
        tl.store(here, total.to(sums.dtype.element_ty), mask=closed[:, None] & within)
        tl.store(edges + edge[:, None] * columns + column[None, :], total, mask=opened[:, None] & within)


@triton.jit
def _sum_edges(
    numbers, ends, empty, sums, edges, shared, places, room, columns, CHUNK: tl.constexpr, BLOCK: tl.constexpr
):
    chunk, r = tl.program_id(0), tl.program_id(1).to(tl.int64)
    own = numbers + (r // shared) * places
    limit = (chunk + 1) * CHUNK
    if (limit < places) & (limit > tl.load(empty + r // shared)):
        word = tl.load(own + limit - 1).to(tl.int32)
        before = tl.load(own + chunk * CHUNK - 1, mask=chunk > 0, other=-2).to(tl.int32)
        if (tl.load(own + limit).to(tl.int32) == word) & (before != word):  # it begins in this chunk and goes on
            begin = (r * tl.num_programs(0) + chunk) * 2
            beyond = (tl.load(ends + (r // shared) * room + word) - 1) // CHUNK - chunk
            line = ((r // shared) * room + word) * shared + r % shared
            column = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
            total = tl.load(edges + (begin + 1) * columns + column, mask=column < columns, other=0)
            for further in range(1, beyond + 1):
                total += tl.load(edges + (begin + 2 * further) * columns + column, mask=column < columns, other=0)
            tl.store(sums + line * columns + column, total.to(sums.dtype.element_ty), mask=column < columns)
