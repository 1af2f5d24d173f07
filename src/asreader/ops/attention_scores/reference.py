"""The definition of attention scores and their gradients, in plain PyTorch."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from asreader.ops import Workload
from asreader.ops.precision import full_precision


def supports(workload: Workload) -> str | None:
    """Everything."""
    return None


def score_states(states: Float[Tensor, "R T B H"], question: Float[Tensor, "R B H"]) -> Float[Tensor, "N B T"]:
    """The products of every state with its question, of both directions together."""
    wide = torch.promote_types(states.dtype, torch.float32)
    with full_precision(states.device.type):
        # [R, B, T, H] x [R, B, H, 1]: the states are read where they lie.
        products = torch.matmul(states.to(wide).transpose(1, 2), question.to(wide)[..., None])[..., 0]
    scores: Tensor = products.unflatten(0, (-1, 2)).sum(dim=1)
    return scores


def sum_states(gradient: Float[Tensor, "N B T"], states: Float[Tensor, "R T B H"]) -> Float[Tensor, "R B H"]:
    """The gradient of the questions."""
    scales = gradient.repeat_interleave(2, dim=0)[:, :, None]
    return torch.matmul(scales, states.to(gradient.dtype).transpose(1, 2))[:, :, 0]


def scale_questions(scales: Float[Tensor, "some B T"], question: Float[Tensor, "R B H"]) -> Float[Tensor, "R T B H"]:
    """The gradient of the states: a sequence's vector, scaled for each step; scales for each reader or recurrence."""
    each = scales.repeat_interleave(len(question) // len(scales), dim=0).to(question.dtype)
    return each.permute(0, 2, 1)[..., None] * question[:, None]
