"""autocast -> none of it for a while, at no cost where there was none."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def full_precision(device: str) -> AbstractContextManager[object]:
    """Where operations on such a device keep the precision of their operands."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()
