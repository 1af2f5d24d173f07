"""sequences of vectors -> states of a bidirectional GRU, over sequences of different lengths."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from asreader.batches.host import Words
from asreader.kernels import recurrence, single
from asreader.kernels.kept import Kept
from asreader.kernels.precision import full_precision
from asreader.kernels.single import Ordered
from asreader.kernels.words import Places

ROOM = 1 << 20
"""Numbers that a few steps read, made just before these steps: as many as a cache holds until they are read."""
SHARED = 256
"""Units from which on two threads read a single sequence faster than one, each a direction."""
DIRECTIONS = ("", "_reverse")


class BidirectionalGRU(nn.Module):
    """A GRU read in both directions; padding is neither felt nor, where packing pays, computed.

    As cuDNN has it, the reset gate is applied after the recurrent product; the paper's Blocks code applied it before.
    """

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__()
        widths = [inputs] + [2 * hidden] * (layers - 1)
        self.layers = nn.ModuleList(nn.GRU(width, hidden, batch_first=True, bidirectional=True) for width in widths)
        self._kept: Kept[Ordered] = Kept()
        for name, parameter in self.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:  # one orthogonal matrix for each of the three gates
                for gate in parameter.data.chunk(3):
                    nn.init.orthogonal_(gate)

    def forward(
        self, source: Float[Tensor, "B T E"] | nn.Embedding, words: Words
    ) -> tuple[Float[Tensor, "B T states"], Float[Tensor, "B states"]]:
        """The states at every word, forward || backward, and the last state of either direction.

        `source` is the words' vectors or the table that they are looked up in, from which a CPU reads faster.
        """
        on_cpu = words.rows.device.type == "cpu"
        read = both_directions if on_cpu else side_by_side
        first, *upper = (gru for gru in self.layers if isinstance(gru, nn.GRU))
        if on_cpu and isinstance(source, nn.Embedding):
            states, last = of_rows(first, source, words, self._kept)
        else:
            states, last = read(first, source(words.rows) if isinstance(source, nn.Embedding) else source, words)
        for gru in upper:
            states, last = read(gru, states, words)
        return states, last

    def last(self, source: Float[Tensor, "B T E"] | nn.Embedding, words: Words) -> Float[Tensor, "B states"]:
        """The last state of either direction alone, without what only the others need."""
        only = self.layers[0] if len(self.layers) == 1 else None
        if isinstance(only, nn.GRU) and isinstance(source, nn.Embedding) and _is_single(words):
            with full_precision("cpu"):
                return single.last(_kept_in_order(only, self._kept), source, words.rows[0])
        state: Tensor = self(source, words)[1]
        return state

    def train(self, mode: bool = True) -> BidirectionalGRU:
        """As ever, and what was made of the weights is forgotten: whoever changes them unseen says so with this."""
        self._kept = Kept()
        return super().train(mode)


def unserved(network: nn.Module, device: torch.device, dtype: torch.dtype) -> list[int]:
    """Sizes of a network's GRUs for which a GPU has no kernel here."""
    sizes = sorted({module.hidden_size for module in network.modules() if isinstance(module, nn.GRU)})
    return [size for size in sizes if device.type == "cuda" and recurrence.fastest(device, dtype, size) is None]


def packed(
    gru: nn.GRU, vectors: Float[Tensor, "B T E"], words: Words
) -> tuple[Float[Tensor, "B T states"], Float[Tensor, "B states"]]:
    """The plain PyTorch way, which is cuDNN on a GPU; the definition that faster ways are tested against."""
    sequences = pack_padded_sequence(vectors, words.lengths, batch_first=True, enforce_sorted=False)
    states, last = gru(sequences)
    padded, _ = pad_packed_sequence(states, batch_first=True, total_length=words.rows.shape[1])
    return padded, torch.cat([last[0], last[1]], dim=-1)


def side_by_side(
    gru: nn.GRU, vectors: Float[Tensor, "B T E"], words: Words
) -> tuple[Float[Tensor, "B T states"], Float[Tensor, "B states"]]:
    """The same on a GPU, where it has a kernel for the recurrence of this size; `packed` where it has none."""
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else vectors.dtype
    hidden = gru.hidden_size
    if recurrence.fastest(vectors.device, dtype, hidden) is None:
        return packed(gru, vectors, words)
    return _by_recurrence(gru, vectors.to(dtype), words)


def _by_recurrence(
    gru: nn.GRU, vectors: Float[Tensor, "B T E"], words: Words
) -> tuple[Float[Tensor, "B T states"], Float[Tensor, "B states"]]:
    hidden, timed = gru.hidden_size, vectors.transpose(0, 1)
    inputs, weights, biases = [], [], []
    for weight, recurrent, bias, own in (gru.all_weights[0], gru.all_weights[1]):
        both = bias + functional.pad(own[: 2 * hidden], (0, hidden))
        inputs.append(functional.linear(timed, weight.to(vectors.dtype), both.to(vectors.dtype)))
        weights.append(recurrent.to(vectors.dtype))
        biases.append(own[2 * hidden :])
    lengths = words.mask.sum(dim=1, dtype=torch.int32)
    places = Places.one_each((1, *timed.shape[:2]), vectors.device)
    table = torch.stack(inputs, dim=2).flatten(0, 1)[None]
    given = recurrence.Given(table, places, torch.stack(weights), torch.stack(biases), lengths[None])
    forth, back = recurrence.run(given)
    whole = torch.cat([forth, back], dim=-1).transpose(0, 1) * words.mask[..., None]
    return whole, torch.cat([forth[-1], back[0]], dim=-1)


def both_directions(
    gru: nn.GRU, vectors: Float[Tensor, "B T E"], words: Words
) -> tuple[Float[Tensor, "B T states"], Float[Tensor, "B states"]]:
    """The same on a CPU, faster: both directions step together, and every product that does not depend on the state
    before it (inputs, gradients of weights) is one large product outside the recurrence."""
    places = torch.arange(words.rows.numel()).view(words.rows.shape)
    return _placed(gru, vectors.flatten(0, 1), places, words)


def of_rows(
    gru: nn.GRU, table: nn.Embedding, words: Words, kept: Kept[Ordered] | None = None
) -> tuple[Float[Tensor, "B T states"], Float[Tensor, "B states"]]:
    """`both_directions` of the words' vectors in a table, each distinct word multiplied with the weights once: in a
    batch of documents six words of seven have stood there before. Single sequences find their weights where they were
    `kept`: to put them in order takes longer than some questions do."""
    if _is_single(words):
        with full_precision("cpu"):
            return single.whole(_kept_in_order(gru, kept or Kept()), table, words.rows[0])
    distinct, places = words.rows.unique(return_inverse=True)
    return _placed(gru, table(distinct), places, words)


def _is_single(words: Words) -> bool:
    """Whether `single.py` can read them."""
    return words.rows.device.type == "cpu" and len(words.rows) == 1 and not torch.is_grad_enabled()


def _kept_in_order(gru: nn.GRU, kept: Kept[Ordered]) -> Ordered:
    return kept.of([*chain(*gru.all_weights)], lambda: single.ordered(gru))


def _placed(
    gru: nn.GRU, vectors: Float[Tensor, "U E"], places: Int[Tensor, "B T"], words: Words
) -> tuple[Float[Tensor, "B T states"], Float[Tensor, "B states"]]:
    """Read the sequences in which vector number `places[b, t]` stands at word t."""
    with torch.autocast("cpu", enabled=False):  # the small products of a step gain nothing from bfloat16
        inputs, weights = _inputs(gru, vectors.to(gru.all_weights[0][0].dtype)), _weights(gru)
    numbers, mask = 2 * places.T, words.mask.T
    index = torch.stack([numbers, numbers.flip(0) + 1], dim=1)
    both = torch.stack([mask, mask.flip(0)], dim=1)
    if not torch.is_grad_enabled():
        return _answering(inputs, index, weights, both, words.lengths)
    to_product, to_new = (functional.embedding(index, part) for part in inputs)
    states, _ = _Recurrence.apply(to_product, to_new, weights, both)  # type: ignore[no-untyped-call]
    last = torch.cat([states[-1, 0], states[-1, 1]], dim=-1) * 2 - 1
    whole = torch.cat([states[:, 0], states[:, 1].flip(0)], dim=-1)
    real = mask[..., None].to(whole.dtype)
    return (whole * (2 * real) - real).transpose(0, 1), last


# tanh(x) = 2 sigmoid(2x) - 1, and a sigmoid takes a sixth of the time that a tanh does. So the recurrence runs over
# u = (h + 1) / 2, for which all three gates are sigmoids and a step is as short as before. `_inputs` and `_weights`
# hold the factors this brings in: W h = 2 W u - W 1, and twice that for the argument of what was a tanh.


def _inputs(
    gru: nn.GRU, vectors: Float[Tensor, "U E"]
) -> tuple[Float[Tensor, "numbers gates"], Float[Tensor, "numbers H"]]:
    """What each vector brings to a step, row 2u + d for direction d: to the recurrent product (of whose third part, the
    state's share of the new state, it is only the bias), and to the new state directly."""
    hidden, product_weights, product_biases, new_weights, new_biases = gru.hidden_size, [], [], [], []
    for direction in DIRECTIONS:
        weight, bias = (getattr(gru, f"{name}_ih_l0{direction}") for name in ("weight", "bias"))
        offset = getattr(gru, f"bias_hh_l0{direction}") - getattr(gru, f"weight_hh_l0{direction}").sum(dim=1)
        product_weights += [weight[: 2 * hidden], torch.zeros_like(weight[2 * hidden :])]
        product_biases += [bias[: 2 * hidden] + offset[: 2 * hidden], 2 * offset[2 * hidden :]]
        new_weights.append(2 * weight[2 * hidden :])
        new_biases.append(2 * bias[2 * hidden :])
    to_product = functional.linear(vectors, torch.cat(product_weights), torch.cat(product_biases))
    to_new = functional.linear(vectors, torch.cat(new_weights), torch.cat(new_biases))
    return to_product.view(-1, 3 * hidden), to_new.view(-1, hidden)


def _weights(gru: nn.GRU) -> Float[Tensor, "D H gates"]:
    """The recurrent weights, for products with a state from the left."""
    matrices = torch.stack([getattr(gru, f"weight_hh_l0{direction}") for direction in DIRECTIONS])
    factors = matrices.new_tensor([2.0, 2.0, 4.0]).repeat_interleave(gru.hidden_size)
    return matrices.transpose(1, 2) * factors


def _answering(
    inputs: tuple[Float[Tensor, "numbers gates"], Float[Tensor, "numbers H"]],
    index: Int[Tensor, "T D B"],
    weights: Float[Tensor, "D H gates"],
    mask: Bool[Tensor, "T D B"],
    lengths: Int[Tensor, " B"],
) -> tuple[Float[Tensor, "B T states"], Float[Tensor, "B states"]]:
    """All steps without a backward pass, a few at a time, so that what passes between them stays in the cache."""
    (steps, directions, batch), hidden = index.shape, weights.shape[1]
    few = min(steps, _few(directions * batch * hidden))
    weights = weights.contiguous()
    rooms = [part.new_empty(few, directions, batch, part.shape[1]) for part in inputs]
    states = weights.new_full((few + 1, directions, batch, hidden), 0.5)
    proposed = weights.new_empty(1, directions, batch, hidden)
    whole = weights.new_empty(batch, steps, directions * hidden)
    for start in range(0, steps, few):
        stop = min(start + few, steps)
        now = stop - start
        products, from_vectors = (room[:now] for room in rooms)
        for part, room in zip(inputs, (products, from_vectors), strict=True):
            torch.index_select(part, 0, index[start:stop].flatten(), out=room.view(-1, part.shape[1]))
        _step(states[: now + 1], products, from_vectors, proposed, weights, mask[start:stop])
        states[0] = states[now]
        forth, back = states[1 : now + 1].mul_(2).sub_(1).unbind(1)
        whole[:, start:stop, :hidden] = forth.transpose(0, 1)
        whole[:, steps - stop : steps - start, hidden:] = back.flip(0).transpose(0, 1)
    for row, length in enumerate(lengths.tolist()):
        whole[row, length:] = 0
    return whole, states[now].transpose(0, 1).flatten(1)


def _few(numbers: int) -> int:
    """How many steps whose states are so many numbers are worked on at a time."""
    return max(8, ROOM // (4 * numbers))


def _step(
    states: Float[Tensor, "next D B H"],
    products: Float[Tensor, "T D B gates"],
    from_vectors: Float[Tensor, "T D B H"],
    proposed: Float[Tensor, "kept D B H"],
    weights: Float[Tensor, "D H gates"],
    mask: Bool[Tensor, "T D B"],
) -> None:
    """T steps of two GRUs, D = 2, side by side. `products` comes with the inputs and is left with the reset and update
    gates and the state's share of the new state. Where the mask is False a state is handed on unchanged."""
    steps, hidden = len(products), states.shape[-1]
    # Views are made once for all steps: a step is so small that cutting slices would cost as much as computing.
    product, gates, from_vector = products.unbind(), products[..., : 2 * hidden].unbind(), from_vectors.unbind()
    reset, update, from_state = (part.unbind() for part in products.split(hidden, dim=-1))
    state, new = states.unbind(), proposed.unbind() * (steps // len(proposed))
    whole, real = mask.flatten(1).all(dim=1).tolist(), mask[..., None].unbind()
    for t in range(steps):
        product[t].baddbmm_(state[t], weights)
        gates[t].sigmoid_()
        torch.addcmul(from_vector[t], reset[t], from_state[t], out=new[t]).sigmoid_()
        torch.lerp(new[t], state[t], update[t], out=state[t + 1])
        if not whole[t]:
            torch.where(real[t], state[t + 1], state[t], out=state[t + 1])


class _Recurrence(torch.autograd.Function):
    """`_step` over whole sequences, with a backward pass. `products` is used up: what the steps compute goes there."""

    @staticmethod
    def forward(
        context: Any,
        products: Float[Tensor, "T D B gates"],
        from_vectors: Float[Tensor, "T D B H"],
        weights: Float[Tensor, "D H gates"],
        mask: Bool[Tensor, "T D B"],
    ) -> tuple[Float[Tensor, "T D B H"], Float[Tensor, "T D B gates"]]:
        steps, directions, batch, hidden = from_vectors.shape
        states = products.new_full((steps + 1, directions, batch, hidden), 0.5)
        proposed = torch.empty_like(from_vectors)
        _step(states, products, from_vectors, proposed, weights.contiguous(), mask)
        context.mark_dirty(products)
        context.set_materialize_grads(False)
        context.save_for_backward(states, products, proposed, weights, mask)
        return states[1:], products

    @staticmethod
    def backward(
        context: Any, gradient: Float[Tensor, "T D B H"] | None, _: None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        if gradient is None:  # nothing that was read is asked about
            return None, None, None, None
        states, products, proposed, weights, mask = context.saved_tensors
        steps, directions, batch, hidden = proposed.shape
        back = weights.transpose(1, 2).contiguous()
        totals, to_products, to_vectors = gradient.clone(), torch.empty_like(products), torch.empty_like(proposed)
        total, out = totals.unbind(), to_products.unbind()
        gates = to_products.unflatten(-1, (3, hidden)).unbind()
        few = _few(directions * batch * hidden)
        for stop in range(steps, 0, -few):
            part = slice(max(0, stop - few), stop)
            local, to_new, carried = _local_gradients(states[part], products[part], proposed[part], mask[part])
            for t, to_gates, carry in reversed(list(zip(range(part.start, stop), local, carried, strict=True))):
                torch.mul(to_gates, total[t].unsqueeze(2), out=gates[t])
                if t:
                    total[t - 1].addcmul_(total[t], carry).baddbmm_(out[t], back)
            torch.mul(totals[part], to_new, out=to_vectors[part])
        flat = to_products.transpose(0, 1).reshape(directions, steps * batch, 3 * hidden)
        earlier = states[:-1].transpose(0, 1).reshape(directions, steps * batch, hidden)
        return to_products, to_vectors, torch.bmm(earlier.transpose(1, 2), flat), None


def _local_gradients(
    states: Float[Tensor, "T D B H"],
    products: Float[Tensor, "T D B gates"],
    proposed: Float[Tensor, "T D B H"],
    mask: Bool[Tensor, "T D B"],
) -> tuple[tuple[Tensor, ...], Float[Tensor, "T D B H"], tuple[Tensor, ...]]:
    """What a gradient at a step's state is multiplied with on its way to the recurrent product (step by step), to the
    vectors' share of the new state (all steps) and to the state before (step by step)."""
    reset, update, from_state = products.chunk(3, dim=-1)
    kept = mask[..., None].to(states.dtype)
    to_new = (1 - update) * proposed * (1 - proposed) * kept
    to_update = (states - proposed) * update * (1 - update) * kept
    to_reset = to_new * from_state * reset * (1 - reset)
    to_product = torch.stack([to_reset, to_update, to_new * reset], dim=-2)
    return to_product.unbind(), to_new, torch.lerp(torch.ones_like(kept), update, kept).unbind()
