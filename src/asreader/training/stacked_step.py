"""a batch for each of N readers -> one step of training of all of them, by itself or as one captured graph.

Nothing here waits for the device. On a GPU a step is some hundred small launches; the second time a width occurs they
are recorded as a CUDA graph, and from then on the step is one launch. (The first time is an ordinary step, in which
libraries and kernels of that width get ready, so that no step is computed only to warm up.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader.data.resident import Resident, Widths
from asreader.progress import say
from asreader.training import stacked
from asreader.training.stacked import Stack

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
        self._slices = [[_sliced(part, reader) for part in parts] for reader in range(weights.readers)]

    def step(self, gradients: Sequence[Tensor]) -> None:
        """Change the weights; the gradients are used up."""
        # The fused step goes through memory as it lies; autograd is free to hand out a transposed gradient.
        laid = [tensor.contiguous() for tensor in gradients]
        of_readers = [[tensor[reader] for tensor in laid] for reader in range(len(self._rates))]
        norms = torch.stack(torch._foreach_norm([part for parts in of_readers for part in parts]))
        norm = torch.linalg.vector_norm(norms.view(len(self._rates), -1), dim=1)
        scale = ((norm + 1e-6) / self._clip).clamp(min=1.0)  # what gradients are divided by
        self._moments.steps.add_(1)
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
        self._weights, self._data, self._batch, self._precision = weights.learnable(), data, batch, precision
        self._adam = StackedAdam(weights, moments, rates, clip)
        device = weights.embed.device
        self._order = torch.zeros(weights.readers, batch + 1 + data.anonymous, dtype=torch.int32, device=device)
        self._losses = torch.zeros(weights.readers, device=device)
        self._graphs: dict[Widths, torch.cuda.CUDAGraph | None] = {}
        self._capturing = graphs and device.type == "cuda"
        if self._capturing:
            self._pool, self._stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream(device)

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

    def _compute(self, widths: Widths) -> None:
        numbers, sizes, dealt = self._order.tensor_split([self._batch, self._batch + 1], dim=1)
        batch = self._data.batch(numbers, sizes[:, 0], widths, dealt)
        losses = stacked.losses(self._weights, batch, self._precision)
        self._adam.step(torch.autograd.grad(losses.sum(), self._weights.tensors()))
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


def _sliced(stack: Stack, reader: int) -> list[Tensor]:
    return [tensor.detach()[reader] for tensor in stack.tensors()]
