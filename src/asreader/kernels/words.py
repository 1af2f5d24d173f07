"""rows of N batches -> their distinct words: what depends on the word alone is computed once for each of them.

A batch of 32 documents has 14,000 words and 2,700 different ones. Products with the input weights, and their gradients,
are taken over these; the recurrence looks a word's inputs up by its number. Nothing here waits for the device: the room
for distinct words is given, and what is not used of it counts as nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

NOTHING = 0
"""The row of places where no word stands, behind a sequence's end. Values there are zero: nobody needs to add them."""


Summing = Callable[[Tensor], Callable[[], Tensor]]
"""What begins to add up values and returns what ends it: in between there may be time for other work."""


@dataclass(frozen=True)
class Sorted:
    """All places of a batch in the order of their words."""

    numbers: Int[Tensor, "N places"]  # of the words
    order: Int[Tensor, "N places"]  # the places
    ends: Int[Tensor, "N room"]  # where each word's stretch of places ends
    empty: Int[Tensor, " N"]  # how many of the first places have no word


@dataclass(frozen=True)
class Places:
    """Which word stands where: numbers of distinct words, time first, as a recurrence steps."""

    index: Int[Tensor, "N T B"]
    room: int  # numbers are below it
    everywhere: bool = False  # every place has a number of its own, in order
    empty: Int[Tensor, " N"] | None = None  # at how many places no word stands: all have number 0

    @classmethod
    def one_each(cls, shape: Sequence[int], device: torch.device) -> Places:
        """Every place of batches of this shape (N, T, B) counts as a word of its own."""
        readers, steps, batch = shape
        index = torch.arange(steps * batch, dtype=torch.int32, device=device).view(1, steps, batch)
        return cls(index.expand(readers, -1, -1).contiguous(), steps * batch, everywhere=True)

    def sums(self, like: Float[Tensor, "N room D columns"]) -> Summing:
        """What adds up each word's values, which come as [R, places, columns] and go as `like`, with all done that can
        be done before they come: of R = N D recurrences each D in a row have the places of one batch."""
        if self.everywhere:  # nothing to add: the same numbers, as they lie
            together = like.shape[2]
            return lambda values: lambda: values.unflatten(0, (-1, together)).transpose(1, 2)
        if like.device.type == "cuda":
            from asreader.kernels import segments

            return partial(segments.summing, words=self.by_word, sums=segments.begun(self.by_word, like))
        return lambda values: lambda: summed_plainly(values, self.index.flatten(1), self.room)

    @cached_property
    def by_word(self) -> Sorted:
        """Places of equal words side by side, in the order in which they were."""
        numbers = self.index.flatten(1)
        # Two radix passes instead of four: there are never so many distinct words in a batch.
        short = numbers.short() if self.room < 1 << 15 else numbers
        ordered = short.sort(dim=1, stable=True)
        every = torch.arange(self.room, dtype=short.dtype, device=short.device).repeat(len(short), 1)
        ends = torch.searchsorted(ordered.values, every, right=True, out_int32=True)
        empty = torch.zeros_like(ends[:, 0]) if self.empty is None else self.empty
        return Sorted(ordered.values, ordered.indices.int(), ends, empty)


def summed_plainly(
    values: Float[Tensor, "R places columns"], index: Int[Tensor, "N places"], room: int
) -> Float[Tensor, "N room D columns"]:
    """The definition of `Places.sums`."""
    together = len(values) // len(index)
    sums = values.new_zeros(len(values), room, values.shape[2], dtype=torch.float32)
    place = index.repeat_interleave(together, dim=0).long()[..., None].expand_as(values)
    whole = sums.scatter_add_(1, place, values.float()).to(values.dtype)
    return whole.view(-1, together, *whole.shape[1:]).transpose(1, 2).contiguous()


@dataclass(frozen=True)
class DistinctWords:
    """The distinct words of N batches, in the order of their rows; unused room holds row 0 and is beyond `counts`.

    Of a question's few words hardly any are the same, but many places behind them are empty: each word that stands
    somewhere has a line of its own. Line 0 is for the empty places.
    """

    rows: Int[Tensor, "N W"]
    counts: Int[Tensor, " N"]
    document: Places
    question: Places  # numbers of lines
    lines: Places  # in their order, numbers of words


def distinct(
    document: Int[Tensor, "N B T"], question: Int[Tensor, "N B Q"], table: int, room: int, lines: int
) -> DistinctWords:
    """The words of batches over tables of `table` rows; no batch may have more than `room` different ones, nor
    questions of `lines` words or more."""
    if document.device.type == "cuda":
        try:
            from asreader.kernels import numbering
        except ImportError:  # Triton comes with PyTorch for GPUs, on most platforms
            pass
        else:
            return numbering.distinct(document, question, table, room, lines)
    return distinct_plainly(document, question, table, room, lines)


def distinct_plainly(
    document: Int[Tensor, "N B T"], question: Int[Tensor, "N B Q"], table: int, room: int, lines: int
) -> DistinctWords:
    """The definition of `distinct`."""
    parts = [rows.transpose(1, 2).contiguous() for rows in (document, question)]
    everything = torch.cat([rows.flatten(1) for rows in parts], dim=1).long()
    met = torch.zeros(len(everything), table, dtype=torch.int32, device=everything.device)
    met.scatter_(1, everything, 1)
    number = met.cumsum(dim=1, dtype=torch.int32) - 1
    rows = torch.zeros(len(everything), room + 1, dtype=torch.int32, device=everything.device)
    # Rows that were not met, and numbers for which there is no room, all go to one place that nobody looks at.
    place = torch.where(met.bool() & (number < room), number, room).long()
    rows.scatter_(1, place, torch.arange(table, dtype=torch.int32, device=rows.device).expand_as(place))
    written, asked = number.gather(1, everything).split([part[0].numel() for part in parts], dim=1)
    standing = (parts[1] != NOTHING).flatten(1)
    line = standing.cumsum(dim=1, dtype=torch.int32) * standing
    words = torch.zeros(len(line), lines, dtype=torch.int32, device=line.device)
    words.scatter_(1, line.clamp(max=lines - 1).long(), asked * standing)
    empty = [(part == NOTHING).sum(dim=(1, 2), dtype=torch.int32) for part in parts]
    return DistinctWords(
        rows[:, :room].contiguous(),
        number[:, -1] + 1,
        Places(written.reshape(parts[0].shape).contiguous(), room, empty=empty[0]),
        Places(line.view(parts[1].shape), lines, empty=empty[1]),
        Places(words[:, None], room),
    )
