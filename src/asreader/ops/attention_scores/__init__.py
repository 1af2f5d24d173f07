"""states of documents, vectors of questions -> scores of all positions: the products before the softmax of equation 1.

An implementation has `score_states`, `sum_states` (the gradient of the questions) and `scale_questions` (the gradient
of the states), all for N readers. Scores are float32 or wider: in bfloat16 they would blur the softmax.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from asreader import ops
from asreader.ops import Workload
from asreader.ops.vmap_rules import fold_readers


def score_positions(states: Float[Tensor, "D T B H"], question: Float[Tensor, "D B H"]) -> Float[Tensor, "B T"]:
    """Scores of one reader, differentiable; under `torch.func.vmap`, of N readers in the same launches."""
    scores: Tensor = _Scores.apply(states[None], question[None])  # type: ignore[no-untyped-call]
    return scores[0]


class _Scores(torch.autograd.Function):
    """Tensors have a leading axis of readers; `vmap` folds its axis into that one."""

    @staticmethod
    def forward(states: Tensor, question: Tensor) -> Tensor:
        scores: Tensor = _implementation(states).score_states(states.flatten(0, 1), question.flatten(0, 1))
        return scores

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        states, question = ctx.saved_tensors
        implementation, shape = _implementation(states), states.shape[:2]
        gradient = gradient.contiguous()
        to_states = implementation.scale_questions(gradient, question.flatten(0, 1).to(states.dtype))
        to_question = implementation.sum_states(gradient, states.flatten(0, 1)).to(question.dtype)
        return to_states.unflatten(0, shape), to_question.unflatten(0, shape)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        count = info.batch_size
        folded = fold_readers(inputs, in_dims, count)
        scores = _Scores.apply(*folded)  # type: ignore[no-untyped-call]
        return scores.unflatten(0, (count, -1)), 0


def _implementation(states: Tensor) -> Any:
    return ops.select("attention_scores", Workload(states.device, states.dtype, states.shape[-1]))
