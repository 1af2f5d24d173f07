"""The definition of clipping: what torch.nn.utils.clip_grad_norm_ divides by, for each reader."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from asreader.ops import Workload


def supports(workload: Workload) -> str | None:
    """Everything."""
    return None


def sum_squares(gradients: Sequence[Float[Tensor, "N ..."]]) -> Float[Tensor, "N _parts"]:
    """Squared norms of tensors, a column each."""
    norms = torch._foreach_norm([own for tensor in gradients for own in tensor.contiguous()])
    return torch.stack(norms).view(len(gradients), -1).square().T


def find_divisors(squares: Sequence[Float[Tensor, "N _parts"]], clip: float) -> Float[Tensor, " N"]:
    """From the squared norms of all gradients."""
    norm = torch.cat([*squares], dim=1).sum(dim=1).sqrt()
    return ((norm + 1e-6) / clip).clamp(min=1.0)
