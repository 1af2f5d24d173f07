"""attention over positions -> support of candidates: equation 2 of the paper, in log space."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from asreader.batches.host import Mentions


def pointer_sum(log_attention: Float[Tensor, "B T"], mentions: Mentions, candidates: int) -> Float[Tensor, "B C"]:
    """log of the summed attention of each candidate's mentions; -inf for a candidate without any.

    Summing exp(x - peak) per candidate keeps the loss finite where a plain sum of attention would round to zero.
    """
    batch = log_attention.shape[0]
    mentioned = log_attention.flatten()[mentions.positions]
    peak = torch.full((batch * candidates,), -torch.inf, dtype=mentioned.dtype, device=mentioned.device)
    peak.scatter_reduce_(0, mentions.candidates, mentioned.detach(), "amax")
    shares = (mentioned - peak.index_select(0, mentions.candidates)).exp_()
    total = torch.zeros_like(peak).index_add_(0, mentions.candidates, shares)
    return total.log().add_(peak).view(batch, candidates)
