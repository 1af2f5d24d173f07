"""The pointer sum against a slow sum in a loop."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from asreader import ops
from asreader.ops.pointer_sum import NO_CANDIDATE, pointer_sum

IMPLEMENTATIONS = ("cpu", "reference")
Case = tuple[Tensor, Tensor, int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Log attention, the candidates that positions mention, each once at a position, and how many there are."""
    batch, steps, candidates = draw(st.integers(1, 3)), draw(st.integers(1, 6)), draw(st.integers(1, 20))
    mentions = draw(st.integers(1, min(3, candidates)))
    count = batch * steps
    scores = draw(st.lists(st.floats(-200, 200), min_size=count, max_size=count))
    number = st.integers(0, candidates - 1)
    own = draw(st.lists(st.lists(number, max_size=mentions, unique=True), min_size=count, max_size=count))
    padded = [each + [NO_CANDIDATE] * (mentions - len(each)) for each in own]
    log_attention = torch.tensor(scores, dtype=torch.float64).view(batch, steps).log_softmax(-1)
    return log_attention, torch.tensor(padded, dtype=torch.int32).view(batch, steps, mentions), candidates


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@given(case=cases())
def test_it_is_the_sum_of_equation_2(implementation: str, case: Case) -> None:
    log_attention, candidate_at, candidates = case
    slow = torch.zeros(len(log_attention), candidates, dtype=torch.float64)
    for b, t, k in torch.cartesian_prod(*map(torch.arange, candidate_at.shape)).view(-1, 3).tolist():
        if candidate_at[b, t, k] != NO_CANDIDATE:
            slow[b, candidate_at[b, t, k]] += math.exp(log_attention[b, t])
    with ops.using(implementation, "pointer_sum"):
        fast = pointer_sum(log_attention, candidate_at, candidates)
    torch.testing.assert_close(fast.exp(), slow, rtol=1e-9, atol=1e-300)
    mentioned = (candidate_at[..., None] == torch.arange(candidates)).any(dim=(1, 2))
    assert torch.equal(fast > -math.inf, mentioned)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@given(case=cases())
def test_gradients_agree_with_finite_differences(implementation: str, case: Case) -> None:
    log_attention, candidate_at, candidates = case

    def total(scores: Tensor) -> Tensor:
        support = pointer_sum(scores, candidate_at, candidates)
        weight = torch.arange(1, support.numel() + 1, dtype=torch.float64).view_as(support)
        return torch.where(support.isfinite(), support * weight, 0.0).sum()

    moderate = (log_attention / 50).clamp(-5).requires_grad_()
    with ops.using(implementation, "pointer_sum"):
        assert torch.autograd.gradcheck(total, moderate)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_readers_together_sum_what_each_sums_alone(implementation: str) -> None:
    torch.manual_seed(0)
    log_attention = torch.randn(3, 2, 7).log_softmax(-1).requires_grad_()
    candidate_at = torch.randint(NO_CANDIDATE, 4, (3, 2, 7, 1))
    outer = torch.randn(3, 2, 4)

    def with_gradient(support: Tensor) -> tuple[Tensor, Tensor]:
        loss = torch.where(support.isfinite(), support * outer, 0.0).sum()
        return support, torch.autograd.grad(loss, log_attention)[0]

    with ops.using(implementation, "pointer_sum"):
        together = with_gradient(torch.func.vmap(lambda own, at: pointer_sum(own, at, 4))(log_attention, candidate_at))
        alone = with_gradient(torch.stack([pointer_sum(log_attention[n], candidate_at[n], 4) for n in range(3)]))
        shared = torch.func.vmap(lambda own: pointer_sum(own, candidate_at[0], 4))(log_attention)
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(shared[0], alone[0][0])


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_attention_too_small_for_a_float_still_has_a_finite_loss_and_gradient(implementation: str) -> None:
    scores = torch.tensor([[0.0, -500.0, -510.0]], requires_grad=True)
    candidate_at = torch.tensor([[[0], [1], [1]]], dtype=torch.int16)
    with ops.using(implementation, "pointer_sum"):
        support = pointer_sum(scores.log_softmax(-1), candidate_at, 3)
        assert support[0, 1].item() == pytest.approx(-500 + math.log1p(math.exp(-10.0)))
        assert support[0, 2].item() == -math.inf
        support[0, 1].backward()
    assert scores.grad is not None
    torch.testing.assert_close(scores.grad, torch.tensor([[-1.0, 1.0, 0.0]]), rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_a_mention_without_any_attention_adds_nothing_and_learns_nothing(implementation: str) -> None:
    """Padding and a question placed next to a document have log attention -inf."""
    log_attention = torch.tensor([[math.log(0.5), -math.inf, math.log(0.5)]], requires_grad=True)
    candidate_at = torch.tensor([[[0], [0], [NO_CANDIDATE]]])
    with ops.using(implementation, "pointer_sum"):
        support = pointer_sum(log_attention, candidate_at, 1)
        assert support.item() == pytest.approx(math.log(0.5))
        support.sum().backward()
    assert log_attention.grad is not None
    assert log_attention.grad.tolist() == [[1.0, 0.0, 0.0]]


def test_a_candidate_whose_mentions_have_no_attention_has_no_support() -> None:
    log_attention = torch.tensor([[0.0, -math.inf, -math.inf]])
    candidate_at = torch.tensor([[[0], [1], [1]]])
    for implementation in IMPLEMENTATIONS:
        with ops.using(implementation, "pointer_sum"):
            assert pointer_sum(log_attention, candidate_at, 2).tolist() == [[0.0, -math.inf]]
