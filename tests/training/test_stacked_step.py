"""The steps of a stack: as recorded graphs they are what they are one by one."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import torch

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "together.py"


@pytest.fixture(scope="module")
def together() -> ModuleType:
    """The benchmark, which makes readers and data of any size."""
    spec = spec_from_file_location("together", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = sys.modules["together"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_steps_as_graphs_are_ordinary_steps(together: ModuleType) -> None:
    """Many widths by turns, each prepared while the step before is at work."""
    device, shape = torch.device("cuda"), together.Shape(2000, 150, 60, 5, 400, 3000, 16, hidden=64, question=20)
    data = together.made(shape, device)
    losses = []
    for graphs in (True, False):
        torch.manual_seed(1)
        bench = together.Bench(shape, data, 3, together.Measure(60, torch.float32, graphs))
        assert len(set(bench.widths)) > 4
        found = [bench.lanes[0].take(step % 60).clone() for step in range(150)]
        losses.append(torch.stack(found))
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-3, atol=1e-3)
    assert losses[0][120:].mean() < losses[0][:30].mean()  # the same batches, two rounds later
