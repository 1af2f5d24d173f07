"""a batch for each of N readers -> one step of training of all of them, by itself or as one captured graph.

Nothing here waits for the device. On a GPU a step is some hundred small launches; the second time a width occurs they
are recorded as two CUDA graphs, and from then on the step is two launches: one puts the batch together, which needs no
weights and so is done while the step before is still at work; the other learns from it. (The first time is an ordinary
step, in which libraries and kernels of that width get ready, so that no step is computed only to warm up.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from types import ModuleType
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader.batches.device import ReadersBatch, Resident, Widths
from asreader.kernels.beside import FIRST
from asreader.kernels.words import DistinctWords, distinct
from asreader.system.progress import print_status
from asreader.training import stacked
from asreader.training.stacked import Lesson, Stack
from asreader.training.stacked_adam import Moments, OwingAdam, Recipe, StackedAdam, adam

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Prepared:
    """What the step of a stack works on; nothing of it depends on weights."""

    batch: ReadersBatch
    words: DistinctWords
    numbers: Int[Tensor, "N B"]  # of the examples
    keys: Int[Tensor, " N"]

    def complete(self) -> None:
        """Make what would otherwise be made when it is first asked for."""
        wanted: list[object] = [self.batch.readable, self.batch.answer_at, self.batch.shares]
        if self.words.rows.device.type == "cuda":
            wanted += [places.by_word for places in (self.words.document, self.words.question, self.words.lines)]


@dataclass(frozen=True)
class Recorded:
    """A step as graphs. What the first makes lies where the second looks for it, and stays there."""

    prepare: torch.cuda.CUDAGraph
    learn: torch.cuda.CUDAGraph
    between: Prepared  # held, so that no other graph gets its memory
    prepared: torch.cuda.Event
    learnt: torch.cuda.Event


class Step:
    """The step of a stack. Each reader's order is a row of numbers: B examples, how many count, a key, dealt rows."""

    def __init__(
        self,
        weights: Stack,
        moments: Moments,
        data: Resident,
        *,
        batch: int,
        recipe: Recipe,
        average: Stack | None = None,
        graphs: bool = True,
        lane: int = 0,  # steps of different lanes may run at the same time, each on a stream of its own
    ) -> None:
        self._weights, self._data, self._batch, self._recipe = weights, data, batch, recipe
        self._adam = adam(weights, moments, recipe, average)
        self._way = stacked.kernels(weights, recipe.precision)
        device = weights.embed.device
        self._losses = torch.zeros(weights.readers, device=device)
        self._graphs: dict[Widths, list[Recorded]] = {}
        self._last: Recorded | None = None
        self._capturing = graphs and device.type == "cuda"
        if self._capturing:
            self._order = torch.zeros(weights.readers, batch + 2 + data.anonymous, dtype=torch.int32, device=device)
            self._pool = torch.cuda.graph_pool_handle()
            self._stream, self._ahead = _streams(device, lane)

    def take(self, order: Int[Tensor, "N columns"], widths: Widths) -> Float[Tensor, " N"]:
        """Train every reader on its batch; the losses stand in memory that the next step overwrites.

        An order in pinned memory of the host can be worked on while the device is still at the steps before.
        """
        recorded = self._ready(widths) if self._capturing and widths in self._graphs else None
        self._graphs.setdefault(widths, [])
        if recorded is None:
            self._learn(self._prepare(order.to(self._losses.device, non_blocking=True), widths))
        else:
            self._replay(recorded, order)
        self._last = recorded
        return self._losses

    def _ready(self, widths: Widths) -> Recorded | None:
        """Graphs of a width, not those of the step before: they could not be prepared while it is at work."""
        graphs = self._graphs[widths]
        found = next((recorded for recorded in graphs if recorded is not self._last), None)
        if found is None:
            found = self._recorded(widths)
            graphs += [found] if found else []
        return found

    def _replay(self, recorded: Recorded, order: Int[Tensor, "N columns"]) -> None:
        here = torch.cuda.current_stream()
        if order.is_cuda:
            self._ahead.wait_stream(here)
        self._ahead.wait_event(recorded.learnt)  # the last that learnt from what will be written over
        with torch.cuda.stream(self._ahead):
            self._order.copy_(order, non_blocking=True)
            recorded.prepare.replay()
        recorded.prepared.record(self._ahead)
        here.wait_event(recorded.prepared)
        recorded.learn.replay()
        recorded.learnt.record(here)

    def settle(self) -> None:
        """Make the weights whole, for whoever reads them between steps."""
        self._adam.settle()

    def _prepare(self, order: Int[Tensor, "N columns"], widths: Widths) -> Prepared:
        numbers, sizes_and_keys, dealt = order.clone().tensor_split([self._batch, self._batch + 2], dim=1)
        sizes, keys = sizes_and_keys.unbind(dim=1)
        batch = stacked.gathered(self._data, numbers, sizes, widths, dealt, keys)
        words = distinct(batch.document, batch.question, self._weights.embed.shape[1], widths.words, widths.lines)
        prepared = Prepared(batch, words, numbers, keys)
        prepared.complete()
        return prepared

    def _learn(self, prepared: Prepared) -> None:
        lesson = self._lesson(prepared.numbers, prepared.keys)
        if self._way is not None and isinstance(self._adam, OwingAdam):
            losses = self._learn_by_kernels(self._way, self._adam, prepared, lesson)
        else:
            losses = self._learn_plainly(self._adam, prepared, lesson)
        self._losses.copy_(losses)

    def _learn_by_kernels(
        self, way: ModuleType, adam: OwingAdam, prepared: Prepared, lesson: Lesson
    ) -> Float[Tensor, " N"]:
        from asreader.training import stacked_kernels

        words = prepared.words
        document, question = (partial(adam.ready, encoder) for encoder in (0, 1))
        vectors = partial(adam.vectors, words)
        task = stacked_kernels.Task(way, vectors, document, question, words, prepared.batch, lesson)
        learnt = stacked_kernels.learnt(task, *adam.owed)
        adam.owe(learnt.to_vectors, learnt.squares, words)
        return learnt.losses

    def _learn_plainly(self, adam: StackedAdam | OwingAdam, prepared: Prepared, lesson: Lesson) -> Float[Tensor, " N"]:
        # Made anew each time: autograd remembers the stream on which a leaf was first used, and recording has its own.
        weights, words = self._weights.learnable(), prepared.words
        vectors = adam.vectors(words)[..., : weights.embed.shape[2]].requires_grad_()
        losses = stacked.losses(weights, vectors, words, prepared.batch, lesson)
        adam.step(torch.autograd.grad(losses.sum(), (vectors, *weights.tensors()[1:])), words)
        return losses.detach()

    def _lesson(self, numbers: Int[Tensor, "N B"], keys: Int[Tensor, " N"]) -> Lesson:
        recipe = self._recipe
        said = None if recipe.taught is None else recipe.taught[numbers.long()]
        return Lesson(recipe.precision, recipe.dropout, keys, said, recipe.teacher_weight)

    def _recorded(self, widths: Widths) -> Recorded | None:
        """Both graphs of a width. Those that learn run one after the other and keep nothing, so they share memory;
        those that prepare have memory of their own, for what one has made must outlast the others' work."""
        here = torch.cuda.current_stream()
        self._stream.wait_stream(here)
        try:
            prepare, between = self._graph(lambda: self._prepare(self._order, widths))
            learn, _ = self._graph(lambda: self._learn(between), self._pool)
        except RuntimeError as error:
            print_status(
                f"CUDA graphs cannot be used here, steps are launched one by one: {str(error).splitlines()[0]}"
            )
            self._capturing = False
            return None
        here.wait_stream(self._stream)
        recorded = Recorded(prepare, learn, between, torch.cuda.Event(), torch.cuda.Event())
        recorded.learnt.record(here)
        return recorded

    def _graph(self, work: Callable[[], _Made], pool: Any = None) -> tuple[torch.cuda.CUDAGraph, _Made]:
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
def _streams(device: torch.device, lane: int) -> tuple[torch.cuda.Stream, torch.cuda.Stream]:
    """Those on which a lane records, and works ahead: libraries keep a workspace for every stream they meet.

    What is done ahead can wait where there is not room for all.
    """
    return torch.cuda.Stream(device, priority=FIRST), torch.cuda.Stream(device)
