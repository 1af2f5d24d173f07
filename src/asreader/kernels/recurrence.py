"""gate inputs -> states of many GRUs side by side, which is all of a GRU that must go step by step.

R recurrences of equal shape run together: of every reader the forward one (even number) and the one that reads
backwards (odd number). What does not depend on the state before it, the products with the inputs, comes in ready-made.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


def run(
    inputs: Float[Tensor, "R T B gates"],
    weights: Float[Tensor, "R gates H"],
    biases: Float[Tensor, "R H"],
    lengths: Int[Tensor, "R B"],
) -> Float[Tensor, "R T B H"]:
    """What `stepwise` defines, by the fastest way that this device offers for this type and size."""
    way = fastest(inputs.device, inputs.dtype, weights.shape[2])
    if way is None:
        return stepwise(inputs, weights, biases, lengths)
    states: Tensor = _Recurrence.apply(inputs, weights.to(inputs.dtype), biases.float(), lengths.int(), way)  # type: ignore[no-untyped-call]
    return states


@cache
def fastest(device: torch.device, dtype: torch.dtype, hidden: int) -> ModuleType | None:
    """The kernels that serve, or None: then the recurrence goes step by step."""
    if device.type != "cuda":
        return None
    from asreader.kernels import cluster

    if cluster.serves(device, dtype, hidden):
        return cluster
    try:
        from asreader.kernels import persistent
    except ImportError:  # Triton comes with PyTorch for GPUs, on most platforms
        return None
    return persistent if persistent.serves(device, dtype, hidden) else None


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


class _Recurrence(torch.autograd.Function):
    """A way's two kernels, and the large products that turn their result into gradients of the weights."""

    @staticmethod
    def forward(
        context: Any, inputs: Tensor, weights: Tensor, biases: Tensor, lengths: Tensor, way: ModuleType
    ) -> Tensor:
        inputs, weights, lengths = inputs.contiguous(), weights.contiguous(), lengths.contiguous()
        states: Tensor
        states, kept = way.forward(inputs, weights, biases.contiguous(), lengths, any(context.needs_input_grad))
        context.save_for_backward(weights, lengths, states, kept)
        context.way = way
        return states[:, 1:-1]

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        weights, lengths, states, kept = context.saved_tensors
        hidden = gradient.shape[-1]
        out = context.way.backward(gradient.contiguous(), weights, lengths, states, kept)
        at_products = out[..., : 3 * hidden].flatten(1, 2).transpose(1, 2)
        to_weights = torch.empty_like(weights)
        for backwards in (0, 1):  # the state that each step met stands one row before, or one behind
            met = states[backwards::2, 2 * backwards : states.shape[1] - 2 + 2 * backwards].flatten(1, 2)
            new, reset, update = torch.bmm(at_products[backwards::2], met).split(hidden, dim=1)
            torch.cat([reset, update, new], dim=1, out=to_weights[backwards::2])
        to_biases = out[..., :hidden].sum(dim=(1, 2), dtype=torch.float32)
        return out[..., hidden:], to_weights, to_biases, None, None
