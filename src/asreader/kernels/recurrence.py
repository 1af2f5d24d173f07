"""gate inputs of words -> states of many GRUs side by side, which is all of a GRU that must go step by step.

R recurrences of equal shape run together: of every reader the forward one (even number) and the one that reads
backwards (odd number). What depends on a word alone, the products of its vector with the input weights, comes in as a
table with a row for each distinct word of a batch; `Places` say which word stands where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import ModuleType
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader.kernels.words import Places

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Given:
    """What recurrences of equal shape work on. Gates are 3H numbers: reset, update, new."""

    table: Float[Tensor, "N W D gates"]  # both directions of a word side by side
    places: Places
    weights: Float[Tensor, "R gates H"]
    biases: Float[Tensor, "R H"]
    lengths: Int[Tensor, "N B"]


def run(*given: Given) -> tuple[Float[Tensor, "R _ B H"], ...]:
    """What `stepwise` defines, by the fastest way that this device offers for this type and size.

    What is given first is worked on first; a GPU does the others beside it, on what it leaves unused.
    """
    table, hidden = given[0].table, given[0].weights.shape[2]
    way = fastest(table.device, table.dtype, hidden)
    if way is None:
        return tuple(
            stepwise(
                looked_up(own.table, own.places.index), own.weights, own.biases, own.lengths.repeat_interleave(2, 0)
            )
            for own in given
        )
    leaves = [part for own in given for part in (own.table, own.weights, own.biases.float())]
    states: tuple[Tensor, ...] = _Recurrences.apply(  # type: ignore[no-untyped-call]
        way, [own.places for own in given], [own.lengths.int().contiguous() for own in given], *leaves
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


class _Recurrences(torch.autograd.Function):
    """A way's two kernels, and the large products and sums that turn their result into gradients.

    `way.backward` returns gradients at the recurrent products of new, reset and update and at the input of new, and
    the sums of the first over places. Weights come in the precision in which they are kept, and so do their gradients
    go.
    """

    @staticmethod
    def forward(
        context: Any, way: ModuleType, places: list[Places], lengths: list[Tensor], *leaves: Tensor
    ) -> tuple[Tensor, ...]:
        learning = any(context.needs_input_grad)
        parts = [tensor.contiguous() for tensor in leaves]
        tables, biases = parts[::3], parts[2::3]
        weights = [own.to(tables[0].dtype) for own in parts[1::3]]
        work: list[Callable[[], Any]] = [
            partial(way.forward, table, where.index.contiguous(), *rest, learning)
            for table, where, *rest in zip(tables, places, weights, biases, lengths, strict=True)
        ]
        if learning:  # what depends on the words alone is made where the long recurrence leaves the device unused
            work += [partial(where.sums, table) for where, table in zip(places, tables, strict=True)]
        made = _beside_each_other(work, tables[0].device)
        found, context.sums = made[: len(places)], made[len(places) :]
        context.way, context.count, context.dtype = way, len(places), parts[1].dtype
        context.save_for_backward(*weights, *lengths, *(part for pair in zip(*found, strict=True) for part in pair))
        return tuple(states[:, 1:-1] for states, _ in found)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, count = context.saved_tensors, context.count
        weights, lengths, states, kept = (saved[first : first + count] for first in range(0, 4 * count, count))
        found = _beside_each_other(
            [
                partial(context.way.backward, gradient.contiguous(), *rest)
                for gradient, *rest in zip(gradients, weights, lengths, states, kept, strict=True)
            ],
            weights[0].device,
        )
        hidden = states[0].shape[-1]

        def to_weights() -> list[Tensor]:
            return [
                _to_weights(out, met, hidden).to(context.dtype) for (out, _), met in zip(found, states, strict=True)
            ]

        def to_tables() -> list[Tensor]:
            return [sums(out[..., hidden:].flatten(1, 2)) for (out, _), sums in zip(found, context.sums, strict=True)]

        # Products keep the tensor cores busy, sums the memory.
        tables, products = _beside_each_other([to_tables, to_weights], weights[0].device)
        each = zip(tables, products, (to_biases for _, to_biases in found), strict=True)
        return None, None, None, *(leaf for own in each for leaf in own)


def _to_weights(
    out: Float[Tensor, "R T B four_H"], states: Float[Tensor, "R T_and_two B H"], hidden: int
) -> Float[Tensor, "R gates H"]:
    """Gradients of the recurrent weights: of each gate with the state it met, one row before, or one behind."""
    new, resets_and_updates = out.flatten(1, 2)[..., : 3 * hidden].transpose(1, 2).split([hidden, 2 * hidden], dim=1)
    found = out.new_empty(len(out), 3 * hidden, hidden, dtype=torch.float32)
    for backwards in (0, 1):
        met = states[backwards::2, 2 * backwards : states.shape[1] - 2 + 2 * backwards].flatten(1, 2)
        product(resets_and_updates[backwards::2], met, found[backwards::2, : 2 * hidden])
        product(new[backwards::2], met, found[backwards::2, 2 * hidden :])
    return found


def product(
    left: Float[Tensor, "R I K"], right: Float[Tensor, "R K J"], out: Float[Tensor, "R I J"] | None = None
) -> Float[Tensor, "R I J"]:
    """A batched product in float32, whatever precision its factors have."""
    if left.dtype == torch.float32:
        return torch.bmm(left, right, out=out)
    if left.device.type == "cuda":
        return torch.bmm(left, right, out_dtype=torch.float32, out=out)
    return torch.bmm(left.float(), right.float(), out=out)


def _beside_each_other(work: Sequence[Callable[[], _Found]], device: torch.device) -> list[_Found]:
    """Launch the first on this stream and the others on another, which waits for what came before and is waited for."""
    if len(work) == 1 or device.type != "cuda":
        return [task() for task in work]
    here, aside = torch.cuda.current_stream(device), _other_stream(device)
    aside.wait_stream(here)
    found = [work[0]()]
    with torch.cuda.stream(aside):
        found += [task() for task in work[1:]]
    here.wait_stream(aside)
    return found


@cache
def _other_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)
