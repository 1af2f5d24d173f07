"""a batch for each of N readers -> one step of training of all of them, by itself or as one captured graph.

Nothing here waits for the device. On a GPU a step is some hundred small launches; the second time a width occurs they
are recorded as a CUDA graph, and from then on the step is one launch. (The first time is an ordinary step, in which
libraries and kernels of that width get ready, so that no step is computed only to warm up.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader.data.resident import Resident, Widths
from asreader.progress import say
from asreader.training import stacked
from asreader.training.stacked import Stack

if TYPE_CHECKING:
    from asreader.kernels.lazy_adam import Tables

BETAS, EPSILON = (0.9, 0.999), 1e-8
"""Those of torch.optim.Adam."""


@dataclass(frozen=True)
class Moments:
    """What Adam remembers. Every parameter of every reader has a step count of its own, as in torch.optim.Adam."""

    first: Stack
    second: Stack
    steps: Float[Tensor, "N parameters"]

    def chosen(self, readers: Sequence[int]) -> Moments:
        """A copy of some readers' part."""
        return Moments(self.first.chosen(readers), self.second.chosen(readers), self.steps[list(readers)])


class StackedAdam:
    """torch.optim.Adam after clip_grad_norm_, for readers of one stack; each has its own norm and learning rate."""

    def __init__(self, weights: Stack, moments: Moments, rates: Sequence[float], clip: float) -> None:
        self._rates, self._clip, self._moments = tuple(rates), clip, moments
        parts = (weights, moments.first, moments.second)
        self._table = _lazy_table(weights, moments, rates)
        kept = 0 if self._table is None else 1  # the table of vectors comes first in a stack
        self._slices = [[_sliced(part, reader)[kept:] for part in parts] for reader in range(weights.readers)]

    def prepare(self, rows: Int[Tensor, "N words"]) -> None:
        """Bring the rows that a batch is about to read up to date, if they are not always."""
        if self._table is not None:
            self._table.claim(rows)
            self._table.catch_up(self._moments.steps[:, 0], rows)

    def settle(self) -> None:
        """Bring all rows up to date, for whoever else reads the weights."""
        if self._table is not None:
            self._table.catch_up(self._moments.steps[:, 0])

    def step(self, gradients: Sequence[Tensor], rows: Int[Tensor, "N words"]) -> None:
        """Change the weights by the gradients, which are used up, of a batch that read these rows."""
        # The fused step goes through memory as it lies; autograd is free to hand out a transposed gradient.
        laid = [tensor.contiguous() for tensor in gradients]
        dense = laid if self._table is None else laid[1:]
        of_readers = [[tensor[reader] for tensor in dense] for reader in range(len(self._rates))]
        norms = torch.stack(torch._foreach_norm([part for parts in of_readers for part in parts]))
        squares = norms.view(len(self._rates), -1).square().sum(dim=1)
        if self._table is not None:
            squares = squares + self._table.squares(laid[0], rows)
        scale = ((squares.sqrt() + 1e-6) / self._clip).clamp(min=1.0)  # what gradients are divided by
        self._moments.steps.add_(1)
        if self._table is not None:
            self._table.update(laid[0], scale, self._moments.steps[:, 0], rows)
        for reader, (weights, first, second) in enumerate(self._slices):
            torch._fused_adam_(
                weights,
                of_readers[reader],
                first,
                second,
                [],
                [self._moments.steps[reader, 0]] * len(weights),
                lr=self._rates[reader],
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=0.0,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
                grad_scale=scale[reader],
            )


class Step:
    """The step of a stack. Each reader's order is a row of numbers: B examples, how many of them count, dealt rows."""

    def __init__(
        self,
        weights: Stack,
        moments: Moments,
        data: Resident,
        *,
        batch: int,
        rates: Sequence[float],
        clip: float,
        precision: torch.dtype,
        graphs: bool = True,
    ) -> None:
        self._weights, self._data, self._batch, self._precision = weights, data, batch, precision
        self._adam = StackedAdam(weights, moments, rates, clip)
        device = weights.embed.device
        self._order = torch.zeros(weights.readers, batch + 1 + data.anonymous, dtype=torch.int32, device=device)
        self._losses = torch.zeros(weights.readers, device=device)
        self._graphs: dict[Widths, torch.cuda.CUDAGraph | None] = {}
        self._capturing = graphs and device.type == "cuda"
        if self._capturing:
            self._pool, self._stream = torch.cuda.graph_pool_handle(), _capture_stream(device)

    def take(self, order: Int[Tensor, "N columns"], widths: Widths) -> Float[Tensor, " N"]:
        """Train every reader on its batch; the losses stand in memory that the next step overwrites."""
        self._order.copy_(order, non_blocking=True)
        if self._capturing and widths in self._graphs and self._graphs[widths] is None:
            self._graphs[widths] = self._captured(widths)
        graph = self._graphs.setdefault(widths, None)
        if graph is None:
            self._compute(widths)
        else:
            graph.replay()
        return self._losses

    def settle(self) -> None:
        """Make the weights whole, for whoever reads them between steps."""
        self._adam.settle()

    def _compute(self, widths: Widths) -> None:
        numbers, sizes, dealt = self._order.tensor_split([self._batch, self._batch + 1], dim=1)
        batch = self._data.batch(numbers, sizes[:, 0], widths, dealt)
        # Made anew each time: autograd remembers the stream on which a leaf was first used, and recording has its own.
        weights = self._weights.learnable()
        rows = stacked.touched(batch)
        self._adam.prepare(rows)
        losses = stacked.losses(weights, batch, self._precision)
        self._adam.step(torch.autograd.grad(losses.sum(), weights.tensors()), rows)
        self._losses.copy_(losses.detach())

    def _captured(self, widths: Widths) -> torch.cuda.CUDAGraph | None:
        """The step as a graph. Graphs run one after the other and keep nothing, so they share their memory."""
        graph, here = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        self._stream.wait_stream(here)
        # Not torch.cuda.graph(): it empties the allocator's cache each time, which the next ordinary step would refill.
        try:
            with torch.cuda.stream(self._stream):
                graph.capture_begin(pool=self._pool)
                try:
                    self._compute(widths)
                finally:
                    graph.capture_end()
        except RuntimeError as error:
            say(f"CUDA graphs cannot be used here, steps are launched one by one: {str(error).splitlines()[0]}")
            self._capturing = False
            return None
        here.wait_stream(self._stream)
        return graph


@cache
def _capture_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all: libraries keep a workspace for every stream they meet."""
    return torch.cuda.Stream(device)


def _lazy_table(weights: Stack, moments: Moments, rates: Sequence[float]) -> Tables | None:
    """On a GPU most rows of the table need not be touched in a step; a CPU has no kernel for it, and small tables."""
    if weights.embed.device.type != "cuda":
        return None
    try:
        from asreader.kernels import lazy_adam
    except ImportError:
        return None
    own = torch.tensor(rates, device=weights.embed.device)
    vectors, first, second = (part.embed.detach() for part in (weights, moments.first, moments.second))
    return lazy_adam.tables(vectors, first, second, own, moments.steps[:, 0])


def _sliced(stack: Stack, reader: int) -> list[Tensor]:
    return [tensor.detach()[reader] for tensor in stack.tensors()]
