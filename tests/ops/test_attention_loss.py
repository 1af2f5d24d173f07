"""Losses of the attention sum and all their gradients by kernels are those of the reference."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from asreader import ops
from asreader.ops.attention_loss import LossGradients, compute_loss_gradients

pytest.importorskip("triton")

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def draw_inputs(readers: int, steps: int, batch: int, hidden: int) -> tuple[Tensor, ...]:
    """States and questions, the document's positions, where in it the answer stands, once at least, and weights."""
    torch.manual_seed(steps)
    # With a row before and behind, as the recurrence leaves them.
    padded = 3 * torch.randn(2 * readers, steps + 2, batch, hidden, device=DEVICE)
    question = 3 * torch.randn(2 * readers, batch, hidden, device=DEVICE)
    lengths = torch.randint(1, steps + 1, (readers, batch, 1), device=DEVICE)
    position = torch.arange(steps, device=DEVICE)
    in_document = position < lengths
    once = position == (torch.rand(readers, batch, 1, device=DEVICE) * lengths).long()
    answer_at = once | (in_document & (torch.rand(readers, batch, steps, device=DEVICE) < 0.05))
    return padded[:, 1:-1], question, in_document, answer_at, torch.rand(readers, device=DEVICE) + 0.1


def compute(implementation: str, *inputs: Tensor) -> LossGradients:
    with ops.using(implementation, "attention_loss"):
        return compute_loss_gradients(*inputs)


def test_the_reference_is_the_loss_of_the_paper() -> None:
    states, question, in_document, answer_at, weights = draw_inputs(2, 7, 3, 8)
    states = states / 9
    found = compute("reference", states, question, in_document, answer_at, weights)
    for n in range(2):
        for b in range(3):
            scores = sum(states[2 * n + d, :, b] @ question[2 * n + d, b] for d in range(2))
            attention = scores[in_document[n, b]].softmax(dim=0)
            support = attention[answer_at[n, b][in_document[n, b]]].sum()
            torch.testing.assert_close(found.losses[n, b], -support.log(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("readers", "steps", "batch", "hidden"),
    [(2, 7, 3, 8), (1, 1, 1, 4), (3, 130, 5, 24), (1, 1100, 2, 8), (2, 33, 9, 8)],
)
def test_losses_and_gradients_are_those_of_the_reference(readers: int, steps: int, batch: int, hidden: int) -> None:
    inputs = draw_inputs(readers, steps, batch, hidden)
    found, expected = (vars(compute(name, *inputs)) for name in ("triton", "reference"))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("implementation", ["triton", "reference"])
def test_an_answer_that_stands_everywhere_teaches_nothing(implementation: str) -> None:
    """Both sums are the same."""
    states, question, in_document, _, weights = draw_inputs(1, 90, 3, 8)
    found = compute(implementation, states, question, in_document, in_document, weights)
    for tensor in vars(found).values():
        torch.testing.assert_close(tensor, torch.zeros_like(tensor), rtol=0.0, atol=1e-5)


@pytest.mark.parametrize(("readers", "steps", "hidden"), [(2, 90, 64), (1, 333, 384), (2, 33, 136), (1, 40, 1024)])
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU; test_emulated.py does it on a CPU")
def test_in_bfloat16_it_is_the_same(readers: int, steps: int, hidden: int) -> None:
    *factors, in_document, answer_at, weights = draw_inputs(readers, steps, 5, hidden)
    factors = [factor.bfloat16() / 2 for factor in factors]
    found = compute("triton", *factors, in_document, answer_at, weights)
    expected = compute("triton", *(factor.float() for factor in factors), in_document, answer_at, weights)
    torch.testing.assert_close(found.losses, expected.losses, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.to_scores, expected.to_scores, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(found.to_question.float(), expected.to_question, rtol=1e-2, atol=1e-3)
