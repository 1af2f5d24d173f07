"""The recurrence on a CPU: all recurrences step together, in loops that allocate nothing.

tanh(x) = 2 sigmoid(2x) - 1, and a sigmoid takes a sixth of the time of a tanh. So the loop runs over u = (h + 1) / 2,
for which all three gates are sigmoids: W h = 2 W u - W 1, and twice that for the argument of the former tanh.
Arrays of the loop are [T, R, B, ...] in the order in which each recurrence reads: odd ones are flipped in time.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from asreader.ops import Workload

CACHE_ELEMENTS = 1 << 20
"""Numbers that are gathered for a few steps just before these steps read them: about as many as a cache holds."""


def supports(workload: Workload) -> str | None:
    """float32 and float64 on a CPU."""
    if workload.device.type != "cpu":
        return "runs on a CPU only"
    return None if workload.dtype in (torch.float32, torch.float64) else f"does not compute in {workload.dtype}"


def forward(
    table: Float[Tensor, "N U D gates"],
    index: Int[Tensor, "N T B"],
    weights: Float[Tensor, "R gates H"],
    biases: Float[Tensor, "R H"],
    lengths: Int[Tensor, "N B"],
    keep: bool,
) -> tuple[Float[Tensor, "R T_and_two B H"], tuple[Tensor, ...]]:
    """The contract of `ops/gru`."""
    products_of_rows, inputs_of_rows = _scale_table(table, weights, biases)
    rows, mask = _reading_order(index, table.shape[1]), _mask(lengths, index.shape[1])
    steps, recurrences, batch, hidden = *rows.shape, weights.shape[2]
    scaled = _scale_weights(weights)
    padded = table.new_zeros(recurrences, steps + 2, batch, hidden)
    chunk = steps if keep else min(steps, _steps_per_chunk(recurrences * batch * hidden))
    states = table.new_full((chunk + 1, recurrences, batch, hidden), 0.5)
    for start in range(0, steps, chunk):
        count = min(chunk, steps - start)
        part = rows[start : start + count].flatten()
        products = products_of_rows.index_select(0, part).view(count, recurrences, batch, -1)
        inputs = inputs_of_rows.index_select(0, part).view(count, recurrences, batch, -1)
        new = torch.empty_like(inputs[: count if keep else 1])
        _run_steps(states[: count + 1], products, inputs, new, scaled, mask[start : start + count])
        _write_states(padded, states[1 : count + 1], start)
        if not keep:
            states[0] = states[count]
    return padded, (states, products, new, mask) if keep else ()


def backward(
    gradient: Float[Tensor, "R T B H"] | Float[Tensor, "R B H"],
    scales: Float[Tensor, "some B T"] | None,
    weights: Float[Tensor, "R gates H"],
    lengths: Int[Tensor, "N B"],
    padded: Float[Tensor, "R T_and_two B H"],
    kept: tuple[Tensor, ...],
) -> tuple[Float[Tensor, "R T B four_H"], None]:
    """The contract of `ops/gru`."""
    if scales is not None:
        scales = scales.repeat_interleave(len(gradient) // len(scales), dim=0)
        gradient = torch.einsum("rbh,rbt->rtbh", gradient, scales.to(gradient.dtype))
    states, products, new, mask = kept
    (steps, recurrences, batch, hidden), back = new.shape, _scale_weights(weights).transpose(1, 2).contiguous()
    # The gradient of u is twice that of h = 2u - 1. It is complete for a step when all later steps have added theirs.
    totals = torch.empty_like(new)
    _read_states(gradient, totals)
    totals.mul_(2)
    to_products = products.new_empty(steps, recurrences, batch, 4 * hidden)  # n's product, r, z, n's input
    to_gates = to_products[..., : 3 * hidden].unflatten(-1, (3, hidden))
    back = torch.cat([back[:, 2 * hidden :], back[:, : 2 * hidden]], dim=1)
    chunk = _steps_per_chunk(recurrences * batch * hidden)
    for stop in range(steps, 0, -chunk):
        part = slice(max(0, stop - chunk), stop)
        gates, to_new, carried = _local_gradients(states[part], products[part], new[part], mask[part])
        for step in reversed(range(part.start, stop)):
            torch.mul(gates[step - part.start], totals[step].unsqueeze(2), out=to_gates[step])
            if step:
                totals[step - 1].addcmul_(totals[step], carried[step - part.start])
                totals[step - 1].baddbmm_(to_products[step, ..., : 3 * hidden], back)
        torch.mul(totals[part], to_new, out=to_products[part, ..., 3 * hidden :])
    # Arguments of n were doubled in the loop.
    to_products[..., :hidden].mul_(2)
    to_products[..., 3 * hidden :].mul_(2)
    out = torch.empty(recurrences, steps, batch, 4 * hidden, dtype=new.dtype)
    out[::2], out[1::2] = to_products[:, ::2].transpose(0, 1), to_products[:, 1::2].flip(0).transpose(0, 1)
    return out, None


def _scale_table(
    table: Float[Tensor, "N U D gates"], weights: Float[Tensor, "R gates H"], biases: Float[Tensor, "R H"]
) -> tuple[Float[Tensor, "rows gates"], Float[Tensor, "rows H"]]:
    """What each row brings to the recurrent product (of its third part only the bias), and to n directly."""
    readers, _, directions, gates = table.shape
    hidden = gates // 3
    offsets = weights.sum(dim=2).view(readers, 1, directions, gates)
    to_products = table - offsets
    to_products[..., 2 * hidden :] = 2 * (biases.view(readers, 1, directions, hidden) - offsets[..., 2 * hidden :])
    return to_products.view(-1, gates), (2 * table[..., 2 * hidden :]).view(-1, hidden)


def _scale_weights(weights: Float[Tensor, "R gates H"]) -> Float[Tensor, "R H gates"]:
    factors = weights.new_tensor([2.0, 2.0, 4.0]).repeat_interleave(weights.shape[2])
    return (weights.transpose(1, 2) * factors).contiguous()


def _reading_order(index: Int[Tensor, "N T B"], rows: int) -> Int[Tensor, "T R B"]:
    """Rows of the flattened table in the order in which each recurrence reads them."""
    first = torch.arange(len(index))[:, None, None] * rows
    forward_rows = 2 * (index + first)
    return torch.stack([forward_rows, forward_rows.flip(1) + 1], dim=1).flatten(0, 1).transpose(0, 1)


def _mask(lengths: Int[Tensor, "N B"], steps: int) -> Bool[Tensor, "T R B"]:
    inside = torch.arange(steps)[:, None, None] < lengths
    return torch.stack([inside, inside.flip(0)], dim=2).flatten(1, 2)


def _write_states(padded: Float[Tensor, "R T_and_two B H"], states: Float[Tensor, "some R B H"], start: int) -> None:
    """u of some steps -> h where each recurrence reads."""
    count, steps = len(states), padded.shape[1] - 2
    scaled = states * 2
    padded[::2, 1 + start : 1 + start + count] = scaled[:, ::2].transpose(0, 1)
    first = steps - start - count
    padded[1::2, 1 + first : 1 + first + count] = scaled[:, 1::2].flip(0).transpose(0, 1)
    padded[::2, 1 + start : 1 + start + count] -= 1
    padded[1::2, 1 + first : 1 + first + count] -= 1


def _read_states(values: Float[Tensor, "R T B H"], out: Float[Tensor, "T R B H"]) -> None:
    out[:, ::2] = values[::2].transpose(0, 1)
    out[:, 1::2] = values[1::2].transpose(0, 1).flip(0)


def _steps_per_chunk(elements: int) -> int:
    return max(8, CACHE_ELEMENTS // (4 * elements))


def _run_steps(
    states: Float[Tensor, "next R B H"],
    products: Float[Tensor, "T R B gates"],
    inputs: Float[Tensor, "T R B H"],
    new: Float[Tensor, "kept R B H"],
    weights: Float[Tensor, "R H gates"],
    mask: Bool[Tensor, "T R B"],
) -> None:
    """`products` comes with what the rows bring and is left with r, z and the state's part of n's argument."""
    steps, hidden = len(products), states.shape[-1]
    # Views are made once for all steps: a step is so small that slicing would cost as much as computing.
    product, gates, own_input = products.unbind(), products[..., : 2 * hidden].unbind(), inputs.unbind()
    reset, update, from_state = (part.unbind() for part in products.split(hidden, dim=-1))
    state, proposal = states.unbind(), new.unbind() * (steps // len(new))
    is_full, inside = mask.flatten(1).all(dim=1).tolist(), mask[..., None].unbind()
    for t in range(steps):
        product[t].baddbmm_(state[t], weights)
        gates[t].sigmoid_()
        torch.addcmul(own_input[t], reset[t], from_state[t], out=proposal[t]).sigmoid_()
        torch.lerp(proposal[t], state[t], update[t], out=state[t + 1])
        if not is_full[t]:
            torch.where(inside[t], state[t + 1], state[t], out=state[t + 1])


def _local_gradients(
    states: Float[Tensor, "T R B H"],
    products: Float[Tensor, "T R B gates"],
    new: Float[Tensor, "T R B H"],
    mask: Bool[Tensor, "T R B"],
) -> tuple[tuple[Tensor, ...], Float[Tensor, "T R B H"], tuple[Tensor, ...]]:
    """Factors of a state's gradient on its way to the products of n, r, z, to n's input and to the state before."""
    reset, update, from_state = products.chunk(3, dim=-1)
    inside = mask[..., None].to(states.dtype)
    to_new = (1 - update) * new * (1 - new) * inside
    to_update = (states - new) * update * (1 - update) * inside
    to_reset = to_new * from_state * reset * (1 - reset)
    gates = torch.stack([to_new * reset, to_reset, to_update], dim=-2)
    return gates.unbind(), to_new, torch.lerp(torch.ones_like(inside), update, inside).unbind()
