"""batches on a device -> the same with some candidates as unknown words: `draw_anonymized` for many readers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from asreader.batches.anonymous_rows import draw_anonymized
from asreader.data.vocabulary import FIRST_ANONYMOUS_ROW, PADDING_ROW


@dataclass(frozen=True)
class CandidateAnonymizer:
    """What the examples of one data set need for it."""

    probability: float
    unknown_rows: int
    first_known: int  # the row behind all anonymous ones
    unknown_counts: Int[Tensor, " examples"]  # the distinct unknown words that each example has anyway
    question_candidate_at: Int[Tensor, " words"]  # which candidate each word of the questions is

    def draw_rows(self, numbers: Int[Tensor, "N B"], keys: Int[Tensor, " N"], candidates: int) -> Int[Tensor, "N B C"]:
        """The row of each candidate that is anonymized, PADDING_ROW for the others."""
        index = torch.arange(candidates, device=numbers.device)
        drawn = draw_anonymized(keys.long()[:, None, None], numbers[..., None], index, self.probability)
        row = FIRST_ANONYMOUS_ROW + (self.unknown_counts[numbers][..., None] + index) % self.unknown_rows
        return torch.where(drawn, row, PADDING_ROW)

    def replace_rows(
        self, rows: Int[Tensor, "N B T"], candidate_at: Int[Tensor, "N B T"], drawn: Int[Tensor, "N B C"]
    ) -> Int[Tensor, "N B T"]:
        """The rows of words, with those of anonymized candidates replaced."""
        row = drawn.gather(2, candidate_at.clamp(min=0).long())
        return torch.where((candidate_at >= 0) & (row != PADDING_ROW) & (rows >= self.first_known), row, rows)
