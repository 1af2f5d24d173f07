"""Every test run checks the shapes and types that the signatures promise."""

from __future__ import annotations

import inspect
import os
from importlib.util import find_spec
from typing import Any

import torch
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Two workers of the test suite share two cores; more threads than that only get in each other's way.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")
if not torch.cuda.is_available():  # Triton's kernels run on a CPU too, slowly
    os.environ["TRITON_INTERPRET"] = "1"

CHECKED = ("ops", "readers", "batches", "training.stacking", "training.engines")
if find_spec("beartype"):  # a machine with a GPU may not have it
    install_import_hook([f"asreader.{name}" for name in CHECKED], "beartype.beartype")

try:
    import triton
except ImportError:  # it comes with PyTorch for GPUs, on most platforms
    pass
else:
    _jit = triton.jit

    def _jit_unchecked(function: Any = None, **options: Any) -> Any:
        """Triton reads a kernel's source, so it must not get what checks the kernel's signature."""
        return _jit(inspect.unwrap(function) if function else None, **options)

    triton.jit = _jit_unchecked

settings.register_profile("asreader", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("asreader")
