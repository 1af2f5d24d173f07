"""Engine `stacked`: any reader, N of them side by side: data on the device, vmap, autograd, CUDA graphs, row-wise Adam.

A reader is written for one reader. Here `torch.func.vmap` runs it for N with stacked weights: the operations of `ops/`
fold N into their kernels. The embedding table is replaced by the vectors of the batch's unique words, so the gradient
of the table is small and Adam touches few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, vmap

from asreader.batches.batch import NO_ANSWER_INDEX, Batch, Words
from asreader.batches.device import BatchShape
from asreader.ops.gather_batch import gather_batch
from asreader.ops.keyed_dropout import dropout_key
from asreader.ops.row_adam import make_adam
from asreader.ops.row_adam.reference import gather_rows
from asreader.ops.unique_rows import UniqueRows, find_unique_rows
from asreader.readers import Forward, Reading
from asreader.readers.layers import Embedding
from asreader.training.engines import Engine, JobSpec
from asreader.training.stacking.captured_step import StepOrders
from asreader.training.stacking.stacked_engine import StackedEngine, StackedTask


def supports(spec: JobSpec) -> str | None:
    """GPUs of NVIDIA and AMD; a CPU if it is asked for, where it gains nothing."""
    if spec.device.type == "cpu" and spec.settings.train.engine == "auto":
        return "a CPU is busy with one reader"
    return None if spec.device.type in ("cpu", "cuda") else f"it does not run on {spec.device.type}"


@contextmanager
def open_engine(spec: JobSpec) -> Iterator[Engine]:
    """An engine whose graphs are freed afterwards."""
    engine = StackedEngine("stacked", spec, AutogradStep, paired=False)
    try:
        yield engine
    finally:
        engine.release()


@dataclass(frozen=True)
class CompactBatch:
    """Batches of N readers whose rows number their unique rows."""

    batch: Batch
    unique: UniqueRows
    keys: Int[Tensor, " N"]
    teacher: Float[Tensor, "N B C"] | None


class AutogradStep:
    """Plain readers under vmap, differentiated by autograd."""

    def __init__(self, task: StackedTask) -> None:
        self._task = task
        self._forward = Forward(task.network).train()
        self._tables = find_tables(task.network)
        self._rows = task.stack.parameters[self._tables[0]].weights.shape[1]
        self._adam = make_adam(task.stack.parameters, self._tables, task.stack.steps, task.recipe)

    def prepare(self, order: Int[Tensor, "N columns"], shape: BatchShape) -> CompactBatch:
        """Gather the batches and number their unique rows; needs no weights."""
        task = self._task
        size = order.shape[1] - 2 - task.data.anonymous
        orders = StepOrders.unpack(order, size)
        batch = gather_batch(task.data, orders.examples, shape, orders.shuffled_rows, orders.keys)
        is_present = torch.arange(size, device=order.device) < orders.sizes[:, None]
        batch = replace(batch, answers=torch.where(is_present, batch.answers, NO_ANSWER_INDEX))
        compact, unique = compact_batch(batch, shape, self._rows)
        teacher = None if task.teacher is None else task.teacher[orders.examples.long()]
        return CompactBatch(compact, unique, orders.keys, teacher)

    def learn(self, prepared: CompactBatch) -> Float[Tensor, " N"]:
        """Losses, gradients, one step of Adam."""
        task = self._task
        # Created in every step: autograd remembers the stream of a leaf's first use, and capturing has its own.
        weights = {name: own.weights.detach() for name, own in task.stack.parameters.items()}
        weights |= {name: self._adam.read_rows(name, prepared.unique) for name in self._tables}
        leaves = {name: tensor.requires_grad_() for name, tensor in weights.items()}
        self._forward.train()
        axes = (0, 0, 0, None if prepared.teacher is None else 0)
        run = vmap(self._compute_loss, in_dims=axes)
        losses = run(leaves, prepared.batch.tensors(), prepared.keys, prepared.teacher)
        gradients = torch.autograd.grad(losses.sum(), list(leaves.values()), allow_unused=True, materialize_grads=True)
        self._adam.step(dict(zip(leaves, gradients, strict=True)), prepared.unique)
        return losses.detach()

    def _compute_loss(
        self, weights: dict[str, Tensor], tensors: dict[str, Tensor], key: Tensor, teacher: Tensor | None
    ) -> Float[Tensor, ""]:
        batch = Batch.from_tensors(tensors, is_compact=True)
        with dropout_key(key):
            reading = self._read(weights, batch)
        return reading.compute_losses(batch.answers, teacher, self._task.teacher_weight).mean

    def _read(self, weights: dict[str, Tensor], batch: Batch) -> Reading:
        named = {f"network.{name}": tensor for name, tensor in weights.items()}
        precision = self._task.precision
        with torch.autocast(
            batch.answers.device.type, precision, enabled=precision != torch.float32, cache_enabled=False
        ):
            reading: Reading = functional_call(self._forward, named, (batch,))
        return reading

    def read_batch(self, weights: dict[str, Tensor], batch: Batch, shape: BatchShape) -> Reading:
        """Read a batch for each reader without learning."""
        compact, unique = compact_batch(batch, shape, self._rows)
        weights = weights | {name: gather_rows(weights[name], unique) for name in self._tables}
        self._forward.eval()

        def read_one(own: dict[str, Tensor], tensors: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
            reading = self._read(own, Batch.from_tensors(tensors, is_compact=True))
            return reading.log_attention, reading.log_probabilities

        return Reading(*vmap(read_one)(weights, compact.tensors()))

    def synchronize(self) -> None:
        """Bring all rows of the tables up to date."""
        self._adam.synchronize()


def compact_batch(batch: Batch, shape: BatchShape, rows: int) -> tuple[Batch, UniqueRows]:
    """The batch with numbers of unique rows in the place of rows of the embedding table."""
    examples, candidates = batch.candidates.shape[-2:]
    beside = torch.cat([batch.question.rows, batch.candidates], dim=-1)
    unique = find_unique_rows(batch.document.rows, beside, rows, shape.unique, shape.tokens + examples * candidates)

    def number(values: Int[Tensor, "N B some"]) -> Int[Tensor, "N B some"]:
        return unique.numbers.gather(1, values.flatten(1).long()).view_as(values)

    document = unique.document.index.transpose(1, 2)
    order = unique.document.by_row if document.device.type == "cuda" else None
    compact = replace(
        batch,
        document=Words(document, batch.document.lengths, is_compact=True, table_rows=unique.rows, order=order),
        question=Words(number(batch.question.rows), batch.question.lengths, is_compact=True, table_rows=unique.rows),
        candidates=number(batch.candidates),
    )
    return compact, unique


def find_tables(network: nn.Module) -> list[str]:
    """Names of the parameters that are embedding tables of words."""
    return [f"{name}.weight" for name, module in network.named_modules() if isinstance(module, Embedding)]
