"""batches on a device -> the same, some candidates met as unknown words: `entities.strange` for many readers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from asreader.batches.anonymous_rows import strange
from asreader.data.vocabulary import FIRST_ANONYMOUS_ROW, PADDING_ROW


@dataclass(frozen=True)
class Strangers:
    """What it takes to do so for the examples of one data set."""

    share: float
    unknown: int  # how many rows unknown words have
    first_known: int  # the row behind all anonymous ones
    behind: Int[Tensor, " examples"]  # the distinct unknown words that each has anyway
    asked_at: Int[Tensor, " words"]  # which candidate each word of the questions is

    def rows(self, numbers: Int[Tensor, "N B"], keys: Int[Tensor, " N"], choices: int) -> Int[Tensor, "N B C"]:
        """The row that each candidate borrows, or PADDING_ROW for those that stay who they are."""
        place = torch.arange(choices, device=numbers.device)
        drawn = strange(keys.long()[:, None, None], numbers[..., None], place, self.share)
        row = FIRST_ANONYMOUS_ROW + (self.behind[numbers][..., None] + place) % self.unknown
        return torch.where(drawn, row, PADDING_ROW)

    def met(
        self, rows: Int[Tensor, "N B T"], at: Int[Tensor, "N B T"], drawn: Int[Tensor, "N B C"]
    ) -> Int[Tensor, "N B T"]:
        """The rows of words, where strange ones have borrowed rows."""
        borrowed = drawn.gather(2, at.clamp(min=0).long())
        return torch.where((at >= 0) & (borrowed != PADDING_ROW) & (rows >= self.first_known), borrowed, rows)
