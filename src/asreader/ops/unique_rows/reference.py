"""The definition of unique rows: marks, a running sum, and look-ups in plain PyTorch."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from asreader.ops import Workload
from asreader.ops.segment_sum import Positions
from asreader.ops.unique_rows import NO_WORD, UniqueRows


def supports(workload: Workload) -> str | None:
    """Everything."""
    return None


def find_unique_rows(
    document: Int[Tensor, "N B T"], question: Int[Tensor, "N B Q"], table: int, bound: int, tokens: int
) -> UniqueRows:
    """The contract of `ops/unique_rows`."""
    timed = [rows.transpose(1, 2).contiguous() for rows in (document, question)]
    everything = torch.cat([rows.flatten(1) for rows in timed], dim=1).long()
    marks = torch.zeros(len(everything), table, dtype=torch.int32, device=everything.device)
    marks.scatter_(1, everything, 1)
    number = marks.cumsum(dim=1, dtype=torch.int32) - 1
    rows = torch.zeros(len(everything), bound + 1, dtype=torch.int32, device=everything.device)
    # Rows that do not occur, and numbers beyond the bound, all go to one extra entry that is cut off.
    target = torch.where(marks.bool() & (number < bound), number, bound).long()
    rows.scatter_(1, target, torch.arange(table, dtype=torch.int32, device=rows.device).expand_as(target))
    in_document, in_question = number.gather(1, everything).split([part[0].numel() for part in timed], dim=1)
    is_word = (timed[1] != NO_WORD).flatten(1)
    token = is_word.cumsum(dim=1, dtype=torch.int32) * is_word
    words = torch.zeros(len(token), tokens, dtype=torch.int32, device=token.device)
    words.scatter_(1, token.clamp(max=tokens - 1).long(), in_question * is_word)
    empty = [(part == NO_WORD).sum(dim=(1, 2), dtype=torch.int32) for part in timed]
    return UniqueRows(
        rows[:, :bound].contiguous(),
        number[:, -1] + 1,
        number,
        Positions(in_document.reshape(timed[0].shape).contiguous(), bound, empty=empty[0]),
        Positions(token.view(timed[1].shape), tokens, empty=empty[1]),
        Positions(words[:, None], bound),
    )
