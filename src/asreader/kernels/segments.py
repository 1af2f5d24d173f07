"""numbers at places -> their sums for each distinct word (Triton); `words.summed_plainly` defines it.

Places come sorted by word. A program takes CHUNK of them, whatever words they belong to, and adds up each word's rows
as one small matrix product with zeros and ones; in bfloat16 `sums.cu` does it faster, row by row. A word that goes on
beyond its chunk leaves its part at the edge, and a second kernel adds these up in order: the same bits every time, no
atomics, no program with more to do than others. Chunks without any word are left alone.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from asreader.kernels.words import Sorted

CHUNK = 64
CLEARED = 16
"""Words that a program looks after."""
DEPTH = 8
"""Rows that a thread of sums.cu has on their way."""


def begun(words: Sorted, like: Float[Tensor, "N room D columns"]) -> Float[Tensor, "N room D columns"]:
    """Room for sums, with zeros for all that stand nowhere and will have none."""
    sums, (readers, room) = torch.empty_like(like), words.ends.shape
    line = like[0, 0].numel()
    block = min(1024, triton.next_power_of_2(line))
    _cleared[(triton.cdiv(room, CLEARED), readers)](
        words.ends, words.empty, sums, room, line, CLEARED=CLEARED, BLOCK=block
    )
    return sums


def summing(
    values: Float[Tensor, "R places columns"], words: Sorted, sums: Float[Tensor, "N room D columns"]
) -> Callable[[], Float[Tensor, "N room D columns"]]:
    """Begin to put the sum of each word's values, from places in the order of their words, into sums that were `begun`;
    what is returned ends it, with those words that are spread over several chunks."""
    recurrences, places, columns = values.shape
    room, chunks = words.ends.shape[1], triton.cdiv(places, CHUNK)
    block = min(128, max(16, triton.next_power_of_2(columns)))
    together = recurrences // len(words.numbers)
    edges = torch.empty(recurrences, chunks, 2, columns, device=values.device)
    sizes = (together, places, room, columns)
    arguments = [values, words.order, words.numbers, words.empty, sums, edges, *sizes, *values.stride()[:2]]
    if _fits(values, words, sums):
        threads = min(160, triton.cdiv(columns, 8 * 32) * 32)
        blocks = chunks * recurrences * triton.cdiv(columns, 8 * threads)
        kernel = _kernel(threads, values.device.index or 0)
        kernel((blocks, 1, 1), (threads, 1, 1), [*arguments, chunks, recurrences], 8 * CHUNK)
    else:
        precision = "ieee" if values.dtype == torch.float32 else None
        _in_chunks[(chunks, recurrences)](
            *arguments, CHUNK=CHUNK, BLOCK=block, PRECISION=precision, num_warps=4, num_stages=3
        )

    def ended() -> Float[Tensor, "N room D columns"]:
        wide = min(512, triton.next_power_of_2(columns))
        _over_edges[(chunks, recurrences, triton.cdiv(columns, wide))](
            words.numbers, words.ends, words.empty, sums, edges, *sizes, CHUNK=CHUNK, BLOCK=wide, num_warps=4
        )
        return sums

    return ended


def _fits(values: Tensor, words: Sorted, sums: Tensor) -> bool:
    """Whether sums.cu can do it, in runs of 16 bytes."""
    known = values.dtype == sums.dtype == torch.bfloat16 and words.numbers.dtype == torch.int16
    runs = values.data_ptr() % 16 == 0 and all(size % 8 == 0 for size in (*values.stride()[:2], values.shape[2]))
    compiled = torch.version.hip is None and hasattr(torch.cuda, "_compile_kernel")
    return known and runs and values.stride(2) == 1 and compiled


@cache
def _kernel(threads: int, device: int) -> Any:
    text, options = program(threads)
    with torch.cuda.device(device):
        return torch.cuda._compile_kernel(text, "sums_in_chunks", nvcc_options=options)


def program(threads: int) -> tuple[str, list[str]]:
    """The source of sums.cu, and the compiler's options."""
    text = files("asreader.kernels").joinpath("sums.cu").read_text(encoding="utf-8")
    return text, [f"-DCHUNK={CHUNK}", f"-DDEPTH={DEPTH}", f"-DTHREADS={threads}"]


@triton.jit
def _cleared(ends, empty, sums, room, line, CLEARED: tl.constexpr, BLOCK: tl.constexpr):
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
def _in_chunks(
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
def _over_edges(
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
