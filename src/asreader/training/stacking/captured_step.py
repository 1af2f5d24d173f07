"""a step of N readers -> the same as two CUDA graphs: one prepares the batch, the other learns from it.

Nothing here waits for the device. On a GPU a step is some hundred small launches; the second time a shape occurs they
are captured, and from then on the step is two launches. Preparing needs no weights and runs while the step before is
still learning. The first time is an ordinary step, in which libraries and kernels of that shape are set up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader.batches.device import BatchShape
from asreader.ops.streams import HIGH_PRIORITY
from asreader.system.progress import print_status

Prepared = TypeVar("Prepared")
Result = TypeVar("Result")


@dataclass(frozen=True)
class StepOrders:
    """What one step of each reader is about, on the device."""

    examples: Int[Tensor, "N B"]
    sizes: Int[Tensor, " N"]  # only the first of a batch count; a short one is filled up
    keys: Int[Tensor, " N"]
    shuffled_rows: Int[Tensor, "N anonymous"]

    @classmethod
    def unpack(cls, packed: Int[Tensor, "N columns"], batch: int) -> StepOrders:
        """From one tensor, as it is sent to the device: examples, size, key, shuffled rows."""
        examples, size_and_key, rows = packed.clone().tensor_split([batch, batch + 2], dim=1)
        sizes, keys = size_and_key.unbind(dim=1)
        return cls(examples, sizes, keys, rows)


@dataclass(frozen=True)
class _Graphs(Generic[Prepared]):
    """What the first graph makes lies where the second looks for it, and stays there."""

    prepare: torch.cuda.CUDAGraph
    learn: torch.cuda.CUDAGraph
    between: Prepared  # held, so that no other graph gets its memory
    prepared: torch.cuda.Event
    learned: torch.cuda.Event


class CapturedStep(Generic[Prepared]):
    """`prepare` and `learn` one after the other, by themselves or as captured graphs."""

    def __init__(
        self,
        prepare: Callable[[Int[Tensor, "N columns"], BatchShape], Prepared],
        learn: Callable[[Prepared], Float[Tensor, " N"]],
        order_like: Int[Tensor, "N columns"],
        *,
        capture: bool = True,
    ) -> None:
        self._prepare, self._compute = prepare, learn
        device = order_like.device
        self._losses = torch.zeros(len(order_like), device=device)
        self._graphs: dict[BatchShape, list[_Graphs[Prepared]]] = {}
        self._last: _Graphs[Prepared] | None = None
        self._is_capturing = capture and device.type == "cuda"
        if self._is_capturing:
            self._order = torch.zeros_like(order_like)
            self._pool = torch.cuda.graph_pool_handle()
            self._stream, self._ahead = _make_streams(device)

    def take(self, order: Int[Tensor, "N columns"], shape: BatchShape) -> Float[Tensor, " N"]:
        """One step; the losses stand in memory that the next step overwrites.

        An order in pinned memory of the host can be sent while the device is still busy with the steps before.
        """
        graphs = self._find_graphs(shape) if self._is_capturing and shape in self._graphs else None
        self._graphs.setdefault(shape, [])
        if graphs is None:
            self._learn(self._prepare(order.to(self._losses.device, non_blocking=True), shape))
        else:
            self._replay(graphs, order)
        self._last = graphs
        return self._losses

    def _learn(self, prepared: Prepared) -> None:
        self._losses.copy_(self._compute(prepared))

    def _find_graphs(self, shape: BatchShape) -> _Graphs[Prepared] | None:
        """Graphs of a shape, not those of the step before: they cannot prepare while it learns."""
        graphs = self._graphs[shape]
        found = next((each for each in graphs if each is not self._last), None)
        if found is None:
            found = self._capture(shape)
            graphs += [found] if found else []
        return found

    def _replay(self, graphs: _Graphs[Prepared], order: Int[Tensor, "N columns"]) -> None:
        here = torch.cuda.current_stream()
        if order.is_cuda:
            self._ahead.wait_stream(here)
        self._ahead.wait_event(graphs.learned)  # the last step that read what will be overwritten
        with torch.cuda.stream(self._ahead):
            self._order.copy_(order, non_blocking=True)
            graphs.prepare.replay()
        graphs.prepared.record(self._ahead)
        here.wait_event(graphs.prepared)
        graphs.learn.replay()
        graphs.learned.record(here)

    def _capture(self, shape: BatchShape) -> _Graphs[Prepared] | None:
        """Both graphs of a shape. Those that learn run one after the other and keep nothing, so they share memory;
        those that prepare have memory of their own, because their results must outlast the others' work."""
        here = torch.cuda.current_stream()
        self._stream.wait_stream(here)
        try:
            prepare, between = self._capture_graph(lambda: self._prepare(self._order, shape))
            learn, _ = self._capture_graph(lambda: self._learn(between), self._pool)
        except RuntimeError as error:
            print_status(
                f"CUDA graphs cannot be used here, steps are launched one by one: {str(error).splitlines()[0]}"
            )
            self._is_capturing = False
            return None
        here.wait_stream(self._stream)
        graphs = _Graphs(prepare, learn, between, torch.cuda.Event(), torch.cuda.Event())
        graphs.learned.record(here)
        return graphs

    def _capture_graph(self, work: Callable[[], Result], pool: Any = None) -> tuple[torch.cuda.CUDAGraph, Result]:
        """Some work as a graph, and what it makes when the graph is launched."""
        graph = torch.cuda.CUDAGraph()
        # Not torch.cuda.graph(): it empties the allocator's cache each time, which the next ordinary step would refill.
        with torch.cuda.stream(self._stream):
            graph.capture_begin(pool=pool)
            try:
                return graph, work()
            finally:
                graph.capture_end()


@cache
def _make_streams(device: torch.device) -> tuple[torch.cuda.Stream, torch.cuda.Stream]:
    """For capturing and for preparing ahead: libraries keep a workspace for every stream they meet."""
    return torch.cuda.Stream(device, priority=HIGH_PRIORITY), torch.cuda.Stream(device)
