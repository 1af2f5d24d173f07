"""gradients of N readers -> what each reader's are divided by, so that their norm is at most `clip`."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from asreader import ops
from asreader.ops import Workload


def find_clip_divisors(gradients: Sequence[Float[Tensor, "N ..."]], clip: float) -> Float[Tensor, " N"]:
    """1, or by how much a reader's norm over all its gradients is too large."""
    implementation = ops.select("grad_norm", Workload(gradients[0].device))
    divisors: Tensor = implementation.find_divisors([implementation.sum_squares(gradients)], clip)
    return divisors
