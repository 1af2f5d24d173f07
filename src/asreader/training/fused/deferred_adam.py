"""gradients of N readers -> their weights, with updates deferred until they are needed.

Rows of words that a batch does not have are updated when they are next read (`ops/row_adam`). The update of the
encoders is applied at the start of the next step, overlapped with other work, and leaves the weights in the kernels'
layout.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from asreader.ops.grad_norm import triton as grad_norm
from asreader.ops.gru.kernel_weights import KernelWeights
from asreader.ops.row_adam import AdamRecipe
from asreader.ops.row_adam.triton import DenseUpdate, make_tables
from asreader.ops.unique_rows import UniqueRows
from asreader.training.fused.encoder_weights import ENCODERS, KINDS, EncoderWeights, parameter_name
from asreader.training.stacking.parameter_stack import ParameterStack


class DeferredAdam:
    """torch.optim.Adam after clip_grad_norm_, for the Attention Sum Readers of a stack."""

    def __init__(self, stack: ParameterStack, recipe: AdamRecipe, precision: torch.dtype) -> None:
        self._steps, self._recipe, self._precision = stack.steps, recipe, precision
        rates, factors = (torch.tensor(each, device=stack.device) for each in (recipe.rates, recipe.factors))
        self._divisors = torch.zeros(stack.readers, device=stack.device)  # of pending gradients; 0: there are none
        embedding = stack.parameters["embed.weight"]
        self._table = make_tables(
            embedding.weights.detach(),
            embedding.first,
            embedding.second,
            rates,
            stack.steps,
            factors=factors,
            average=embedding.average,
            decay=recipe.ema_decay,
        )
        weights = {name: own.weights.detach() for name, own in stack.parameters.items()}
        self.pending_gradients: list[EncoderWeights] = []
        self._kernel_weights: list[KernelWeights] = []
        self._updates: list[list[DenseUpdate]] = []
        for encoder in ENCODERS:
            own = EncoderWeights.select(weights, encoder)
            gradients = own.allocate_gradients(precision)
            self.pending_gradients.append(gradients)
            self._kernel_weights.append(KernelWeights.allocate(own.inputs, own.recurrent, precision))
            parts = [stack.parameters[parameter_name(encoder, kind)] for kind in KINDS]
            self._updates.append(
                [
                    DenseUpdate(part.weights.detach(), part.first, part.second, part.average, gradient)
                    for part, gradient in zip(parts, gradients.tensors(), strict=True)
                ]
            )

    def read_vectors(self, unique: UniqueRows) -> Float[Tensor, "N U E_and_8"]:
        """The vectors of a batch's unique rows, a one appended to each, after all steps so far."""
        return self._table.read_rows(self._steps, unique, self._precision)

    def apply_pending(self, encoder: int) -> KernelWeights:
        """Apply the pending update of the document encoder (0) or question encoder (1), if there is one, and return its
        weights in the kernels' layout."""
        inputs, recurrent, input_biases, recurrent_biases = self._updates[encoder]
        weights, pending = self._kernel_weights[encoder], (self._divisors, self._steps)
        self._table.update_biases(input_biases, recurrent_biases, *pending, weights)
        self._table.update_dense(inputs, *pending, weights.inputs)
        self._table.update_dense(recurrent, *pending, weights.recurrent)
        return weights

    def enqueue_update(
        self, to_vectors: Float[Tensor, "N U E"], squares: Sequence[Float[Tensor, "N _parts"]], unique: UniqueRows
    ) -> None:
        """One more step: of the words' rows at once, of `pending_gradients` when the weights are next needed.

        `squares` are those of all gradients.
        """
        self._steps.add_(1)
        grad_norm.find_divisors(squares, self._recipe.clip, out=self._divisors)
        self._table.update_rows(to_vectors, self._divisors, self._steps, unique)

    def synchronize(self) -> None:
        """Apply everything that is pending, so that all weights are complete."""
        for encoder in range(len(ENCODERS)):
            self.apply_pending(encoder)
        self._divisors.zero_()
        self._table.synchronize(self._steps)
