"""Scores, losses and all their gradients by kernels are those of plain PyTorch."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton")
from asreader.ops.attention_loss import triton

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize(
    ("readers", "steps", "batch", "hidden"),
    [(2, 7, 3, 8), (1, 1, 1, 4), (3, 130, 5, 24), (1, 1100, 2, 8), (2, 33, 32, 8)],
)
def test_scores_losses_and_gradients(readers: int, steps: int, batch: int, hidden: int) -> None:
    states, question, readable, answer_at, shares = given(readers, steps, batch, hidden)
    states.requires_grad_(), question.requires_grad_()
    both, asked = (tensor.unflatten(0, (-1, 2)) for tensor in (states, question))
    scores = torch.einsum("ndtbh,ndbh->nbt", both, asked)
    torch.testing.assert_close(triton.scores(states, question), scores, rtol=1e-4, atol=1e-4)

    sums = [scores.masked_fill(~mask, -torch.inf).logsumexp(dim=-1) for mask in (readable, answer_at)]
    missed = sums[0] - sums[1]
    expected = torch.autograd.grad(missed, (scores, question, states), shares[:, None].expand_as(missed))
    found = triton.learnt(states.detach(), question.detach(), readable, answer_at, shares)
    torch.testing.assert_close(found.missed, missed, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close((found.to_scores, found.to_question), expected[:2], rtol=1e-4, atol=1e-4)
    apart = triton.to_question(found.to_scores, states), triton.to_states(found.to_scores, question)
    torch.testing.assert_close(apart, expected[1:], rtol=1e-4, atol=1e-4)


def test_examples_that_do_not_count_teach_nothing() -> None:
    """All that may be read supports them: both sums are the same."""
    states, question, readable, _, shares = given(1, 90, 3, 8)
    found = triton.learnt(states, question, readable, readable, shares)
    for tensor in (found.missed, found.to_scores, found.to_question):
        torch.testing.assert_close(tensor, torch.zeros_like(tensor), rtol=0.0, atol=1e-6)


@pytest.mark.parametrize(("readers", "steps", "hidden"), [(2, 90, 64), (1, 333, 384), (2, 33, 136), (1, 40, 1024)])
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU; test_emulated.py does it on a CPU")
def test_in_bfloat16_it_is_the_same(readers: int, steps: int, hidden: int) -> None:
    *factors, readable, answer_at, shares = given(readers, steps, 5, hidden)
    factors = [factor.bfloat16() / 2 for factor in factors]
    found = triton.learnt(*factors, readable, answer_at, shares)
    expected = triton.learnt(*(factor.float() for factor in factors), readable, answer_at, shares)
    torch.testing.assert_close(found.missed, expected.missed, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.to_scores, expected.to_scores, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(found.to_question.float(), expected.to_question, rtol=1e-2, atol=1e-3)


def given(readers: int, steps: int, batch: int, hidden: int) -> tuple[torch.Tensor, ...]:
    """States and questions, what may be read, where in it the answer stands, once at least, and readers' shares."""
    torch.manual_seed(steps)
    # With a row before and behind, as the recurrence leaves them.
    padded = 3 * torch.randn(2 * readers, steps + 2, batch, hidden, device=DEVICE)
    question = 3 * torch.randn(2 * readers, batch, hidden, device=DEVICE)
    lengths, place = torch.randint(1, steps + 1, (readers, batch, 1), device=DEVICE), torch.arange(steps, device=DEVICE)
    readable = place < lengths
    once = place == (torch.rand(readers, batch, 1, device=DEVICE) * lengths).long()
    answer_at = once | (readable & (torch.rand(readers, batch, steps, device=DEVICE) < 0.05))
    return padded[:, 1:-1], question, readable, answer_at, torch.rand(readers, device=DEVICE) + 0.1
