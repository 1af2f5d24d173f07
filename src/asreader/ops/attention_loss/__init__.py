"""states and questions -> losses of the attention sum and all their gradients, in one pass over the states.

Used by the engine `fused_attention_sum`. The loss of an example is log sum_{i in document} exp s_i - log sum_{i
mentions the answer} exp s_i, with the scores s_i = state_i . question.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from asreader import ops
from asreader.ops import Workload


@dataclass(frozen=True)
class LossGradients:
    """-log P of every example's answer, and the gradients of the weighted sum of these losses."""

    losses: Float[Tensor, "N B"]
    to_scores: Float[Tensor, "N B T"]
    to_question: Float[Tensor, "R B H"]


def compute_loss_gradients(
    states: Float[Tensor, "R T B H"],
    question: Float[Tensor, "R B H"],
    in_document: Bool[Tensor, "N B T"],
    answer_at: Bool[Tensor, "N B T"],
    weights: Float[Tensor, " N"],
) -> LossGradients:
    """Each example counts with its reader's weight.

    A question's gradient is the difference of two means of its document's states, weighted by their attention: over all
    positions of the document, and over those that mention the answer.
    """
    implementation = ops.select("attention_loss", Workload(states.device, states.dtype, states.shape[-1]))
    found: LossGradients = implementation.compute_loss_gradients(states, question, in_document, answer_at, weights)
    return found
