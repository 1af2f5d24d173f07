"""The definition of the attention sum's loss and gradients, by autograd."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from asreader.ops import Workload
from asreader.ops.attention_loss import LossGradients
from asreader.ops.attention_scores import reference


def supports(workload: Workload) -> str | None:
    """Everything."""
    return None


@torch.enable_grad()
def compute_loss_gradients(
    states: Float[Tensor, "R T B H"],
    question: Float[Tensor, "R B H"],
    in_document: Bool[Tensor, "N B T"],
    answer_at: Bool[Tensor, "N B T"],
    weights: Float[Tensor, " N"],
) -> LossGradients:
    """The contract of `ops/attention_loss`."""
    asked = question.detach().float().requires_grad_()
    scores = reference.score_states(states.detach(), asked)
    everywhere = scores.masked_fill(~in_document, -torch.inf).logsumexp(dim=-1)
    losses = everywhere - scores.masked_fill(~answer_at, -torch.inf).logsumexp(dim=-1)
    to_scores, to_question = torch.autograd.grad((losses.sum(dim=1) * weights).sum(), (scores, asked))
    return LossGradients(losses.detach(), to_scores, to_question.to(question.dtype))
