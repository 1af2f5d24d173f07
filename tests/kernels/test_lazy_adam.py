"""Adam that leaves untouched rows for later, against Adam that does not."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton")
from asreader.kernels import lazy_adam


def test_rows_end_where_adam_takes_them() -> None:
    torch.manual_seed(1)
    width, readers, table, rates, scale = 12, 2, 9, torch.tensor([0.01, 0.002]), torch.tensor([1.0, 2.5])
    start = torch.randn(readers, table, width)
    plain = [start[n].clone().requires_grad_() for n in range(readers)]
    optimizers = [torch.optim.Adam([plain[n]], rates[n].item()) for n in range(readers)]
    steps = torch.zeros(readers, 3)
    lazy = lazy_adam.tables(start.clone(), torch.zeros_like(start), torch.zeros_like(start), rates, steps[:, 0])
    for step in range(180):
        # One row is met only at the beginning and at the end, beyond the steps that are taken one by one.
        rows = torch.randint(1, 5 if step % 7 else 8, (readers, 4), dtype=torch.int32)
        if step in (2, 175):
            rows[:, 0] = 8
        gradient = torch.zeros_like(start)
        for n in range(readers):
            gradient[n, rows[n].long()] = torch.randn(4, width) * 0.1 ** (step % 5)
        lazy.claim(rows)
        lazy.catch_up(steps[:, 0], rows)
        for n in range(readers):
            met = rows[n].unique().long()
            torch.testing.assert_close(lazy.weights[n, met], plain[n].detach()[met], rtol=2e-5, atol=2e-6)
        torch.testing.assert_close(lazy.squares(gradient, rows), (gradient**2).sum(dim=(1, 2)))
        steps += 1
        lazy.update(gradient, scale, steps[:, 0], rows)
        for n in range(readers):
            plain[n].grad = gradient[n] / scale[n]
            optimizers[n].step()
    lazy.catch_up(steps[:, 0])
    assert (lazy.reached == 180).all()
    for n in range(readers):
        torch.testing.assert_close(lazy.weights[n], plain[n].detach(), rtol=2e-5, atol=2e-6)
        state = optimizers[n].state[plain[n]]
        torch.testing.assert_close(lazy.first[n], state["exp_avg"], rtol=1e-4, atol=1e-7)
        torch.testing.assert_close(lazy.second[n], state["exp_avg_sq"], rtol=1e-4, atol=1e-9)
    assert torch.equal(lazy.weights[:, 0], start[:, 0])
