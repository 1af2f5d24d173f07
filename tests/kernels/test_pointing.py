"""Scores, losses and all their gradients by kernels are those of plain PyTorch."""

from __future__ import annotations

import pytest
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize(
    ("readers", "steps", "batch", "hidden"),
    [(2, 7, 3, 8), (1, 1, 1, 4), (3, 130, 5, 24), (1, 1100, 2, 8), (2, 33, 32, 8)],
)
def test_scores_losses_and_gradients(readers: int, steps: int, batch: int, hidden: int) -> None:
    pointing = pytest.importorskip("asreader.kernels.pointing")
    torch.manual_seed(steps)
    # With a row before and behind, as the recurrence leaves them.
    padded = 3 * torch.randn(2 * readers, steps + 2, batch, hidden, device=DEVICE)
    states = padded[:, 1:-1].requires_grad_()
    question = (3 * torch.randn(2 * readers, batch, hidden, device=DEVICE)).requires_grad_()
    both, asked = (tensor.unflatten(0, (-1, 2)) for tensor in (states, question))
    scores = torch.einsum("ndtbh,ndbh->nbt", both, asked)
    torch.testing.assert_close(pointing.scores(states, question), scores, rtol=1e-4, atol=1e-4)

    lengths = torch.randint(1, steps + 1, (readers, batch, 1), device=DEVICE)
    readable = torch.arange(steps, device=DEVICE) < lengths
    answer_at = readable & (torch.rand(readers, batch, steps, device=DEVICE) < 0.3)
    answer_at[..., 0] = True
    sums = [scores.masked_fill(~mask, -torch.inf).logsumexp(dim=-1) for mask in (readable, answer_at)]
    found = pointing.losses(scores, readable, answer_at)
    torch.testing.assert_close(found, tuple(sums), rtol=1e-4, atol=1e-4)

    outer = torch.rand(readers, batch, device=DEVICE)
    expected = torch.autograd.grad(sums[0] - sums[1], (scores, states, question), outer)
    to_scores = pointing.to_scores(scores, readable, answer_at, found, outer)
    got = to_scores, pointing.to_states(to_scores, question), pointing.to_question(to_scores, states)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
