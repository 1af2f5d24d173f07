"""gate inputs of words -> states of many GRUs side by side, which is all of a GRU that must go step by step.

R recurrences of equal shape run together: of every reader the forward one (even number) and the one that reads
backwards (odd number). What depends on a word alone, the products of its vector with the input weights, comes in as a
table with a row for each distinct word of a batch; `Places` say which word stands where.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from asreader.kernels.words import Places

FEW = 8
"""Recurrences up to which the gates' products with the states are one: there two would leave much of a GPU unused.

With more, two fit better: of 32 they take 616 microseconds, one for all gates 757; of two 142 and 60 (H200, 480 steps).
"""


@dataclass(frozen=True)
class Given:
    """What recurrences of equal shape work on. Gates are 3H numbers: reset, update, new."""

    table: Float[Tensor, "N W D gates"]  # both directions of a word side by side
    places: Places
    weights: Float[Tensor, "R gates H"]
    biases: Float[Tensor, "R H"]  # of the recurrent product of new; all others are in the table
    lengths: Int[Tensor, "N B"]


def biases(
    inputs: Float[Tensor, "R gates"], recurrent: Float[Tensor, "R gates"]
) -> tuple[Float[Tensor, "R gates"], Float[Tensor, "R H"]]:
    """What is added to inputs and, scaled by the reset gate, to new's product, from a GRU's own two biases."""
    hidden = inputs.shape[1] // 3
    return inputs + functional.pad(recurrent[:, : 2 * hidden], (0, hidden)), recurrent[:, 2 * hidden :]


def run(given: Given) -> Float[Tensor, "R T B H"]:
    """What `stepwise` defines, by the fastest way that this device offers for this type and size."""
    way = fastest(given.table.device, given.table.dtype, given.weights.shape[2])
    if way is None:
        lengths = given.lengths.repeat_interleave(2, dim=0)
        return stepwise(looked_up(given.table, given.places.index), given.weights, given.biases, lengths)
    states: Tensor = _Recurrence.apply(  # type: ignore[no-untyped-call]
        way, given.places, given.lengths, given.table, given.weights, given.biases
    )
    return states


@cache
def fastest(device: torch.device, dtype: torch.dtype, hidden: int) -> ModuleType | None:
    """The kernels that serve, or None: then the recurrence goes step by step."""
    if device.type != "cuda":
        return None
    try:
        from asreader.kernels import cluster, persistent
    except ImportError:  # Triton comes with PyTorch for GPUs, on most platforms
        return None
    return next((way for way in (cluster, persistent) if way.serves(device, dtype, hidden)), None)


def looked_up(table: Float[Tensor, "N W D gates"], index: Int[Tensor, "N T B"]) -> Float[Tensor, "R T B gates"]:
    """The inputs at every place; two recurrences in a row read the same words."""
    reader = torch.arange(len(table), device=table.device)[:, None, None]
    return table[reader, index.long()].movedim(3, 1).flatten(0, 1)


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


@dataclass(frozen=True)
class Passed:
    """What recurrences leave behind: the states, with a row of zeros before and behind, and what `way` keeps."""

    way: ModuleType
    weights: Float[Tensor, "R gates H"]
    lengths: Int[Tensor, "N B"]
    padded: Float[Tensor, "R T_and_two B H"]
    kept: Tensor

    @property
    def states(self) -> Float[Tensor, "R T B H"]:
        """At every place."""
        return self.padded[:, 1:-1]


def forward(way: ModuleType, own: Given, keep: bool) -> Passed:
    """By a way's own kernel. Weights come in the precision in which they are kept."""
    table, weights = own.table.contiguous(), own.weights.to(own.table.dtype).contiguous()
    lengths = own.lengths.int().contiguous()
    biases = own.biases.float().contiguous()
    return Passed(
        way, weights, lengths, *way.forward(table, own.places.index.contiguous(), weights, biases, lengths, keep)
    )


def backward(
    passed: Passed, gradient: Tensor, scales: Float[Tensor, "some B T"] | None = None
) -> tuple[Float[Tensor, "R T B four_H"], Float[Tensor, "R four_H"] | None]:
    """Gradients at the recurrent products of new, reset, update and at the input of new; perhaps their sums.

    The states' own gradients are [R, T, B, H], or [R, B, H] to be scaled for each step, for both directions of a reader
    alike (N) or not (R).
    """
    found: tuple[Tensor, Tensor | None] = passed.way.backward(
        gradient.contiguous(), scales, passed.weights, passed.lengths, passed.padded, passed.kept
    )
    return found


def to_inputs(out: Float[Tensor, "R T B four_H"]) -> Float[Tensor, "R places gates"]:
    """Of what `backward` gives, the part that belongs to the inputs."""
    return out.flatten(1, 2)[..., out.shape[-1] // 4 :]


def to_biases(out: Float[Tensor, "R T B four_H"], sums: Float[Tensor, "R four_H"] | None) -> Float[Tensor, "R 4 H"]:
    """Of what `backward` gives, the sums over all places: of new's product, reset, update and new."""
    found = out.sum(dim=(1, 2), dtype=torch.float32) if sums is None else sums
    return found.view(len(out), 4, -1)


def to_weights(
    out: Float[Tensor, "R T B four_H"], passed: Passed, into: Float[Tensor, "R gates H"] | None = None
) -> Float[Tensor, "R gates H"]:
    """Gradients of the recurrent weights: of each gate with the state it met, one row before, or one behind."""
    hidden, states = out.shape[-1] // 4, passed.padded
    gates = out.flatten(1, 2)[..., : 3 * hidden].transpose(1, 2)  # new's comes first
    found = out.new_empty(len(out), 3 * hidden, hidden, dtype=torch.float32) if into is None else into
    whole = torch.empty_like(found) if len(out) <= FEW else None
    for backwards in (0, 1):
        met = states[backwards::2, 2 * backwards : states.shape[1] - 2 + 2 * backwards].flatten(1, 2)
        if whole is not None:
            product(gates[backwards::2], met, whole[backwards::2])
        else:
            product(gates[backwards::2, hidden:], met, found[backwards::2, : 2 * hidden])
            product(gates[backwards::2, :hidden], met, found[backwards::2, 2 * hidden :])
    return found if whole is None else torch.cat([whole[:, hidden:], whole[:, :hidden]], dim=1, out=found)


class _Recurrence(torch.autograd.Function):
    """A way's two kernels, and the large products and sums that turn their result into gradients."""

    @staticmethod
    def forward(
        context: Any, way: ModuleType, places: Places, lengths: Tensor, table: Tensor, weights: Tensor, biases: Tensor
    ) -> Tensor:
        keep = any(context.needs_input_grad)
        passed = forward(way, Given(table, places, weights, biases, lengths), keep)
        context.sums = places.sums(table) if keep else None
        context.way, context.dtype = way, weights.dtype
        context.save_for_backward(passed.weights, passed.lengths, passed.padded, passed.kept)
        return passed.states

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        passed = Passed(context.way, *context.saved_tensors)
        out, sums = backward(passed, gradient)
        weights = to_weights(out, passed).to(context.dtype)
        return None, None, None, context.sums(to_inputs(out))(), weights, to_biases(out, sums)[:, 0]


def product(left: Float[Tensor, "R I K"], right: Float[Tensor, "R K J"], out: Float[Tensor, "R I J"]) -> None:
    """A batched product in the precision of `out`, with sums in float32."""
    if left.dtype == out.dtype:
        torch.bmm(left, right, out=out)
    elif left.device.type == "cuda":
        torch.bmm(left, right, out_dtype=out.dtype, out=out)
    else:
        torch.bmm(left.to(out.dtype), right.to(out.dtype), out=out)
