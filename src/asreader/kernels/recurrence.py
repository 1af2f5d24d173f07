"""gate inputs -> states of many GRUs side by side, which is all of a GRU that must go step by step.

R recurrences of equal shape run together: of every reader the forward one (even number) and the one that reads backwards
(odd number). What does not depend on the state before it, the products with the inputs, comes in ready-made.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def stepwise(
    inputs: Float[Tensor, "R T B gates"],
    weights: Float[Tensor, "R gates H"],
    biases: Float[Tensor, "R H"],
    lengths: Int[Tensor, "R B"],
) -> Float[Tensor, "R T B H"]:
    """The definition, step by step in plain PyTorch: what faster ways are tested against.

    `inputs` holds W x + b of the gates reset, update, new (with both biases of reset and update); `weights` the
    recurrent matrices of the three; `biases` the recurrent bias of new, which the reset gate scales. A state begins as
    zero and is handed on unchanged beyond the end of its sequence: odd recurrences meet that stretch first.
    """
    steps, hidden = inputs.shape[1], weights.shape[2]
    wide = torch.promote_types(inputs.dtype, torch.float32)
    backwards = torch.arange(inputs.shape[0], device=inputs.device) % 2 == 1
    state = inputs.new_zeros(*inputs.shape[::2], hidden, dtype=wide)
    states = []
    for step in range(steps):
        place = torch.where(backwards, steps - 1 - step, step)
        given = inputs[torch.arange(len(place), device=place.device), place].to(wide)
        # Products take the state as it is stored, so that half precision means the same here as in a fast kernel.
        product = torch.bmm(state.to(inputs.dtype).to(wide), weights.to(wide).transpose(1, 2))
        reset, update = (given + product)[..., : 2 * hidden].sigmoid().chunk(2, dim=-1)
        new = (given[..., 2 * hidden :] + reset * (product[..., 2 * hidden :] + biases[:, None].to(wide))).tanh()
        real = (place[:, None] < lengths)[..., None]
        state = torch.where(real, new + update * (state - new), state)
        states.append(state)
    whole = torch.stack(states, dim=1)
    return torch.where(backwards[:, None, None, None], whole.flip(1), whole).to(inputs.dtype)
