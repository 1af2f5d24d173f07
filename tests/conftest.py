"""Every test run checks the shapes and types that the signatures promise."""

from __future__ import annotations

import os

import torch
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Two workers of the test suite share two cores; more threads than that only get in each other's way.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")
if not torch.cuda.is_available():  # Triton's kernels run on a CPU too, slowly
    os.environ["TRITON_INTERPRET"] = "1"

CHECKED = ("ops", "readers", "batches", "training.stacking", "training.engines")
install_import_hook([f"asreader.{name}" for name in CHECKED], "beartype.beartype")

settings.register_profile("asreader", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("asreader")
