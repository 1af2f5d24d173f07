"""The definition of keyed dropout, in plain PyTorch."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader.ops import Workload
from asreader.ops.keyed_dropout import hash32


def supports(workload: Workload) -> str | None:
    """Everything."""
    return None


def apply_mask(
    values: Float[Tensor, "N ..."],
    keys: Int[Tensor, " N"],
    probability: float,
    salt: int,
    rows: Int[Tensor, "N U"] | None = None,
) -> Float[Tensor, "N ..."]:
    """A value is dropped where the hash of key, salt and position, as a fraction of 2^32, is below the probability."""
    position = torch.arange(values[0].numel(), device=values.device)
    if rows is not None:
        width = values.shape[-1]
        position = (rows.long()[..., None] * width + position[:width]).flatten(1)
    seeds = hash32(hash32(keys.long() & 0xFFFFFFFF) ^ salt)
    drawn = hash32(seeds[:, None] ^ position)
    is_kept = (drawn >= int(probability * (1 << 32))).view(values.shape)
    dropped: Tensor = values * is_kept / (1 - probability)
    return dropped
