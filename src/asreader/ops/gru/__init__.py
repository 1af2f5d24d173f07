"""gate inputs of words -> states of bidirectional GRUs: all of a GRU that must go step by step.

Of N readers R = 2 N recurrences of equal shape run side by side: number 2n reads forward, number 2n + 1 backward. What
depends on a word alone, the product of its vector with the input weights, is a table with a row for each unique word of
a batch, and `index` says which row stands where. For a state h, input x and recurrent weights W with the gates r, z, n:

    r = sigmoid(x_r + W_r h)    z = sigmoid(x_z + W_z h)    n = tanh(x_n + r * (W_n h + b))    h' = n + z * (h - n)

As in cuDNN, the reset gate is applied after the recurrent product. Behind a sequence's end a state is handed on
unchanged, so the last state stands at the end of the padded sequence.

An implementation has two functions. `forward(table, index, weights, biases, lengths, keep)` returns the states with a
row of zeros before and behind them, [R, T + 2, B, H], and a tuple of what its backward pass needs. `backward(gradient,
scales, weights, lengths, padded, kept)` returns the gradients at the recurrent products of n, r, z and at the input of
n, [R, T, B, 4H], and their sums over all positions or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from asreader import ops
from asreader.ops import Workload
from asreader.ops.segment_sum import Positions, sum_by_row
from asreader.ops.vmap_rules import fold_readers

FEW = 8
"""Up to this many recurrences the gates' products with the states are one product: two would leave a GPU half idle.

With more, two are faster: of 32 they take 616 microseconds, one for all gates 757; of two 142 and 60 (H200, 480 steps).
"""


@dataclass(frozen=True)
class RecurrenceInputs:
    """What recurrences of equal shape work on. Gates are 3H numbers: reset, update, new."""

    table: Float[Tensor, "N U D gates"]  # both directions of a word side by side
    positions: Positions
    weights: Float[Tensor, "R gates H"]
    biases: Float[Tensor, "R H"]  # of the recurrent product of n; all others are in the table
    lengths: Int[Tensor, "N B"]


@dataclass(frozen=True)
class RecurrenceResult:
    """States with a row of zeros before and behind, and what the implementation kept for its backward pass."""

    implementation: ModuleType
    weights: Float[Tensor, "R gates H"]
    lengths: Int[Tensor, "N B"]
    padded: Float[Tensor, "R T_and_two B H"]
    kept: tuple[Tensor, ...]

    @property
    def states(self) -> Float[Tensor, "R T B H"]:
        """At every position."""
        return self.padded[:, 1:-1]


def combine_biases(
    inputs: Float[Tensor, "*R gates"], recurrent: Float[Tensor, "*R gates"]
) -> tuple[Float[Tensor, "*R gates"], Float[Tensor, "*R H"]]:
    """A GRU's two biases -> what is added to the table, and to the recurrent product of n, which r scales."""
    hidden = inputs.shape[-1] // 3
    return inputs + functional.pad(recurrent[..., : 2 * hidden], (0, hidden)), recurrent[..., 2 * hidden :]


def run_gru(
    table: Float[Tensor, "U D gates"],
    positions: Positions,
    weights: Float[Tensor, "D gates H"],
    biases: Float[Tensor, "D H"],
    lengths: Int[Tensor, " B"],
) -> Float[Tensor, "D T B H"]:
    """States of one reader's GRU, differentiable; under `torch.func.vmap`, of N readers in the same launches."""
    implementation = ops.select("gru", Workload(table.device, table.dtype, weights.shape[-1]))
    if implementation.__name__.endswith("reference"):
        states: Tensor = implementation.run_stepwise(table, positions.index, weights, biases, lengths)
        return states
    order = (None,) * 4 if positions.order is None else tuple(each[None] for each in positions.order.tensors())
    stacked = (tensor[None] for tensor in (table, positions.index, weights, biases, lengths))
    found = _GRU.apply(  # type: ignore[no-untyped-call]
        implementation, torch.is_grad_enabled(), positions.rows, *stacked, *order
    )
    return (found if isinstance(found, Tensor) else found[0])[0]


def run_forward(implementation: ModuleType, inputs: RecurrenceInputs, keep: bool) -> RecurrenceResult:
    """By an implementation's own kernel, with weights in the precision of the table."""
    table, weights = inputs.table.contiguous(), inputs.weights.to(inputs.table.dtype).contiguous()
    lengths, biases = inputs.lengths.int().contiguous(), inputs.biases
    biases = biases.to(torch.promote_types(biases.dtype, torch.float32)).contiguous()
    index = inputs.positions.index.contiguous()
    padded, kept = implementation.forward(table, index, weights, biases, lengths, keep)
    return RecurrenceResult(implementation, weights, lengths, padded, kept)


def run_backward(
    result: RecurrenceResult, gradient: Tensor, scales: Float[Tensor, "some B T"] | None = None
) -> tuple[Float[Tensor, "R T B four_H"], Float[Tensor, "R four_H"] | None]:
    """Gradients at the recurrent products of n, r, z and at the input of n; perhaps their sums.

    The gradients of the states are [R, T, B, H], or [R, B, H] to be scaled for each step, with scales for each reader
    (N) or each recurrence (R).
    """
    found: tuple[Tensor, Tensor | None] = result.implementation.backward(
        gradient.contiguous(), scales, result.weights, result.lengths, result.padded, result.kept
    )
    return found


def input_gradients(out: Float[Tensor, "R T B four_H"]) -> Float[Tensor, "R positions gates"]:
    """Of what `run_backward` returns, the part that belongs to the inputs."""
    return out.flatten(1, 2)[..., out.shape[-1] // 4 :]


def bias_gradients(
    out: Float[Tensor, "R T B four_H"], sums: Float[Tensor, "R four_H"] | None
) -> Float[Tensor, "R 4 H"]:
    """Of what `run_backward` returns, the sums over all positions: of n's product, r, z and n."""
    wide = torch.promote_types(out.dtype, torch.float32)
    total = out.sum(dim=(1, 2), dtype=wide) if sums is None else sums
    return total.view(len(out), 4, -1)


def weight_gradients(
    out: Float[Tensor, "R T B four_H"], result: RecurrenceResult, into: Float[Tensor, "R gates H"] | None = None
) -> Float[Tensor, "R gates H"]:
    """Gradients of the recurrent weights: each gate's with the state before it, which a backward reader has behind."""
    hidden, states = out.shape[-1] // 4, result.padded
    gates = out.flatten(1, 2)[..., : 3 * hidden].transpose(1, 2)  # n comes first
    wide = torch.promote_types(out.dtype, torch.float32)
    found = out.new_empty(len(out), 3 * hidden, hidden, dtype=wide) if into is None else into
    whole = torch.empty_like(found) if len(out) <= FEW else None
    for backwards in (0, 1):
        before = states[backwards::2, 2 * backwards : states.shape[1] - 2 + 2 * backwards].flatten(1, 2)
        if whole is not None:
            batched_product(gates[backwards::2], before, whole[backwards::2])
        else:
            batched_product(gates[backwards::2, hidden:], before, found[backwards::2, : 2 * hidden])
            batched_product(gates[backwards::2, :hidden], before, found[backwards::2, 2 * hidden :])
    return found if whole is None else torch.cat([whole[:, hidden:], whole[:, :hidden]], dim=1, out=found)


def batched_product(left: Float[Tensor, "R I K"], right: Float[Tensor, "R K J"], out: Float[Tensor, "R I J"]) -> None:
    """A batched product in the precision of `out`, accumulated in float32 or wider."""
    if left.dtype == out.dtype:
        torch.bmm(left, right, out=out)
    elif left.device.type == "cuda":
        torch.bmm(left, right, out_dtype=out.dtype, out=out)
    else:
        torch.bmm(left.to(out.dtype), right.to(out.dtype), out=out)


class _GRU(torch.autograd.Function):
    """An implementation's two kernels, and the products and sums that turn their result into gradients.

    Tensors have a leading axis of readers; `vmap` folds its axis into that one, so N readers are only more recurrences.
    """

    @staticmethod
    def forward(
        implementation: ModuleType,
        keep: bool,
        rows: int,
        table: Tensor,
        index: Tensor,
        weights: Tensor,
        biases: Tensor,
        lengths: Tensor,
        *order: Tensor | None,
    ) -> tuple[Tensor, ...]:
        inputs = RecurrenceInputs(table, Positions(index, rows), weights.flatten(0, 1), biases.flatten(0, 1), lengths)
        result = run_forward(implementation, inputs, keep)
        states = result.states.unflatten(0, (len(table), -1))
        # Views, because an input that is returned as it is cannot be saved.
        weights, lengths = result.weights.view_as(result.weights), result.lengths.view_as(result.lengths)
        return states, result.padded, weights, lengths, *result.kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        implementation, _, rows, table, index, weights, _, _, *order = inputs
        ctx.implementation, ctx.rows, ctx.dtype, ctx.table_shape = implementation, rows, weights.dtype, table.shape
        ctx.has_order = order[0] is not None
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(index, *(order if ctx.has_order else ()), *output[1:])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        index, *saved = ctx.saved_tensors
        order, saved = (saved[:4], saved[4:]) if ctx.has_order else (None, saved)
        padded, weights, lengths, *kept = saved
        result = RecurrenceResult(ctx.implementation, weights, lengths, padded, tuple(kept))
        out, sums = run_backward(result, gradient.flatten(0, 1))
        positions = Positions.from_tensors(index, ctx.rows, order)
        to_table = sum_by_row(input_gradients(out), positions, ctx.table_shape)
        to_weights = weight_gradients(out, result).to(ctx.dtype)
        to_biases = bias_gradients(out, sums)[:, 0].to(ctx.dtype)
        readers = len(index)
        folded = (to_weights.unflatten(0, (readers, -1)), to_biases.unflatten(0, (readers, -1)))
        return None, None, None, to_table, None, *folded, None, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        count = info.batch_size
        folded = fold_readers(inputs, in_dims, count)
        found = _GRU.apply(*folded)  # type: ignore[no-untyped-call]
        return found[0].unflatten(0, (count, -1)), 0
