"""What the layer on top of the recurrence, `readers.layers.BidirectionalGRU`, promises about precision and kernels."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from asreader.batches.batch import Words
from asreader.readers.layers import BidirectionalGRU, Embedding, slow_sizes


@pytest.mark.parametrize("lengths", [[1], [70], [20, 31, 31]])
def test_under_autocast_a_cpu_keeps_its_precision(lengths: list[int]) -> None:
    torch.manual_seed(0)
    stack, table = BidirectionalGRU(8, 16), Embedding(7, 8)
    words = Words(torch.randint(0, 7, (len(lengths), max(lengths))), torch.tensor(lengths))
    with torch.inference_mode():
        plain = stack(table.embed(words)).states
        with torch.autocast("cpu", torch.bfloat16):
            cast = stack(table.embed(words)).states
    assert torch.equal(plain, cast)


def test_matrices_start_orthogonal_and_biases_at_zero() -> None:
    for name, parameter in BidirectionalGRU(12, 12).named_parameters():
        if "bias" in name:
            assert not parameter.any()
        else:
            for gate in parameter.chunk(3):
                torch.testing.assert_close(gate @ gate.T, torch.eye(12), rtol=0, atol=1e-5)


def test_sizes_without_a_kernel_are_named() -> None:
    odd, cpu, gpu = BidirectionalGRU(3, 100), torch.device("cpu"), torch.device("cuda")
    assert slow_sizes(odd, gpu, torch.bfloat16) == [100]
    assert slow_sizes(odd, cpu, torch.bfloat16) == []
    assert slow_sizes(nn.Linear(2, 2), gpu, torch.bfloat16) == []
