"""the recurrence on GPUs with thread block clusters (Hopper): CUDA, compiled on the spot by PyTorch's NVRTC.

Several times as fast as the Triton kernel, because a step's exchange stays inside a cluster. `few_gru.cu` spreads a
recurrence over many multiprocessors, for the shortest step; `many_gru.cu` needs few for each, so that all readers of an
ensemble step at the same time. They serve bfloat16 and hidden sizes up to 384 in steps of 64; `persistent` the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

from asreader.kernels.pointing import to_states

ALONE = False
"""Launches may run beside each other: blocks wait for none but those of their cluster, which run at the same time."""
KEPT = 4
"""Numbers that are kept for each unit and step."""
FEW = {64: (4,), 128: (8, 4), 192: (4,), 256: (8, 4), 320: (5,), 384: (8, 6)}
"""Hidden size -> blocks of a cluster; each keeps 16 to 64 units of the state, whose weights fill its registers."""
MANY = {64: (64, 4, 12), 128: (128, 8, 24), 192: (64, 12, 8), 256: (128, 12, 16), 320: (64, 12, 4), 384: (128, 12, 12)}
"""Hidden size -> units of a block, and how much of the weights registers hold, forward and backward."""
TOGETHER = {1: 1.0, 2: 1.0, 3: 0.88, 4: 0.9, 5: 0.8, 6: 0.75, 8: 0.85}
"""Blocks of a cluster -> which part of an H200's multiprocessors such clusters can use at the same time."""


def serves(device: torch.device, dtype: torch.dtype, hidden: int) -> bool:
    """Whether this way is open."""
    if device.type != "cuda" or dtype != torch.bfloat16 or hidden not in FEW:
        return False
    return torch.cuda.get_device_capability(device) == (9, 0) and hasattr(torch.cuda, "_compile_kernel")


@dataclass(frozen=True)
class Shape:
    """How recurrences are laid out: `chunks` clusters of `blocks` thread blocks for each, of `width` sequences each."""

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
) -> tuple[Tensor, Tensor]:
    """The states with a row of zeros before and behind, and what a backward pass needs."""
    readers, rows, directions, gates = table.shape
    (_, steps, batch), hidden, recurrences = index.shape, gates // 3, readers * directions
    shape = _shape(recurrences, batch, hidden, table.device)
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
    return states, kept


def backward(
    gradient: Tensor, scales: Tensor | None, weights: Tensor, lengths: Tensor, states: Tensor, kept: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Gradients at the recurrent products of new, reset, update and at the input of new; of many, their sums."""
    (recurrences, _, batch, hidden), steps = states.shape, states.shape[1] - 2
    shape = _shape(recurrences, batch, hidden, kept.device)
    out = kept.new_empty(recurrences, steps, batch, 4 * hidden)
    if shape.many:
        sums = torch.empty(recurrences, shape.chunks, 4 * hidden, device=kept.device)
        scale = sums if scales is None else scales  # an address that is not looked at where there are none
        many: list[Tensor | int] = [gradient, scale, weights, lengths, kept, out, sums, steps, batch, shape.chunks]
        scaled = 0 if scales is None else 2 if len(scales) == recurrences else 1
        shape = replace(shape, scaled=scaled)
        _launch("gru_backward", shape, recurrences, many, kept.device)
        return out, sums[:, 0] if shape.chunks == 1 else sums.sum(dim=1)
    gradient = gradient if scales is None else to_states(scales, gradient)
    few: list[Tensor | int] = [gradient, weights, lengths, states, kept, out, steps, batch, shape.chunks]
    _launch("gru_backward", shape, recurrences, few, kept.device)
    return out, None


def _shape(recurrences: int, batch: int, hidden: int, device: torch.device) -> Shape:
    """The shortest step, as long as all clusters still run at the same time: fewer sequences make it shorter."""
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    few, many = FEW[hidden], hidden // MANY[hidden][0]
    ways = [(blocks, 8, False) for blocks in few] + [(many, width, True) for width in (8, 16, 32)]
    for blocks, width, crowded in ways:
        chunks = -(-batch // width)
        if recurrences * chunks * blocks <= processors * TOGETHER[blocks]:
            return Shape(hidden, blocks, width, chunks, crowded)
    return Shape(hidden, many, 32, -(-batch // 32), True)


def _launch(name: str, shape: Shape, recurrences: int, arguments: list[Tensor | int], device: torch.device) -> None:
    room = (_many_room if shape.many else _few_room)(name, shape)
    grid = (recurrences * shape.chunks * shape.blocks, 1, 1)
    # Forward, a warpgroup more moves the data of those that compute.
    threads = shape.threads + (128 if shape.many and name == "gru_forward" else 0)
    _kernel(name, shape, room, device.index or 0)(grid, (threads, 1, 1), arguments, room)


def _few_room(name: str, shape: Shape) -> int:
    """Bytes of shared memory, as few_gru.cu uses them."""
    tile = shape.hidden * shape.width * 2

    def padded(count: int) -> int:
        return count + (36 - count % 32) % 32

    if name == "gru_forward":
        return 2 * tile + shape.width * padded(3 * shape.units) * 4 + 16
    return 3 * tile // shape.blocks + shape.width * padded(shape.hidden) * 4 + 2 * tile + 16


def _many_room(name: str, shape: Shape) -> int:
    """Bytes of shared memory, as many_gru.cu uses them."""
    units, _, _ = MANY[shape.hidden]
    line, tile = shape.width * 16 + 16, 64 * 16 * 2
    if name == "gru_forward":
        steps, groups = shape.hidden // 16 - MANY[shape.hidden][1], units // 64
        notes = KEPT * units * shape.width * 2
        return 2 * shape.hidden // 8 * line + notes + groups * 3 * steps * tile + shape.width * 4 + 8 * (3 * groups + 2)
    steps, shares = 3 * units // 16 - MANY[shape.hidden][2], 2 * (shape.blocks - 1) * units * shape.width * 2
    return 5 * units // 8 * line + shares + units // 64 * shape.blocks * steps * tile + 3 * shape.width * 4 + 16


def program(shape: Shape, chip: str) -> tuple[str, list[str]]:
    """The source of both kernels, on top of what `chip` offers as hopper.cuh does, and the compiler's options."""
    sizes = {"H": shape.hidden, "U": shape.units, "CS": shape.blocks, "NB": shape.width}
    if shape.many:
        _, sizes["FORWARD_HELD"], sizes["BACKWARD_HELD"] = MANY[shape.hidden]
        sizes["SCALED"] = shape.scaled
    parts = [_text("cluster.cuh"), _text("many_gru.cu" if shape.many else "few_gru.cu")]
    return "\n".join([chip, *parts]), [f"-D{key}={value}" for key, value in sizes.items()]


def _text(name: str) -> str:
    return files("asreader.kernels").joinpath(name).read_text(encoding="utf-8")


@cache
def _kernel(name: str, shape: Shape, room: int, device: int) -> Any:
    text, options = program(shape, _text("hopper.cuh"))
    with torch.cuda.device(device):
        kernel = torch.cuda._compile_kernel(text, name, compute_capability="90a", nvcc_options=options)
        kernel.set_shared_memory_config(room)
    return kernel
