"""Where kernels written in Triton can be used."""

from __future__ import annotations

import triton

from asreader.ops import Workload


def supports_triton(workload: Workload) -> str | None:
    """GPUs; a CPU only by Triton's interpreter."""
    if workload.device.type != "cuda" and not triton.knobs.runtime.interpret:
        return "runs on a GPU only"
    return None
