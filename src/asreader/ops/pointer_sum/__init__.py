"""attention over positions -> support of candidates: equation 2 of the paper, in log space.

The log of the summed attention of each candidate's mentions; -inf for a candidate without any. In log space the loss
stays finite where a sum of attention would round to zero. An implementation has `sum_mentions(log_attention,
candidate_at, candidates)`; the gradient, a look-up, is the same for all.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader import ops
from asreader.ops import Workload
from asreader.ops.vmap_rules import fold_readers

NO_CANDIDATE = -1
"""In `candidate_at`: the word at this position mentions no further candidate."""


def pointer_sum(
    log_attention: Float[Tensor, "B T"], candidate_at: Int[Tensor, "B T K"], candidates: int
) -> Float[Tensor, "B C"]:
    """Support of each candidate; `candidate_at` holds the up to K candidates that a position mentions."""
    support: Tensor = _PointerSum.apply(log_attention, candidate_at, candidates)  # type: ignore[no-untyped-call]
    return support


class _PointerSum(torch.autograd.Function):
    @staticmethod
    def forward(log_attention: Tensor, candidate_at: Tensor, candidates: int) -> Tensor:
        implementation = ops.select("pointer_sum", Workload(log_attention.device, log_attention.dtype))
        support: Tensor = implementation.sum_mentions(log_attention, candidate_at, candidates)
        return support

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        log_attention, candidate_at, _ = inputs
        ctx.save_for_backward(log_attention, candidate_at, output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Each mention has its part of its candidate's gradient: exp(log_attention - support)."""
        log_attention, candidate_at, support = ctx.saved_tensors
        target = candidate_at.long().clamp(min=0).flatten(1)
        at_mention = gradient.gather(1, target).view(candidate_at.shape)
        own_support = support.gather(1, target).view(candidate_at.shape)
        fraction = (log_attention[..., None] - own_support).exp()
        is_mention = (candidate_at != NO_CANDIDATE) & own_support.isfinite()
        return torch.where(is_mention, at_mention * fraction, 0.0).sum(dim=-1), None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], log_attention: Tensor, candidate_at: Tensor, candidates: int
    ) -> tuple[Tensor, int]:
        count = info.batch_size
        folded = fold_readers((log_attention, candidate_at), in_dims[:2], count)
        support = _PointerSum.apply(*folded, candidates)  # type: ignore[no-untyped-call]
        return support.unflatten(0, (count, -1)), 0
