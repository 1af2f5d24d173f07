"""Adam that leaves untouched rows for later, against Adam that does not."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton")
from asreader.kernels.words import distinct

from asreader.ops.row_adam import triton

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("keep", [0.0, 0.99])
def test_rows_end_where_adam_takes_them(keep: float) -> None:
    with DEVICE:
        _compare(keep)


def _compare(keep: float) -> None:
    torch.manual_seed(1)
    width, readers, table, rates, scale = 12, 2, 9, torch.tensor([0.01, 0.002]), torch.tensor([1.0, 2.5])
    start = torch.randn(readers, table, width)
    plain = [start[n].clone().requires_grad_() for n in range(readers)]
    optimizers = [torch.optim.Adam([plain[n]], rates[n].item()) for n in range(readers)]
    steps = torch.zeros(readers, 3)
    factors = torch.linspace(1.0, 0.2, 100)  # then they stay
    lazy = triton.tables(
        start.clone(), torch.zeros_like(start), torch.zeros_like(start), rates, steps[:, 0], factors=factors,
        average=start.clone() if keep else None, keep=keep,
    )  # fmt: skip
    average = start.clone()
    for step in range(200):
        # One row is met only at the beginning and at the end, beyond the steps that are taken one by one.
        met = [torch.randint(1, 5 if step % 7 else 8, (4,)) for _ in range(readers)]
        if step in (2, 175, 199):
            met = [torch.tensor([8, 1, 1, 1])] * readers
        batch = torch.stack(met)[:, None, :]
        words = distinct(batch, batch, table, room=6, lines=5)
        vectors = lazy.vectors(steps[:, 0], words, torch.float32)
        assert torch.equal(vectors[..., width:], torch.eye(8)[0].expand(readers, 6, 8))
        own = torch.zeros(readers, 6, width)
        gradient = torch.zeros_like(start)
        for n in range(readers):
            rows = met[n].unique()
            assert torch.equal(words.rows[n, : words.counts[n]].long(), rows)
            read = vectors[n, : len(rows), :width]
            torch.testing.assert_close(read, plain[n].detach()[rows], rtol=2e-6, atol=1e-6)
            gradient[n, rows] = own[n, : len(rows)] = torch.randn(len(rows), width) * 0.1 ** (step % 5)
        steps += 1
        lazy.update(own, scale, steps[:, 0], words)
        for n in range(readers):
            plain[n].grad = gradient[n] / scale[n]
            optimizers[n].param_groups[0]["lr"] = (rates[n] * factors[min(step, 99)]).item()
            optimizers[n].step()
            share = (1 - keep) / (1 - keep ** (step + 1))
            average[n] += share * (plain[n].detach() - average[n])
    lazy.settle(steps[:, 0])
    assert (lazy.reached == 200).all()
    if lazy.average is not None:
        torch.testing.assert_close(lazy.average, average, rtol=2e-6, atol=1e-6)
    for n in range(readers):
        torch.testing.assert_close(lazy.weights[n], plain[n].detach(), rtol=2e-6, atol=1e-6)
        state = optimizers[n].state[plain[n]]
        torch.testing.assert_close(lazy.first[n], state["exp_avg"], rtol=1e-4, atol=1e-7)
        torch.testing.assert_close(lazy.second[n], state["exp_avg_sq"], rtol=1e-4, atol=1e-9)
    assert torch.equal(lazy.weights[:, 0], start[:, 0])


def test_a_second_moment_fades_however_often_rows_are_settled() -> None:
    """Also when the first has faded to nothing long ago."""
    with DEVICE:
        start, zeros, rates = torch.ones(1, 2, 4), torch.zeros(1, 2, 4), torch.tensor([0.01])
        lazy = triton.tables(start.clone(), zeros.clone(), zeros + 0.5, rates, torch.zeros(1))
        for step in (3, 700, 1500):
            lazy.settle(torch.full((1,), float(step)))
    torch.testing.assert_close(lazy.second, zeros + 0.5 * 0.999**1500, rtol=1e-4, atol=0.0)
    assert torch.equal(lazy.weights, start)


def test_other_parameters_step_as_adam_does() -> None:
    """In twice the precision: its corrections of the first steps are small differences of numbers near 1."""
    torch.manual_seed(2)
    with DEVICE:
        rates, scale, start = torch.tensor([0.01, 0.002]), torch.tensor([1.0, 2.5]), torch.randn(2, 7, 300) / 1000
        plain = [own.double().requires_grad_() for own in start]
        optimizers = [torch.optim.Adam([own], rate.item()) for own, rate in zip(plain, rates, strict=True)]
        steps, first, second = torch.zeros(2, 3), torch.zeros_like(start), torch.zeros_like(start)
        lazy = triton.tables(start.clone(), first.clone(), second.clone(), rates, steps[:, 0])
        ready = torch.zeros(2, 7, 308)
        for _ in range(5):
            gradient = torch.randn_like(start)
            steps += 1
            lazy.step(triton.Stepping(start, first, second, None, gradient), scale, steps[:, 0], ready)
            assert torch.equal(ready[..., :300], start) and not ready[..., 300:].any()
            for n, optimizer in enumerate(optimizers):
                plain[n].grad = (gradient[n] / scale[n]).double()
                optimizer.step()
    torch.testing.assert_close(start.double(), torch.stack(plain).detach(), rtol=0.0, atol=2e-8)
