"""a batch for each of N readers -> one step of training of all of them, by itself or as one captured graph.

Nothing here waits for the device. On a GPU a step is some hundred small launches; the second time a width occurs they
are recorded as two CUDA graphs, and from then on the step is two launches: one puts the batch together, which needs no
weights and so is done while the step before is still at work; the other learns from it. (The first time is an ordinary
step, in which libraries and kernels of that width get ready, so that no step is computed only to warm up.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader.data.resident import ReadersBatch, Resident, Widths
from asreader.kernels.words import DistinctWords, distinct
from asreader.progress import say
from asreader.training import stacked
from asreader.training.stacked import Early, Lesson, Stack

if TYPE_CHECKING:
    from asreader.kernels.lazy_adam import Tables

_Made = TypeVar("_Made")
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


@dataclass(frozen=True)
class Recipe:
    """How readers of one stack learn; the defaults are the paper's."""

    rates: Sequence[float]  # each reader's own
    clip: float
    precision: torch.dtype
    factors: Sequence[float] = (1.0,)  # of the rates, step by step; the last one stays
    average: float = 0.0  # what a step keeps of the moving average of weights; 0: there is none
    dropout: float = 0.0
    taught: Float[Tensor, "examples C"] | None = None  # what a teacher says of every candidate
    teacher_weight: float = 0.0


class StackedAdam:
    """torch.optim.Adam after clip_grad_norm_, for readers of one stack; each has its own norm and learning rate."""

    def __init__(self, weights: Stack, moments: Moments, recipe: Recipe, average: Stack | None = None) -> None:
        self._weights, self._moments, self._average, self._recipe = weights, moments, average, recipe
        device = weights.embed.device
        self._rates, self._factors = (torch.tensor(each, device=device) for each in (recipe.rates, recipe.factors))
        self._table = self._lazy_table()

    def vectors(self, words: DistinctWords) -> tuple[Float[Tensor, "N W E"], Float[Tensor, "N W E_and_8"] | None]:
        """Those that a batch is about to read, perhaps also with a one behind each, whatever their rows have missed."""
        if self._table is None:
            return stacked.vectors(self._weights, words), None
        wide = self._table.vectors(self._moments.steps[:, 0], words, self._recipe.precision)
        return wide[..., : self._weights.embed.shape[2]], wide

    def settle(self) -> None:
        """Bring all rows up to date, for whoever else reads the weights."""
        if self._table is not None:
            self._table.settle(self._moments.steps[:, 0])

    def step(self, gradients: Sequence[Tensor], words: DistinctWords) -> None:
        """Change the weights by the gradients, which are used up: of the words' vectors, then of all other weights."""
        # The fused step goes through memory as it lies; autograd is free to hand out a transposed gradient.
        laid = [tensor.contiguous() for tensor in gradients]
        self._moments.steps.add_(1)
        if self._table is None:
            norms = torch.stack(torch._foreach_norm([own for tensor in laid for own in tensor]))
            squares = norms.view(-1, len(self._rates)).square().sum(dim=0)
            scale = ((squares.sqrt() + 1e-6) / self._recipe.clip).clamp(min=1.0)  # what gradients are divided by
            self._plain_step([_whole(laid[0], words, self._weights.embed), *laid[1:]], scale)
        else:
            from asreader.kernels import clipping

            scale = clipping.divisors(laid, self._recipe.clip)
            self._table.update(laid[0], scale, self._moments.steps[:, 0], words)
            parts = (self._weights, self._moments.first, self._moments.second, self._average or self._weights)
            others = zip(*(part.tensors()[1:] for part in parts), laid[1:], strict=True)
            for weights, first, second, average, gradient in others:
                mean = None if self._average is None else average
                self._table.step(weights.detach(), first, second, mean, gradient, scale, self._moments.steps[:, 0])

    def _plain_step(self, gradients: Sequence[Tensor], scale: Float[Tensor, " N"]) -> None:
        parts = (self._weights, self._moments.first, self._moments.second)
        step = self._moments.steps[:, 0]
        rates = self._rates * self._factors[(step.long() - 1).clamp(max=len(self._factors) - 1)]
        for reader, rate in enumerate(rates):
            weights, first, second = ([tensor.detach()[reader] for tensor in part.tensors()] for part in parts)
            torch._fused_adam_(
                weights,
                [gradient[reader] for gradient in gradients],
                first,
                second,
                [],
                [self._moments.steps[reader, 0]] * len(weights),
                lr=rate,
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=0.0,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
                grad_scale=scale[reader],
            )
        if self._average is not None:
            keep = self._recipe.average
            share = (1 - keep) / (1 - keep**step)
            for average, present in zip(self._average.tensors(), self._weights.tensors(), strict=True):
                average.lerp_(present.detach(), share.view(-1, *[1] * (present.dim() - 1)))

    def _lazy_table(self) -> Tables | None:
        """On a GPU most rows of the table need not be touched in a step; a CPU has no kernel for it."""
        if self._weights.embed.device.type != "cuda":
            return None
        try:
            from asreader.kernels import lazy_adam
        except ImportError:
            return None
        parts = (self._weights, self._moments.first, self._moments.second)
        vectors, first, second = (part.embed.detach() for part in parts)
        return lazy_adam.tables(
            vectors,
            first,
            second,
            self._rates,
            self._moments.steps[:, 0],
            factors=self._factors,
            average=None if self._average is None else self._average.embed,
            keep=self._recipe.average,
        )


@dataclass(frozen=True)
class Prepared:
    """What the step of a stack works on; nothing of it depends on weights."""

    batch: ReadersBatch
    words: DistinctWords
    numbers: Int[Tensor, "N B"]  # of the examples
    keys: Int[Tensor, " N"]

    def complete(self) -> None:
        """Make what would otherwise be made when it is first asked for."""
        wanted: list[object] = [self.batch.readable, self.batch.answer_at]
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
        self._adam = StackedAdam(weights, moments, recipe, average)
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
        batch = self._data.batch(numbers, sizes, widths, dealt, keys)
        words = distinct(batch.document, batch.question, self._weights.embed.shape[1], widths.words, widths.lines)
        prepared = Prepared(batch, words, numbers, keys)
        prepared.complete()
        return prepared

    def _learn(self, prepared: Prepared) -> None:
        batch, words = prepared.batch, prepared.words
        # Made anew each time: autograd remembers the stream on which a leaf was first used, and recording has its own.
        weights, lesson = self._weights.learnable(), self._lesson(prepared.numbers, prepared.keys)
        beside = stacked.beside(weights, lesson.precision)
        vectors, wide = self._adam.vectors(words)
        losses = stacked.losses(weights, vectors.requires_grad_(), words, batch, lesson, Early(beside, wide))
        self._adam.step(torch.autograd.grad(losses.sum(), (vectors, *weights.tensors()[1:])), words)
        self._losses.copy_(losses.detach())

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
            say(f"CUDA graphs cannot be used here, steps are launched one by one: {str(error).splitlines()[0]}")
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
    """Those on which a lane records, and works ahead: libraries keep a workspace for every stream they meet."""
    return torch.cuda.Stream(device), torch.cuda.Stream(device)


def _whole(
    gradient: Float[Tensor, "N W E"], words: DistinctWords, like: Float[Tensor, "N V E"]
) -> Float[Tensor, "N V E"]:
    """The gradient of whole tables; unused room has none, so that it adds nothing to the row it names."""
    return torch.zeros_like(like).scatter_add_(1, words.rows.long()[..., None].expand_as(gradient), gradient)
