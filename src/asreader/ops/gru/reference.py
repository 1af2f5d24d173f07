"""The definition of the recurrence: one step after the other in plain PyTorch, differentiated by autograd."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader.ops import Workload


def supports(workload: Workload) -> str | None:
    """Everything."""
    return None


def run_stepwise(
    table: Float[Tensor, "U D gates"],
    index: Int[Tensor, "T B"],
    weights: Float[Tensor, "D gates H"],
    biases: Float[Tensor, "D H"],
    lengths: Int[Tensor, " B"],
) -> Float[Tensor, "D T B H"]:
    """`ops.gru.run_gru` for one reader; vmap needs no rule."""
    inputs = table[index.long()].movedim(2, 0)
    return step_through(inputs, weights, biases, lengths.expand(2, -1))


def step_through(
    inputs: Float[Tensor, "R T B gates"],
    weights: Float[Tensor, "R gates H"],
    biases: Float[Tensor, "R H"],
    lengths: Int[Tensor, "R B"],
) -> Float[Tensor, "R T B H"]:
    """The equations of `ops/gru`; states are computed in float32 or wider and stored as the inputs are."""
    steps, hidden = inputs.shape[1], weights.shape[2]
    wide = torch.promote_types(inputs.dtype, torch.float32)
    backwards = torch.arange(inputs.shape[0], device=inputs.device) % 2 == 1
    state = inputs.new_zeros(*inputs.shape[::2], hidden, dtype=wide)
    states = []
    for step in range(steps):
        time = torch.where(backwards, steps - 1 - step, step)
        gates = inputs[torch.arange(len(time), device=time.device), time].to(wide)
        # Products take the state as it is stored, so that half precision means the same here as in a fast kernel.
        product = torch.bmm(state.to(inputs.dtype).to(wide), weights.to(wide).transpose(1, 2))
        reset, update = (gates + product)[..., : 2 * hidden].sigmoid().chunk(2, dim=-1)
        new = (gates[..., 2 * hidden :] + reset * (product[..., 2 * hidden :] + biases[:, None].to(wide))).tanh()
        inside = (time[:, None] < lengths)[..., None]
        state = torch.where(inside, new + update * (state - new), state)
        states.append(state)
    whole = torch.stack(states, dim=1)
    return torch.where(backwards[:, None, None, None], whole.flip(1), whole).to(inputs.dtype)


def look_up_inputs(table: Float[Tensor, "N U D gates"], index: Int[Tensor, "N T B"]) -> Float[Tensor, "R T B gates"]:
    """The gate inputs at every position; two recurrences in a row read the same words."""
    reader = torch.arange(len(table), device=table.device)[:, None, None]
    return table[reader, index.long()].movedim(3, 1).flatten(0, 1)
