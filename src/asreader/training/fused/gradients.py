"""vectors and weights of N Attention Sum Readers -> scores, losses and gradients, by the kernels of a GPU.

The network is that of `readers/attention_sum`. Every gradient is written out, because it matters what runs when: the
recurrence of the documents leaves a part of the device unused, and everything that the questions need runs there at the
same time, forward and backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from asreader.batches.batch import Batch
from asreader.ops import gru
from asreader.ops.attention_loss import compute_loss_gradients
from asreader.ops.attention_scores import triton as score_kernels
from asreader.ops.grad_norm.triton import sum_squares
from asreader.ops.gru import RecurrenceResult, batched_product
from asreader.ops.gru.kernel_weights import EXTRA_COLUMNS, KernelWeights, append_ones
from asreader.ops.keyed_dropout import drop_for_readers
from asreader.ops.pointer_sum import pointer_sum
from asreader.ops.segment_sum import Positions, SegmentSum, start_sum
from asreader.ops.streams import SideStreams
from asreader.ops.unique_rows import UniqueRows
from asreader.readers import Reading
from asreader.training.fused.encoder_weights import EncoderWeights


@dataclass(frozen=True)
class FusedBatch:
    """A batch for each of N readers, and what of it needs no weights."""

    batch: Batch
    unique: UniqueRows
    keys: Int[Tensor, " N"]
    is_counted: Bool[Tensor, "N B"]  # False: fills up a short batch, or the answer is not mentioned
    answer_at: Bool[Tensor, "N B T"]  # where the answer is mentioned; the whole document where nothing is counted
    weights: Float[Tensor, " N"]  # of an example in its reader's mean loss
    teacher: Float[Tensor, "N B C"] | None = None

    @classmethod
    def prepare(
        cls,
        batch: Batch,
        unique: UniqueRows,
        keys: Int[Tensor, " N"],
        is_counted: Bool[Tensor, "N B"],
        teacher: Float[Tensor, "N B C"] | None = None,
    ) -> FusedBatch:
        """With everything that can be computed before the step before it has ended."""
        is_answer = batch.candidate_at[..., 0] == batch.answers[..., None]
        # No sum is empty: an infinite loss times a weight of zero would still not be a number.
        answer_at = torch.where(is_counted[..., None], is_answer, batch.in_document)
        weights = 1 / is_counted.sum(dim=1).clamp(min=1).float()
        if unique.rows.device.type == "cuda":
            for positions in (unique.document, unique.question, unique.tokens):
                _ = positions.by_row  # sorted now, not in the middle of the step
        return cls(batch, unique, keys, is_counted, answer_at, weights, teacher)


@dataclass(frozen=True)
class ForwardInputs:
    """What is to be read, and how. Weights are asked for when and where they are needed: on a side stream."""

    implementation: ModuleType  # of the recurrence
    read_vectors: Callable[[], Float[Tensor, "N U E_and_8"]]  # of the unique words, with a one appended
    document_weights: Callable[[], KernelWeights]
    question_weights: Callable[[], KernelWeights]
    prepared: FusedBatch
    dropout: float = 0.0
    teacher_weight: float = 0.0

    def drop_rows(self, values: Float[Tensor, "N U E"], salt: int) -> Float[Tensor, "N U E"]:
        """Vectors of the unique words, or their gradients, after dropout."""
        if not self.dropout:
            return values
        return drop_for_readers(values, self.prepared.keys, self.dropout, salt, self.prepared.unique.rows)

    def drop_vectors(self, wide: Float[Tensor, "N U E_and_8"], salt: int) -> Float[Tensor, "N U E_and_8"]:
        """The same for vectors with ones."""
        return append_ones(self.drop_rows(wide[..., :-EXTRA_COLUMNS], salt)) if self.dropout else wide

    def drop_question(self, question: Float[Tensor, "R B H"], salt: int) -> Float[Tensor, "R B H"]:
        """The questions' vectors, or their gradients, after dropout: drawn for forward || backward."""
        if not self.dropout:
            return question
        joined = torch.cat([question[::2], question[1::2]], dim=-1)
        dropped = drop_for_readers(joined, self.prepared.keys, self.dropout, salt)
        return torch.stack(dropped.chunk(2, dim=-1), dim=1).flatten(0, 1)


@dataclass(frozen=True)
class StepGradients:
    """Losses and gradients of a step; those of the encoders' weights were written where they belong."""

    losses: Float[Tensor, " N"]
    to_vectors: Float[Tensor, "N U E"]
    squares: Sequence[Float[Tensor, "N _parts"]]  # of all gradients


def compute_scores(inputs: ForwardInputs) -> Float[Tensor, "N B T"]:
    """The products of document states and questions, in float32."""
    with SideStreams(inputs.prepared.batch.answers.device, inputs.implementation.NEEDS_WHOLE_DEVICE) as side:
        read = _read(inputs, side, keep=False)
        side.join()
        return score_kernels.score_states(read.document.result.states, read.question)


def compute_gradients(inputs: ForwardInputs, document: EncoderWeights, question: EncoderWeights) -> StepGradients:
    """Losses and gradients; those of the encoders' weights are written into `document` and `question`."""
    with SideStreams(inputs.prepared.batch.answers.device, inputs.implementation.NEEDS_WHOLE_DEVICE) as side:
        read = _read(inputs, side, keep=True)
        side.join()
        return _run_backward(inputs, read, _compute_score_gradients(inputs, read), (document, question), side)


@dataclass(frozen=True)
class _Encoded:
    """What an encoder has read, and what its backward pass needs."""

    vectors: Float[Tensor, "N U E"]
    inputs: Float[Tensor, "N both_gates E"]
    result: RecurrenceResult
    sums: SegmentSum | None  # of the gradients of each word's inputs

    def sum_table_gradients(self, out: Float[Tensor, "R T B four_H"]) -> Callable[[], Float[Tensor, "N U D gates"]]:
        """Start to sum the gradients of each word's inputs; the returned function finishes."""
        assert self.sums is not None
        return self.sums(gru.input_gradients(out))

    def write_input_gradients(self, gradient: Float[Tensor, "N U D gates"], into: Float[Tensor, "N D gates E"]) -> None:
        """Of the weights that the vectors were multiplied with."""
        batched_product(gradient.flatten(2).transpose(1, 2), self.vectors, into.flatten(1, 2))

    def vector_gradients(
        self, gradient: Float[Tensor, "N U D gates"], more: Float[Tensor, "N U E"] | None = None
    ) -> Float[Tensor, "N U E"]:
        """Of the vectors, added to `more` in place if it is given."""
        own = gradient.flatten(2)
        return torch.bmm(own, self.inputs) if more is None else more.baddbmm_(own, self.inputs)

    def write_recurrent_gradients(self, out: Float[Tensor, "R T B four_H"], into: EncoderWeights) -> None:
        """Of the recurrent weights."""
        gru.weight_gradients(out, self.result, into.recurrent.flatten(0, 1))


def _write_bias_gradients(
    out: Float[Tensor, "R T B four_H"], sums: Float[Tensor, "R four_H"] | None, into: EncoderWeights
) -> None:
    """Of the inputs' biases and the recurrent ones."""
    to_product, resets_and_updates, to_new = gru.bias_gradients(out, sums).tensor_split([1, 3], dim=1)
    for biases, last in ((into.input_biases, to_new), (into.recurrent_biases, to_product)):
        torch.cat([resets_and_updates, last], dim=1, out=biases.unflatten(2, (3, -1)).flatten(0, 1))


@dataclass(frozen=True)
class _ReadBatch:
    """What scores are made of, and what the backward pass needs of the forward one."""

    document: _Encoded
    asked: _Encoded
    question: Float[Tensor, "R B H"]
    token_sums: SegmentSum | None  # of the gradients of the questions' words


def _read(inputs: ForwardInputs, side: SideStreams, keep: bool) -> _ReadBatch:
    """Both encoders' forward pass; work on side streams goes on."""
    unique, batch = inputs.prepared.unique, inputs.prepared.batch
    with side.run("weights"):
        weights = inputs.document_weights()
    vectors = inputs.read_vectors()
    side.join()
    read = inputs.drop_vectors(vectors, 0)
    document = weights.recurrence_inputs(read, unique.document, batch.document.lengths)
    side.fork()  # nothing else may keep the long recurrence from starting
    result = gru.run_forward(inputs.implementation, document, keep)
    with side.run("questions"):
        asked_weights = inputs.question_weights()
        tokens = _gather_vectors(inputs.drop_vectors(vectors, 1), unique.tokens)
        asked = asked_weights.recurrence_inputs(tokens, unique.question, batch.question.lengths)
        asked_result = gru.run_forward(inputs.implementation, asked, keep)
        question = inputs.drop_question(_last_states(asked_result.states), 2)
        like = vectors[:, :, None, :-EXTRA_COLUMNS]
        each = ((unique.document, document.table), (unique.question, asked.table), (unique.tokens, like))
        # Sums of rows that stand nowhere are cleared now, while the recurrence runs.
        sums, asked_sums, token_sums = (start_sum(where, table) if keep else None for where, table in each)
    return _ReadBatch(
        _Encoded(read[..., :-EXTRA_COLUMNS], weights.inputs[..., :-EXTRA_COLUMNS], result, sums),
        _Encoded(tokens[..., :-EXTRA_COLUMNS], asked_weights.inputs[..., :-EXTRA_COLUMNS], asked_result, asked_sums),
        question,
        token_sums,
    )


@dataclass(frozen=True)
class _ScoreGradients:
    """What is learned from the scores."""

    losses: Callable[[], Float[Tensor, " N"]]
    to_scores: Float[Tensor, "N B T"]
    to_question: Float[Tensor, "R B H"]


def _compute_score_gradients(inputs: ForwardInputs, read: _ReadBatch) -> _ScoreGradients:
    """Losses, and the gradients of scores and questions."""
    prepared, batch, states = inputs.prepared, inputs.prepared.batch, read.document.result.states
    if prepared.teacher is None:
        found = compute_loss_gradients(states, read.question, batch.in_document, prepared.answer_at, prepared.weights)
        return _ScoreGradients(lambda: found.losses.sum(dim=1) * prepared.weights, found.to_scores, found.to_question)
    with torch.enable_grad():
        scores = score_kernels.score_states(states, read.question).requires_grad_()
        losses = _compute_teacher_losses(scores, prepared, inputs.teacher_weight)
        to_scores = torch.autograd.grad(losses.sum(), scores)[0].contiguous()
    to_question = score_kernels.sum_states(to_scores, states).to(read.question.dtype)
    return _ScoreGradients(losses.detach, to_scores, to_question)


def _compute_teacher_losses(scores: Float[Tensor, "N B T"], prepared: FusedBatch, weight: float) -> Float[Tensor, " N"]:
    """The losses of `Reading.compute_losses` with a teacher."""
    assert prepared.teacher is not None
    batch, shape = prepared.batch, scores.shape[:2]
    log_attention = scores.masked_fill(~batch.in_document, -torch.inf).log_softmax(dim=-1).flatten(0, 1)
    support = pointer_sum(log_attention, batch.candidate_at.flatten(0, 1), batch.candidate_count)
    answers = torch.where(prepared.is_counted, batch.answers, -1).flatten()
    losses = Reading(log_attention, support).compute_losses(answers, prepared.teacher.flatten(0, 1), weight)
    return losses.values.view(shape).sum(dim=1) * prepared.weights


def _run_backward(
    inputs: ForwardInputs,
    read: _ReadBatch,
    gradients: _ScoreGradients,
    into: tuple[EncoderWeights, EncoderWeights],
    side: SideStreams,
) -> StepGradients:
    documents, asked, (document_gradients, question_gradients) = read.document, read.asked, into
    side.fork()
    # A state's gradient is its question's vector times its score's.
    out, sums = gru.run_backward(documents.result, read.question, gradients.to_scores)
    with side.run("questions"):
        to_question = inputs.drop_question(gradients.to_question, 2)
        at_ends = _last_positions(*asked.result.states.shape[:3], to_question.device)
        asked_out, asked_sums = gru.run_backward(asked.result, to_question.contiguous(), at_ends)
        to_tokens = asked.sum_table_gradients(asked_out)()
        assert read.token_sums is not None
        to_vectors = inputs.drop_rows(read.token_sums(asked.vector_gradients(to_tokens))()[:, :, 0], 1)
        asked.write_input_gradients(to_tokens, question_gradients.inputs)
        asked.write_recurrent_gradients(asked_out, question_gradients)
        _write_bias_gradients(asked_out, asked_sums, question_gradients)
        squares, losses = [sum_squares(question_gradients.tensors())], gradients.losses()
    side.fork()
    with side.run("biases"):
        _write_bias_gradients(out, sums, document_gradients)
    # Sums keep the memory busy, products the tensor cores; at the same time they would slow each other down.
    summing = documents.sum_table_gradients(out)
    side.fork()
    with side.run("weights"):
        documents.write_recurrent_gradients(out, document_gradients)
    to_words = summing()
    side.fork()
    with side.run("norms", after="weights"):
        squares.append(sum_squares([document_gradients.recurrent]))
    with side.run("weights", after="biases"):
        documents.write_input_gradients(to_words, document_gradients.inputs)
        rest = document_gradients.inputs, document_gradients.input_biases, document_gradients.recurrent_biases
        squares.append(sum_squares(rest))
    side.join("questions")
    if inputs.dropout:
        to_vectors = to_vectors + inputs.drop_rows(documents.vector_gradients(to_words), 0)
    else:
        to_vectors = documents.vector_gradients(to_words, to_vectors)
    squares.append(sum_squares([to_vectors]))
    side.join()
    return StepGradients(losses, to_vectors, squares)


def _gather_vectors(vectors: Float[Tensor, "N U E"], positions: Positions) -> Float[Tensor, "N positions E"]:
    """Every position's vector."""
    first = torch.arange(len(vectors), dtype=torch.int32, device=vectors.device) * vectors.shape[1]
    return functional.embedding(positions.index.flatten(1) + first[:, None], vectors.flatten(0, 1))


def _last_states(states: Float[Tensor, "R T B H"]) -> Float[Tensor, "R B H"]:
    """Each direction's state when it has read everything, at its own end."""
    return torch.stack([states[::2, -1], states[1::2, 0]], dim=1).flatten(0, 1)


@cache
def _last_positions(recurrences: int, steps: int, batch: int, device: torch.device) -> Float[Tensor, "R B T"]:
    """One where `_last_states` takes a state from. Made once: an ordinary step of a shape comes before its graphs."""
    whole = torch.zeros(recurrences, batch, steps, device=device)
    whole[::2, :, -1], whole[1::2, :, 0] = 1, 1
    return whole
