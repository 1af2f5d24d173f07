"""stacked parameters -> weights, moments or gradients of the two encoders of N Attention Sum Readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from asreader.ops.gru import combine_biases

ENCODERS = ("document_encoder", "question_encoder")
KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
"""In the order of the fields of EncoderWeights."""


@dataclass(frozen=True)
class EncoderWeights:
    """The bidirectional GRUs of N readers, or numbers of the same shape; gates are 3H: reset, update, new."""

    inputs: Float[Tensor, "N D gates E"]
    recurrent: Float[Tensor, "N D gates H"]
    input_biases: Float[Tensor, "N D gates"]
    recurrent_biases: Float[Tensor, "N D gates"]

    @classmethod
    def select(cls, named: Mapping[str, Tensor], encoder: str) -> EncoderWeights:
        """From paired parameters."""
        return cls(*(named[parameter_name(encoder, kind)] for kind in KINDS))

    def tensors(self) -> tuple[Tensor, ...]:
        """In the order of the fields."""
        return self.inputs, self.recurrent, self.input_biases, self.recurrent_biases

    def combined_biases(self) -> tuple[Float[Tensor, "N D gates"], Float[Tensor, "R H"]]:
        """What is added to a word's inputs, and to the recurrent product of new."""
        to_inputs, to_products = combine_biases(self.input_biases, self.recurrent_biases)
        return to_inputs, to_products.flatten(0, 1)

    def allocate_gradients(self, precision: torch.dtype) -> EncoderWeights:
        """Memory for gradients: of matrices in the precision of the products that they come from, as in autocast."""
        matrices = (torch.zeros_like(tensor, dtype=precision) for tensor in (self.inputs, self.recurrent))
        biases = (torch.zeros_like(tensor) for tensor in (self.input_biases, self.recurrent_biases))
        return EncoderWeights(*matrices, *biases)


def parameter_name(encoder: str, kind: str) -> str:
    """The name of an encoder's parameter, of both directions."""
    return f"{encoder}.layers.0.{kind}_l0"
