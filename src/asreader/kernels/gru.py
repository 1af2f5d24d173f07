"""sequences of vectors -> states of a bidirectional GRU, over sequences of different lengths."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from asreader.data.batching import Words


class BidirectionalGRU(nn.Module):
    """A GRU read in both directions; padding is neither felt nor, where packing pays, computed.

    As cuDNN has it, the reset gate is applied after the recurrent product; the paper's Blocks code applied it before.
    """

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__()
        widths = [inputs] + [2 * hidden] * (layers - 1)
        self.layers = nn.ModuleList(nn.GRU(width, hidden, batch_first=True, bidirectional=True) for width in widths)
        for name, parameter in self.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:  # one orthogonal matrix for each of the three gates
                for gate in parameter.data.chunk(3):
                    nn.init.orthogonal_(gate)

    def forward(
        self, vectors: Float[Tensor, "B T E"], words: Words
    ) -> tuple[Float[Tensor, "B T states"], Float[Tensor, "B states"]]:
        """The states at every word, forward || backward, and the last state of either direction."""
        read = both_directions if vectors.device.type == "cpu" else packed
        states, last = vectors, vectors[:, 0]
        for gru in self.layers:
            assert isinstance(gru, nn.GRU)
            states, last = read(gru, states, words)
        return states, last


def packed(
    gru: nn.GRU, vectors: Float[Tensor, "B T E"], words: Words
) -> tuple[Float[Tensor, "B T states"], Float[Tensor, "B states"]]:
    """The plain PyTorch way, which is cuDNN on a GPU; the definition that faster ways are tested against."""
    sequences = pack_padded_sequence(vectors, words.lengths, batch_first=True, enforce_sorted=False)
    states, last = gru(sequences)
    padded, _ = pad_packed_sequence(states, batch_first=True, total_length=words.rows.shape[1])
    return padded, torch.cat([last[0], last[1]], dim=-1)


def both_directions(
    gru: nn.GRU, vectors: Float[Tensor, "B T E"], words: Words
) -> tuple[Float[Tensor, "B T states"], Float[Tensor, "B states"]]:
    """The same on a CPU, several times faster: both directions step together, and every product that does not
    depend on the state before it (inputs, gradients of weights) is one large product outside the recurrence."""
    directions = ("", "_reverse")
    inputs = [
        torch.addmm(getattr(gru, f"bias_ih_l0{d}"), vectors.flatten(0, 1), getattr(gru, f"weight_ih_l0{d}").T)
        .view(*vectors.shape[:2], -1)
        .transpose(0, 1)
        for d in directions
    ]
    mask = words.mask.T
    states: Tensor = _Recurrence.apply(  # type: ignore[no-untyped-call]
        torch.stack([inputs[0], inputs[1].flip(0)], dim=1),
        torch.stack([getattr(gru, f"weight_hh_l0{d}") for d in directions]),
        torch.stack([getattr(gru, f"bias_hh_l0{d}") for d in directions]),
        torch.stack([mask, mask.flip(0)], dim=1),
    )
    last = torch.cat([states[-1, 0], states[-1, 1]], dim=-1)
    whole = torch.cat([states[:, 0], states[:, 1].flip(0)], dim=-1) * mask[..., None]
    return whole.transpose(0, 1), last


class _Recurrence(torch.autograd.Function):
    """T steps of two GRUs, D = 2, side by side. Where the mask is False a state is handed on unchanged."""

    @staticmethod
    def forward(
        context: Any,
        inputs: Float[Tensor, "T D B gates"],
        weights: Float[Tensor, "D gates H"],
        biases: Float[Tensor, "D gates"],
        mask: Bool[Tensor, "T D B"],
    ) -> Float[Tensor, "T D B H"]:
        steps, directions, batch, gates = inputs.shape
        hidden = gates // 3
        states = inputs.new_zeros(steps + 1, directions, batch, hidden)
        # Only a backward pass needs what every step computed; without one, all steps share the same room.
        kept = steps if any(context.needs_input_grad) else 1
        products = inputs.new_empty(kept, directions, batch, gates)
        opened = inputs.new_empty(kept, directions, batch, 2 * hidden)
        proposed = inputs.new_empty(kept, directions, batch, hidden)
        transposed, bias = weights.transpose(1, 2).contiguous(), biases[:, None]
        # Views are made once for all steps: a step is so small that cutting slices would cost as much as computing.
        gate_inputs, new_inputs = (part.unbind() for part in inputs.split([2 * hidden, hidden], dim=-1))
        each = steps // kept
        gate_products, new_products = (part.unbind() * each for part in products.split([2 * hidden, hidden], dim=-1))
        resets, updates = (part.unbind() * each for part in opened.split(hidden, dim=-1))
        product, both, new = (room.unbind() * each for room in (products, opened, proposed))
        state = states.unbind()
        whole, real = mask.flatten(1).all(dim=1).tolist(), mask[..., None].unbind()
        for t in range(steps):
            torch.baddbmm(bias, state[t], transposed, out=product[t])
            torch.add(gate_inputs[t], gate_products[t], out=both[t]).sigmoid_()
            torch.addcmul(new_inputs[t], resets[t], new_products[t], out=new[t]).tanh_()
            torch.lerp(new[t], state[t], updates[t], out=state[t + 1])
            if not whole[t]:
                torch.where(real[t], state[t + 1], state[t], out=state[t + 1])
        context.save_for_backward(states, opened, proposed, products, weights, mask)
        return states[1:]

    @staticmethod
    def backward(context: Any, gradient: Float[Tensor, "T D B H"]) -> tuple[Tensor, Tensor, Tensor, None]:
        states, opened, proposed, products, weights, mask = context.saved_tensors
        steps, directions, batch, hidden = proposed.shape
        reset, update = opened.split(hidden, dim=-1)
        # All that does not depend on later steps, in a few large operations.
        kept = mask[..., None].to(gradient.dtype)
        to_new = (1 - update) * (1 - proposed * proposed) * kept
        to_update = (states[:-1] - proposed) * update * (1 - update) * kept
        to_reset = to_new * products[..., 2 * hidden :] * reset * (1 - reset)
        to_product = torch.cat([to_reset, to_update, to_new * reset], dim=-1)
        carried = (1 - kept) + kept * update
        through = torch.empty_like(products)  # gradients at the recurrent product
        totals = gradient.clone()
        total, at_product, out = (
            totals.unbind(),
            to_product.view(steps, directions, batch, 3, hidden).unbind(),
            through.unbind(),
        )
        gates, carry = through.view(steps, directions, batch, 3, hidden).unbind(), carried.unbind()
        for t in reversed(range(steps)):
            torch.mul(at_product[t], total[t].unsqueeze(2), out=gates[t])
            if t:
                torch.baddbmm(torch.addcmul(total[t - 1], total[t], carry[t]), out[t], weights, out=total[t - 1])
        flat = through.transpose(0, 1).reshape(directions, steps * batch, 3 * hidden)
        before = states[:-1].transpose(0, 1).reshape(directions, steps * batch, hidden)
        to_inputs = torch.cat([through[..., : 2 * hidden], totals * to_new], dim=-1)
        return to_inputs, torch.bmm(flat.transpose(1, 2), before), flat.sum(dim=1), None
