"""Attention scores: the reference against loops, kernels against the reference, N readers against one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from asreader import ops
from asreader.ops.attention_scores import reference, score_positions

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SIZES = [(1, 7, 3, 8), (2, 1, 1, 4), (3, 40, 2, 24), (1, 33, 2, 136)]


def draw_inputs(
    readers: int, steps: int, batch: int, hidden: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """States [N, D, T, B, H] with a row before and behind, as the recurrence leaves them, and questions."""
    torch.manual_seed(steps)
    padded = torch.randn(readers, 2, steps + 2, batch, hidden, device=DEVICE, dtype=dtype)
    return padded[:, :, 1:-1], torch.randn(readers, 2, batch, hidden, device=DEVICE, dtype=dtype)


def score_with_gradients(implementation: str, states: Tensor, question: Tensor) -> tuple[Tensor, ...]:
    """Scores of all readers under vmap, and the gradients of a weighted sum of them."""
    leaves = states.detach().requires_grad_(), question.detach().requires_grad_()
    with ops.using(implementation, "attention_scores"):
        scores = torch.func.vmap(score_positions)(*leaves)
        outer = torch.randn(scores.shape[1:], generator=torch.Generator().manual_seed(3)).to(scores).expand_as(scores)
        return scores, *torch.autograd.grad(scores, leaves, outer)


def test_a_score_is_the_product_of_both_directions_with_the_question() -> None:
    states, question = draw_inputs(1, 5, 3, 4, torch.float64)
    with ops.using("reference", "attention_scores"):
        scores = score_positions(states[0], question[0])
    for b in range(3):
        for t in range(5):
            expected = sum(states[0, d, t, b] @ question[0, d, b] for d in range(2))
            torch.testing.assert_close(scores[b, t], expected)


@pytest.mark.skipif(DEVICE.type != "cpu", reason="float64 is for a CPU")
def test_gradients_agree_with_finite_differences() -> None:
    states, question = (tensor[0].requires_grad_() for tensor in draw_inputs(1, 3, 2, 3, torch.float64))
    assert torch.autograd.gradcheck(score_positions, (states, question))


@pytest.mark.parametrize(("readers", "steps", "batch", "hidden"), SIZES)
def test_kernels_score_and_differentiate_as_the_reference_does(
    readers: int, steps: int, batch: int, hidden: int
) -> None:
    pytest.importorskip("triton")
    inputs = draw_inputs(readers, steps, batch, hidden)
    found, expected = (score_with_gradients(name, *inputs) for name in ("triton", "reference"))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("implementation", ["triton", "reference"])
def test_readers_together_score_what_each_scores_alone(implementation: str) -> None:
    if implementation == "triton":
        pytest.importorskip("triton")
    states, question = draw_inputs(3, 6, 2, 8)
    together = score_with_gradients(implementation, states, question)
    alone = [score_with_gradients(implementation, states[n : n + 1], question[n : n + 1]) for n in range(3)]
    for whole, parts in zip(together, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(whole, torch.cat(parts), rtol=1e-5, atol=1e-5)


def test_readers_may_share_a_question() -> None:
    states, question = draw_inputs(3, 6, 2, 8)
    shared = torch.func.vmap(score_positions, in_dims=(0, None))(states, question[0])
    for n in range(3):
        torch.testing.assert_close(shared[n], score_positions(states[n], question[0]))


@pytest.mark.parametrize("shared", [1, 2])
def test_vectors_are_scaled_by_step(shared: int) -> None:
    """Whether both directions share the scales or not."""
    triton = pytest.importorskip("asreader.ops.attention_scores.triton")
    torch.manual_seed(0)
    scales, question = torch.randn(4 // shared, 3, 35, device=DEVICE), torch.randn(4, 3, 12, device=DEVICE)
    expected = torch.einsum("rbt,rbh->rtbh", scales.repeat_interleave(shared, dim=0), question)
    torch.testing.assert_close(triton.scale_questions(scales, question), expected)
    torch.testing.assert_close(reference.scale_questions(scales, question), expected)


def test_scores_of_half_precision_are_float32_also_under_autocast() -> None:
    states, question = (tensor[0].bfloat16() for tensor in draw_inputs(1, 5, 3, 4))
    expected = torch.einsum("dtbh,dbh->bt", states.float(), question.float())
    with ops.using("reference", "attention_scores"), torch.autocast(DEVICE.type, torch.bfloat16):
        scores = score_positions(states, question)
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores, expected)
