"""the recurrence on GPUs with thread block clusters (Hopper): cluster_gru.cu, compiled on the spot by PyTorch's NVRTC.

Several times as fast as the Triton kernel, because a step's exchange stays inside a cluster. It serves bfloat16 and
hidden sizes up to 384 in steps of 64; `persistent` serves the rest.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

THREADS = 384
BLOCKS = {64: (4,), 128: (8, 4), 192: (4,), 256: (8, 4), 320: (5,), 384: (8, 6)}
"""Hidden size -> blocks of a cluster, many for a short step, few for many recurrences at once. Each keeps 16 to 64
units of the state, whose weights fill its registers."""


def serves(device: torch.device, dtype: torch.dtype, hidden: int) -> bool:
    """Whether this way is open."""
    if device.type != "cuda" or dtype != torch.bfloat16 or hidden not in BLOCKS:
        return False
    return torch.cuda.get_device_capability(device) == (9, 0) and hasattr(torch.cuda, "_compile_kernel")


def forward(inputs: Tensor, weights: Tensor, biases: Tensor, lengths: Tensor, keep: bool) -> tuple[Tensor, Tensor]:
    """The states with a row of zeros before and behind, and what a backward pass needs."""
    recurrences, steps, batch, gates = inputs.shape
    hidden = gates // 3
    states = inputs.new_empty(recurrences, steps + 2, batch, hidden)
    states[:, 0], states[:, -1] = 0, 0
    kept = inputs.new_empty((recurrences, steps, batch, 4 * hidden) if keep else (1,))
    blocks, width, chunks = _shape(recurrences, batch, hidden, inputs.device)
    room = 2 * hidden * width * 2 + width * _padded(3 * hidden // blocks) * 4 + 16
    _kernel("gru_forward", hidden, blocks, width, room, inputs.device.index or 0)(
        (recurrences * chunks * blocks, 1, 1),
        (THREADS, 1, 1),
        [inputs, weights, biases, lengths, states, kept, steps, batch, chunks, int(keep)],
        room,
    )
    return states, kept


def backward(gradient: Tensor, weights: Tensor, lengths: Tensor, states: Tensor, kept: Tensor) -> Tensor:
    """Gradients at the recurrent products of new, reset, update, and at the input of new."""
    recurrences, steps, batch, hidden = gradient.shape
    out = torch.empty_like(kept)
    blocks, width, chunks = _shape(recurrences, batch, hidden, kept.device)
    room = 3 * hidden // blocks * width * 2 + width * _padded(hidden) * 4 + 2 * width * hidden * 2 + 16
    _kernel("gru_backward", hidden, blocks, width, room, kept.device.index or 0)(
        (recurrences * chunks * blocks, 1, 1),
        (THREADS, 1, 1),
        [gradient, weights, lengths, states, kept, out, steps, batch, chunks],
        room,
    )
    return out


def _padded(count: int) -> int:
    """As PADDED of the source."""
    return count + (36 - count % 32) % 32


def _shape(recurrences: int, batch: int, hidden: int, device: torch.device) -> tuple[int, int, int]:
    """Blocks of a cluster, sequences of a cluster, clusters of a recurrence.

    Fewer sequences make a step shorter, as long as all clusters still run at the same time. Not every multiprocessor
    can be part of a cluster: of an H200's 132 at most 14 clusters of 8, or 16 of 6, were seen to run together.
    """
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    for width in (8, 16, 32):
        chunks = -(-batch // width)
        for blocks in BLOCKS[hidden]:
            if recurrences * chunks * blocks <= processors * (0.85 if blocks > 6 else 0.75):
                return blocks, width, chunks
    return BLOCKS[hidden][-1], 32, -(-batch // 32)


@cache
def _kernel(name: str, hidden: int, blocks: int, width: int, room: int, device: int) -> Any:
    source = files("asreader.kernels").joinpath("cluster_gru.cu").read_text(encoding="utf-8")
    sizes = {"H": hidden, "U": hidden // blocks, "CS": blocks, "NB": width}
    options = [f"-D{key}={value}" for key, value in sizes.items()]
    with torch.cuda.device(device):
        kernel = torch.cuda._compile_kernel(source, name, compute_capability="90a", nvcc_options=options)
        kernel.set_shared_memory_config(room)
    return kernel
