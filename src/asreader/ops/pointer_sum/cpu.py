"""The pointer sum on a CPU: each mention is added to its candidate, scaled by the candidate's greatest attention."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader.ops import Workload
from asreader.ops.pointer_sum import NO_CANDIDATE


def supports(workload: Workload) -> str | None:
    """A CPU, where additions have one order."""
    return None if workload.device.type == "cpu" else "runs on a CPU only"


def sum_mentions(
    log_attention: Float[Tensor, "B T"], candidate_at: Int[Tensor, "B T K"], candidates: int
) -> Float[Tensor, "B C"]:
    """The contract of `ops/pointer_sum`."""
    batch, steps, mentions = candidate_at.shape
    position = (candidate_at != NO_CANDIDATE).flatten().nonzero()[:, 0]
    row = position // (steps * mentions)
    target = row * candidates + candidate_at.flatten()[position]
    values = log_attention.flatten()[position // mentions]
    greatest = torch.full((batch * candidates,), -torch.inf, dtype=values.dtype)
    greatest.scatter_reduce_(0, target, values, "amax").clamp_(min=torch.finfo(values.dtype).min)  # inf - inf is nan
    scaled = (values - greatest.index_select(0, target)).exp_()
    total = torch.zeros_like(greatest).index_add_(0, target, scaled)
    return total.log().add_(greatest).view(batch, candidates)
