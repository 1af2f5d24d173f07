"""Engine `fused_attention_sum`: the one-layer Attention Sum Reader on a GPU, by a hand-written step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from asreader import ops, readers
from asreader.batches.batch import Batch
from asreader.batches.device import BatchShape
from asreader.ops import Workload
from asreader.ops.gather_batch import gather_batch
from asreader.ops.pointer_sum import pointer_sum
from asreader.ops.row_adam.reference import gather_rows
from asreader.ops.unique_rows import find_unique_rows
from asreader.readers import Reading
from asreader.training.engines import Engine, JobSpec
from asreader.training.fused.encoder_weights import ENCODERS, EncoderWeights
from asreader.training.stacking.captured_step import StepOrders
from asreader.training.stacking.stacked_engine import StackedEngine, StackedTask

MAX_TEACHER_CANDIDATES = 64
"""With a teacher a sum over the document is taken for each candidate, which costs memory."""


def supports(spec: JobSpec) -> str | None:
    """attention_sum with one layer, normalised over the document, on a GPU with a kernel for its size."""
    if spec.settings.reader_name != "attention_sum":
        return f"the reader is {spec.settings.reader_name}, not attention_sum"
    defaults = {name: setting.default for name, setting in readers.settings("attention_sum").items()}
    options = defaults | spec.settings.reader_options
    if options["layers"] != 1 or options["normalise"] != "document":
        return "the reader has more than one layer or is normalised over candidates"
    if spec.device.type != "cuda":
        return "runs on a GPU only"
    choice = ops.choose("gru", Workload(spec.device, spec.precision, int(options["hidden"])))
    return None if choice.implementation in ("cuda", "triton") else f"no GRU kernel for hidden={options['hidden']}"


@contextmanager
def open_engine(spec: JobSpec) -> Iterator[Engine]:
    """An engine whose graphs are freed afterwards."""
    dropout = float(spec.settings.reader_options.get("dropout", 0.0))
    engine = StackedEngine("fused_attention_sum", spec, partial(FusedStep, dropout=dropout), paired=True)
    try:
        yield engine
    finally:
        engine.release()


class FusedStep:
    """Hand-written gradients, deferred Adam."""

    def __init__(self, task: StackedTask, dropout: float = 0.0) -> None:
        from asreader.training.fused.deferred_adam import DeferredAdam  # needs Triton

        self._task, self._dropout = task, dropout
        weights = task.stack.parameters["document_encoder.layers.0.weight_hh_l0"].weights
        self._rows = task.stack.parameters["embed.weight"].weights.shape[1]
        self._gru = ops.select("gru", Workload(weights.device, task.precision, weights.shape[-1]))
        self._adam = DeferredAdam(task.stack, task.recipe, task.precision)

    def prepare(self, order: Int[Tensor, "N columns"], shape: BatchShape) -> object:
        """Gather the batches and number their unique rows; needs no weights."""
        from asreader.training.fused.gradients import FusedBatch

        task = self._task
        size = order.shape[1] - 2 - task.data.anonymous
        orders = StepOrders.unpack(order, size)
        batch = gather_batch(task.data, orders.examples, shape, orders.shuffled_rows, orders.keys)
        unique = find_unique_rows(batch.document.rows, batch.question.rows, self._rows, shape.unique, shape.tokens)
        is_present = torch.arange(size, device=order.device) < orders.sizes[:, None]
        is_counted = is_present & task.data.supported[orders.examples.long()]
        teacher = None if task.teacher is None else task.teacher[orders.examples.long()]
        return FusedBatch.prepare(batch, unique, orders.keys, is_counted, teacher)

    def learn(self, prepared: object) -> Float[Tensor, " N"]:
        """Losses, gradients, one step of Adam."""
        from asreader.training.fused.gradients import ForwardInputs, FusedBatch, compute_gradients

        assert isinstance(prepared, FusedBatch)
        adam = self._adam
        inputs = ForwardInputs(
            self._gru,
            partial(adam.read_vectors, prepared.unique),
            partial(adam.apply_pending, 0),
            partial(adam.apply_pending, 1),
            prepared,
            self._dropout,
            self._task.teacher_weight,
        )
        with torch.no_grad():
            found = compute_gradients(inputs, *adam.pending_gradients)
            adam.enqueue_update(found.to_vectors, found.squares, prepared.unique)
        return found.losses

    def read_batch(self, weights: dict[str, Tensor], batch: Batch, shape: BatchShape) -> Reading:
        """Read a batch for each reader without learning."""
        from asreader.ops.gru.kernel_weights import KernelWeights, append_ones
        from asreader.training.fused.gradients import ForwardInputs, FusedBatch, compute_scores

        precision = self._task.precision
        unique = find_unique_rows(batch.document.rows, batch.question.rows, self._rows, shape.unique, shape.tokens)
        vectors = append_ones(gather_rows(weights["embed.weight"], unique).to(precision))

        def pack(encoder: str) -> KernelWeights:
            own = EncoderWeights.select(weights, encoder)
            return KernelWeights.pack(own.inputs, own.recurrent, *own.combined_biases(), precision)

        everything = torch.ones_like(batch.answers, dtype=torch.bool)
        prepared = FusedBatch.prepare(batch, unique, batch.answers[:, 0], everything)
        document, question = (partial(pack, encoder) for encoder in ENCODERS)
        scores = compute_scores(ForwardInputs(self._gru, lambda: vectors, document, question, prepared))
        log_attention = scores.masked_fill(~batch.in_document, -torch.inf).log_softmax(dim=-1)
        support = pointer_sum(log_attention.flatten(0, 1), batch.candidate_at.flatten(0, 1), batch.candidate_count)
        return Reading(log_attention, support.unflatten(0, scores.shape[:2]))

    def synchronize(self) -> None:
        """Apply all deferred updates."""
        self._adam.synchronize()
