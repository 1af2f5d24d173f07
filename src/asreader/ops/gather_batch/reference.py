"""The definition of gathering: `DeviceDataset.make_batch`, index arithmetic in plain PyTorch."""

from __future__ import annotations

from asreader.batches.device import DeviceDataset
from asreader.ops import Workload


def supports(workload: Workload) -> str | None:
    """Everything."""
    return None


gather_batch = DeviceDataset.make_batch
