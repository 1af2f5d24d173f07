from __future__ import annotations

import math

import torch
from asreader.kernels.pointer_sum import pointer_sum
from hypothesis import given
from hypothesis import strategies as st

from asreader.batches.host import Mentions


@st.composite
def cases(draw: st.DrawFn) -> tuple[torch.Tensor, Mentions, int]:
    batch, width, candidates = draw(st.integers(1, 3)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    scores = torch.tensor(
        draw(st.lists(st.floats(-200, 200), min_size=batch * width, max_size=batch * width)), dtype=torch.float64
    ).view(batch, width)
    pairs = draw(
        st.sets(st.tuples(st.integers(0, batch - 1), st.integers(0, candidates - 1), st.integers(0, width - 1)))
    )
    ordered = sorted(pairs)
    mentions = Mentions(
        torch.tensor([row * candidates + c for row, c, _ in ordered], dtype=torch.int64),
        torch.tensor([row * width + t for row, _, t in ordered], dtype=torch.int64),
    )
    return scores.log_softmax(-1), mentions, candidates


@given(cases())
def test_it_is_the_sum_of_equation_2(case: tuple[torch.Tensor, Mentions, int]) -> None:
    log_attention, mentions, candidates = case
    batch, width = log_attention.shape
    slow = [[0.0] * candidates for _ in range(batch)]
    for c, p in zip(mentions.candidates.tolist(), mentions.positions.tolist(), strict=True):
        slow[c // candidates][c % candidates] += math.exp(log_attention[p // width, p % width])
    fast = pointer_sum(log_attention, mentions, candidates).exp()
    torch.testing.assert_close(fast, torch.tensor(slow, dtype=torch.float64), rtol=1e-9, atol=1e-300)


@given(cases())
def test_gradients_agree_with_finite_differences(case: tuple[torch.Tensor, Mentions, int]) -> None:
    log_attention, mentions, candidates = case
    mentioned = torch.zeros(log_attention.shape[0] * candidates, dtype=torch.bool)
    mentioned[mentions.candidates] = True

    def total(scores: torch.Tensor) -> torch.Tensor:
        return pointer_sum(scores, mentions, candidates).flatten()[mentioned].sum()

    moderate = (log_attention / 50).clamp(-5).requires_grad_()
    if mentioned.any():
        assert torch.autograd.gradcheck(total, moderate)


def test_attention_too_small_for_a_float_still_has_a_finite_loss_and_gradient() -> None:
    scores = torch.tensor([[0.0, -500.0, -510.0]], requires_grad=True)
    mentions = Mentions(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 2]))
    support = pointer_sum(scores.log_softmax(-1), mentions, 3)
    assert support[0, 1].item() == torch.tensor(-500 + math.log1p(math.exp(-10.0))).item()
    assert support[0, 2].item() == -math.inf
    support[0, 1].backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
