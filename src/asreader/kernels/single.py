"""one sequence -> states of a bidirectional GRU, on a CPU and without a backward pass: little but the products.

At such sizes an operation's overhead is as long as its arithmetic. So everything that can be made once is: the weights
in order, and a room in which all steps take place, cut into its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

STEPS = 96
"""Steps that a room has. A sequence of more words takes several turns, and looks for words that come again."""


class Room:
    """Where the steps of one sequence take place: to cut a slice takes as long as to compute with it."""

    def __init__(self, like: Float[Tensor, "D H gates"]) -> None:
        hidden, gates = like.shape[1:]
        with torch.inference_mode():  # nobody counts the changes of such tensors, which takes time too
            self.products = like.new_empty(STEPS, 2, 1, gates)
            self.from_vectors = like.new_empty(STEPS, 2, 1, hidden)
            self.states = like.new_empty(STEPS + 1, 2, 1, hidden)
            self.new = like.new_empty(2, 1, hidden)
            self.by_direction = self.products[:, :, 0].transpose(0, 1)
            self.to_new = self.products[..., 2 * hidden :]
            parts = (self.products, self.products[..., : 2 * hidden], *self.products.split(hidden, dim=-1))
            apart = (*parts, self.from_vectors, self.states[:-1], self.states[1:])
            self.steps = [*zip(*(part.unbind() for part in apart), strict=True)]


@dataclass(frozen=True)
class Ordered:
    """A GRU's weights as a single sequence wants them, for products from the left, both directions side by side."""

    inputs: Float[Tensor, "D E gates"]
    biases: Float[Tensor, "D 1 gates"]
    recurrent: Float[Tensor, "D H gates"]
    from_state: Float[Tensor, "D 1 H"]  # the bias of the state's share of the new state
    first: Float[Tensor, "D 1 gates"]  # the product of the state before the first word, which is always the same
    rooms: list[Room] = field(default_factory=list)  # in which nobody is at work now

    @contextmanager
    def room(self) -> Iterator[Room]:
        """A room for one who reads; as many are made as ever read at the same time."""
        try:
            room = self.rooms.pop()
        except IndexError:
            room = Room(self.recurrent)
        yield room
        self.rooms.append(room)


def ordered(gru: nn.GRU) -> Ordered:
    """A GRU's weights put in order, for a recurrence over u = (h + 1) / 2 (see `gru.py`)."""
    weights, recurrent, bias, own = (torch.stack(pair) for pair in zip(*gru.all_weights, strict=True))
    factors = weights.new_tensor([1.0, 1.0, 2.0]).repeat_interleave(gru.hidden_size)
    offsets = (own - recurrent.sum(dim=2)) * factors
    biases, from_state = bias * factors + offsets, offsets[:, 2 * gru.hidden_size :]
    turned = (recurrent.transpose(1, 2) * (2 * factors)).contiguous()
    inputs = (weights * factors[:, None]).transpose(1, 2)
    return Ordered(inputs, biases[:, None], turned, from_state[:, None], turned.sum(dim=1, keepdim=True) / 2)


def whole(
    weights: Ordered, table: nn.Embedding, rows: Int[Tensor, " T"]
) -> tuple[Float[Tensor, "1 T states"], Float[Tensor, "1 states"]]:
    """The states at every word, forward || backward, and the last state of either direction."""
    steps, hidden = len(rows), weights.recurrent.shape[1]
    states = weights.recurrent.new_empty(steps, 2 * hidden)
    with weights.room() as room, torch.inference_mode():
        for start, stop in _turns(weights, table, rows, room):
            forth, back = room.states[1 : stop - start + 1, :, 0].unbind(1)
            states[start:stop, :hidden] = forth
            states[steps - stop : steps - start, hidden:] = back.flip(0)
    states.mul_(2).sub_(1)
    return states[None], torch.cat([states[-1, :hidden], states[0, hidden:]])[None]


def last(weights: Ordered, table: nn.Embedding, rows: Int[Tensor, " T"]) -> Float[Tensor, "1 states"]:
    """The last state of either direction alone."""
    with weights.room() as room:
        with torch.inference_mode():
            for start, stop in _turns(weights, table, rows, room):
                final = room.states[stop - start]
        return (final * 2).sub_(1).view(1, -1)  # a tensor of its own, before another reads in this room


def _turns(weights: Ordered, table: nn.Embedding, rows: Int[Tensor, " T"], room: Room) -> Iterator[tuple[int, int]]:
    """Reads as many words as the room has steps, and says which, until there are none left. What each word brings to
    its step is made in the room or, of a long sequence, each distinct word only once."""
    if len(rows) <= STEPS:
        vectors = table(torch.stack([rows, rows.flip(0)])).to(weights.inputs.dtype)
        brought = torch.bmm(vectors, weights.inputs)  # straight into the room's strides took half as long again
        torch.add(brought, weights.biases, out=room.by_direction[:, : len(rows)])
        _step(weights, room, len(rows), begins=True)
        yield 0, len(rows)
        return
    distinct, places = rows.unique(return_inverse=True)
    vectors = table(distinct).to(weights.inputs.dtype).expand(2, -1, -1)
    brought = torch.baddbmm(weights.biases, vectors, weights.inputs).flatten(0, 1)
    index = torch.stack([places, places.flip(0) + len(distinct)], dim=1)
    for start in range(0, len(rows), STEPS):
        now = index[start : start + STEPS]
        torch.index_select(brought, 0, now.flatten(), out=room.products[: len(now)].view(-1, brought.shape[1]))
        _step(weights, room, len(now), begins=start == 0)
        yield start, start + len(now)


def _step(weights: Ordered, room: Room, count: int, begins: bool) -> None:
    """So many steps of both directions: each is one product, which has a thread for each direction, and little else."""
    torch.sub(room.to_new[:count], weights.from_state, out=room.from_vectors[:count])
    if begins:
        room.states[0] = 0.5
    else:
        room.states[0] = room.states[-1]  # whoever comes again has filled the room
    new, recurrent = room.new, weights.recurrent
    for product, gates, reset, update, both, from_vector, before, after in room.steps[:count]:
        if begins:
            product.add_(weights.first)
            begins = False
        else:
            product.baddbmm_(before, recurrent)
        gates.sigmoid_()
        torch.lerp(from_vector, both, reset, out=new).sigmoid_()  # x + r y is r of the way from x to x + y
        torch.lerp(new, before, update, out=after)
