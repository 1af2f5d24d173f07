"""The recurrence on GPUs with thread block clusters (Hopper): CUDA, compiled when first used by PyTorch's NVRTC.

Several times as fast as the Triton kernel, because a step's exchange stays inside a cluster. `latency.cu` spreads a
recurrence over many multiprocessors, for the shortest step; `throughput.cu` needs few for each, so that all readers of
an ensemble step at the same time. bfloat16 and hidden sizes up to 384 in steps of 64; the Triton kernel has the rest.

Grid: (R * chunks * blocks): a cluster of `blocks` thread blocks owns `width` sequences of one recurrence, a block owns
`units` of the state. Layouts are those of the Triton kernel, but `kept` of throughput.cu, which only it reads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

from asreader.ops import Workload
from asreader.ops.attention_scores.triton import scale_questions

NEEDS_WHOLE_DEVICE = False
"""Launches may overlap: blocks wait only for those of their cluster, which run at the same time."""
KEPT = 4
"""Numbers that are kept for each unit and step."""
BLOCKS_FOR_LATENCY = {64: (4,), 128: (8, 4), 192: (4,), 256: (8, 4), 320: (5,), 384: (8, 6)}
"""Hidden size -> blocks of a cluster; each keeps 16 to 64 units of the state, whose weights fill its registers."""
UNITS_FOR_THROUGHPUT = {
    64: (64, 4, 12),
    128: (128, 8, 24),
    192: (64, 12, 8),
    256: (128, 12, 16),
    320: (64, 12, 4),
    384: (128, 12, 12),
}
"""Hidden size -> units of a block, and how much of the weights registers hold, forward and backward."""
USABLE_FRACTION = {1: 1.0, 2: 1.0, 3: 0.88, 4: 0.9, 5: 0.8, 6: 0.75, 8: 0.85}
"""Blocks of a cluster -> which part of an H200's multiprocessors such clusters can use at the same time."""


def supports(workload: Workload) -> str | None:
    """bfloat16 on a GPU of the Hopper generation."""
    if workload.device.type != "cuda":
        return "runs on a GPU only"
    if workload.dtype != torch.bfloat16:
        return f"does not compute in {workload.dtype}"
    if workload.hidden not in BLOCKS_FOR_LATENCY:
        return f"hidden is not one of {', '.join(map(str, BLOCKS_FOR_LATENCY))}"
    if torch.cuda.get_device_capability(workload.device) != (9, 0):
        return "this GPU has no thread block clusters of the Hopper generation"
    return None if hasattr(torch.cuda, "_compile_kernel") else "this PyTorch cannot compile CUDA"


@dataclass(frozen=True)
class ClusterLayout:
    """How recurrences are laid out: `chunks` clusters of `blocks` thread blocks for each, of `width` sequences."""

    hidden: int
    blocks: int
    width: int
    chunks: int
    many: bool
    # Backward, the gradient may be one for each sequence with a scale for each step: 1 if both directions of a reader
    # share the scales, 2 if not, 0 if there is a gradient for each step.
    scaled: int = 0

    @property
    def units(self) -> int:
        """Of a block."""
        return self.hidden // self.blocks

    @property
    def threads(self) -> int:
        """Of a block."""
        return 2 * self.units if self.many else 384


def forward(
    table: Tensor, index: Tensor, weights: Tensor, biases: Tensor, lengths: Tensor, keep: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The contract of `ops/gru`."""
    readers, rows, directions, gates = table.shape
    (_, steps, batch), hidden, recurrences = index.shape, gates // 3, readers * directions
    shape = _choose_layout(recurrences, batch, hidden, table.device)
    states = table.new_empty(recurrences, steps + 2, batch, hidden)
    size = (recurrences, steps, shape.chunks * shape.width if shape.many else batch, KEPT * hidden)
    kept = table.new_empty(size if keep else (1,))
    arguments: list[Tensor | int] = [
        table,
        index,
        weights,
        biases,
        lengths,
        states,
        kept,
        rows,
        steps,
        batch,
        shape.chunks,
        int(keep),
    ]
    _launch("gru_forward", shape, recurrences, arguments, table.device)
    return states, (kept,)


def backward(
    gradient: Tensor,
    scales: Tensor | None,
    weights: Tensor,
    lengths: Tensor,
    padded: Tensor,
    saved: tuple[Tensor, ...],
) -> tuple[Tensor, Tensor | None]:
    """The contract of `ops/gru`; throughput.cu returns the sums too."""
    (kept,) = saved
    (recurrences, _, batch, hidden), steps = padded.shape, padded.shape[1] - 2
    shape = _choose_layout(recurrences, batch, hidden, kept.device)
    out = kept.new_empty(recurrences, steps, batch, 4 * hidden)
    if shape.many:
        sums = torch.empty(recurrences, shape.chunks, 4 * hidden, device=kept.device)
        scale = sums if scales is None else scales  # some address; it is not read where there are no scales
        many: list[Tensor | int] = [gradient, scale, weights, lengths, kept, out, sums, steps, batch, shape.chunks]
        scaled = 0 if scales is None else 2 if len(scales) == recurrences else 1
        shape = replace(shape, scaled=scaled)
        _launch("gru_backward", shape, recurrences, many, kept.device)
        return out, sums[:, 0] if shape.chunks == 1 else sums.sum(dim=1)
    gradient = gradient if scales is None else scale_questions(scales, gradient)
    few: list[Tensor | int] = [gradient, weights, lengths, padded, kept, out, steps, batch, shape.chunks]
    _launch("gru_backward", shape, recurrences, few, kept.device)
    return out, None


def _choose_layout(recurrences: int, batch: int, hidden: int, device: torch.device) -> ClusterLayout:
    """The shortest step, as long as all clusters still run at the same time: fewer sequences make it shorter."""
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    few, many = BLOCKS_FOR_LATENCY[hidden], hidden // UNITS_FOR_THROUGHPUT[hidden][0]
    ways = [(blocks, 8, False) for blocks in few] + [(many, width, True) for width in (8, 16, 32)]
    for blocks, width, crowded in ways:
        chunks = -(-batch // width)
        if recurrences * chunks * blocks <= processors * USABLE_FRACTION[blocks]:
            return ClusterLayout(hidden, blocks, width, chunks, crowded)
    return ClusterLayout(hidden, many, 32, -(-batch // 32), True)


def _launch(
    name: str, shape: ClusterLayout, recurrences: int, arguments: list[Tensor | int], device: torch.device
) -> None:
    room = (_throughput_bytes if shape.many else _latency_bytes)(name, shape)
    grid = (recurrences * shape.chunks * shape.blocks, 1, 1)
    # Forward, a warpgroup more moves the data of those that compute.
    threads = shape.threads + (128 if shape.many and name == "gru_forward" else 0)
    _compile_kernel(name, shape, room, device.index or 0)(grid, (threads, 1, 1), arguments, room)


def _latency_bytes(name: str, shape: ClusterLayout) -> int:
    """Bytes of shared memory, as latency.cu uses them."""
    tile = shape.hidden * shape.width * 2

    def padded(count: int) -> int:
        return count + (36 - count % 32) % 32

    if name == "gru_forward":
        return 2 * tile + shape.width * padded(3 * shape.units) * 4 + 16
    return 3 * tile // shape.blocks + shape.width * padded(shape.hidden) * 4 + 2 * tile + 16


def _throughput_bytes(name: str, shape: ClusterLayout) -> int:
    """Bytes of shared memory, as throughput.cu uses them."""
    units, _, _ = UNITS_FOR_THROUGHPUT[shape.hidden]
    line, tile = shape.width * 16 + 16, 64 * 16 * 2
    if name == "gru_forward":
        steps, groups = shape.hidden // 16 - UNITS_FOR_THROUGHPUT[shape.hidden][1], units // 64
        notes = KEPT * units * shape.width * 2
        return 2 * shape.hidden // 8 * line + notes + groups * 3 * steps * tile + shape.width * 4 + 8 * (3 * groups + 2)
    steps, shares = (
        3 * units // 16 - UNITS_FOR_THROUGHPUT[shape.hidden][2],
        2 * (shape.blocks - 1) * units * shape.width * 2,
    )
    return 5 * units // 8 * line + shares + units // 64 * shape.blocks * steps * tile + 3 * shape.width * 4 + 16


def kernel_source(shape: ClusterLayout, chip: str) -> tuple[str, list[str]]:
    """The source of both kernels, on top of what `chip` offers as hopper.cuh does, and the compiler's options."""
    sizes = {"H": shape.hidden, "U": shape.units, "CS": shape.blocks, "NB": shape.width}
    if shape.many:
        _, sizes["FORWARD_HELD"], sizes["BACKWARD_HELD"] = UNITS_FOR_THROUGHPUT[shape.hidden]
        sizes["SCALED"] = shape.scaled
    parts = [_read_source("cluster.cuh"), _read_source("throughput.cu" if shape.many else "latency.cu")]
    return "\n".join([chip, *parts]), [f"-D{key}={value}" for key, value in sizes.items()]


def _read_source(name: str) -> str:
    return files("asreader.ops.gru").joinpath(name).read_text(encoding="utf-8")


@cache
def _compile_kernel(name: str, shape: ClusterLayout, room: int, device: int) -> Any:
    text, options = kernel_source(shape, _read_source("hopper.cuh"))
    with torch.cuda.device(device):
        kernel = torch.cuda._compile_kernel(text, name, compute_capability="90a", nvcc_options=options)
        kernel.set_shared_memory_config(room)
    return kernel
