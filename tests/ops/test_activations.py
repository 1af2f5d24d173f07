"""What a float32 recurrence puts its sums through, to the last bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("triton")
import triton
import triton.language as tl
from triton.runtime import interpreter

from asreader.ops.gru import triton as gru_kernel

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture(autouse=True)
def rounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """tl.fma rounds once on a GPU; on a CPU older releases of Triton round twice, and the last bits are lost."""

    def fma(builder: Any, x: Any, y: Any, z: Any) -> Any:
        total = x.data.astype(np.float64) * y.data + z.data
        return interpreter.TensorHandle(total.astype(z.data.dtype), z.dtype.scalar)

    if DEVICE.type == "cpu":
        monkeypatch.setattr(interpreter.InterpreterBuilder, "create_fma", fma)


@triton.jit
def _both(numbers, sigmoids, tanhs, N: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.arange(0, N)
    x = tl.load(numbers + place)
    tl.store(sigmoids + place, gru_kernel._sigmoid(x))
    tl.store(tanhs + place, gru_kernel._tanh(x))


def made(numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    sigmoids, tanhs = torch.empty_like(numbers), torch.empty_like(numbers)
    _both[(1,)](numbers, sigmoids, tanhs, N=len(numbers))
    return sigmoids, tanhs


def test_they_are_exact_to_the_last_bits_also_near_zero() -> None:
    small = torch.logspace(-8, 0, 2048, device=DEVICE)
    numbers = torch.cat([-small, small, torch.linspace(-12, 12, 4096, device=DEVICE)])
    sigmoids, tanhs = made(numbers)
    exact = numbers.double()
    assert ((sigmoids - exact.sigmoid()) / exact.sigmoid()).abs().max() < 5e-7
    assert ((tanhs - exact.tanh()) / exact.tanh()).abs().max() < 5e-7


def test_far_away_they_end_and_what_is_no_number_stays_none() -> None:
    numbers = torch.tensor([1e4, torch.inf, -1e4, -torch.inf, torch.nan, 90.0, -90.0, 0.0], device=DEVICE)
    sigmoids, tanhs = made(numbers)
    torch.testing.assert_close(sigmoids.cpu(), torch.tensor([1, 1, 0, 0, torch.nan, 1, 0, 0.5]), equal_nan=True)
    torch.testing.assert_close(tanhs.cpu(), torch.tensor([1, 1, -1, -1, torch.nan, 1, -1, 0.0]), equal_nan=True)
