"""The definition of the pointer sum: a log-sum-exp over the positions that mention each candidate.

A few candidates at a time, which bounds the memory; no atomics, so a GPU gives the same bits every time.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader.ops import Workload

_AT_ONCE = 16


def supports(workload: Workload) -> str | None:
    """Everything."""
    return None


def sum_mentions(
    log_attention: Float[Tensor, "B T"], candidate_at: Int[Tensor, "B T K"], candidates: int
) -> Float[Tensor, "B C"]:
    """The contract of `ops/pointer_sum`."""
    parts = []
    for first in range(0, candidates, _AT_ONCE):
        some = torch.arange(first, min(first + _AT_ONCE, candidates), device=log_attention.device)
        is_mention = (candidate_at[:, None] == some[:, None, None]).any(dim=-1)
        parts.append(log_attention[:, None].masked_fill(~is_mention, -torch.inf).logsumexp(dim=-1))
    return torch.cat(parts, dim=1)
