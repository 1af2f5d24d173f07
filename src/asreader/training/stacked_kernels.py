"""vectors and weights of N readers -> scores of all positions, by the kernels of a GPU, every gradient by hand.

The network is that of `stacked`, which defines it in plain PyTorch. By hand, because it matters what is done when: the
long recurrence of the documents leaves a part of the device unused, and all that the questions need runs there, beside
it, forward and backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from asreader.data.resident import ReadersBatch
from asreader.kernels import pointing, recurrence
from asreader.kernels.beside import Beside
from asreader.kernels.biased import BEHIND, with_biases, with_ones
from asreader.kernels.recurrence import Given, Passed, product
from asreader.kernels.words import DistinctWords, Places
from asreader.training.stacked import Early, Encoders, Lesson, Stack


@dataclass(frozen=True)
class Task:
    """What is to be read, and how."""

    way: ModuleType  # kernels of the recurrence
    early: Early
    words: DistinctWords
    batch: ReadersBatch
    lesson: Lesson

    def wide_vectors(self, vectors: Float[Tensor, "N W E"], salt: int) -> Float[Tensor, "N W E_and_8"]:
        """With a one behind each, after dropout."""
        if self.early.wide is not None and not self.lesson.drops:
            return self.early.wide
        return with_ones(self.lesson.dropped(vectors, salt))


def scores(weights: Stack, vectors: Float[Tensor, "N W E"], task: Task) -> Float[Tensor, "N B T"]:
    """The products of document states and question, in float32: bfloat16 scores would blur the softmax."""
    vectors = vectors.to(task.lesson.precision)
    found: Tensor = _Scores.apply(  # type: ignore[no-untyped-call]
        task, vectors, *weights.document.tensors(), *weights.question.tensors()
    )
    return found


def missed(
    scores: Float[Tensor, "N B T"], readable: Bool[Tensor, "N B T"], answer_at: Bool[Tensor, "N B T"]
) -> Float[Tensor, "N B"]:
    """-log P of every example."""
    found: Tensor = _Missed.apply(scores, readable, answer_at)  # type: ignore[no-untyped-call]
    return found


@dataclass(frozen=True)
class _Ready:
    """An encoder's weights as kernels read them."""

    inputs: Float[Tensor, "N both_gates E_and_8"]  # biases stand where the vectors have their ones
    recurrent: Float[Tensor, "R gates H"]
    biases: Float[Tensor, "R H"]

    @classmethod
    def of(cls, encoders: Encoders, precision: torch.dtype) -> _Ready:
        """In the precision of products."""
        of_inputs, of_products = encoders.biases()
        inputs = with_biases(encoders.inputs.flatten(1, 2), of_inputs.flatten(1), precision)
        return cls(inputs, encoders.recurrent.flatten(0, 1).to(precision), of_products.float().contiguous())

    def given(self, vectors: Float[Tensor, "N W E_and_8"], places: Places, lengths: Int[Tensor, "N B"]) -> Given:
        """What the recurrences of both directions work on."""
        table = torch.bmm(vectors, self.inputs.transpose(1, 2)).unflatten(2, (2, -1))
        return Given(table, places, self.recurrent, self.biases, lengths)


@dataclass(frozen=True)
class _Read:
    """What an encoder has read and left behind."""

    vectors: Float[Tensor, "N W E"]
    inputs: Float[Tensor, "N both_gates E"]
    passed: Passed
    sums: Callable[[Tensor], Tensor] | None  # of the gradients of each word's inputs

    def to_table(self, out: Float[Tensor, "R T B four_H"]) -> Float[Tensor, "N W D gates"]:
        """Gradients of each word's inputs."""
        assert self.sums is not None
        return self.sums(recurrence.to_inputs(out))

    def to_inputs(self, gradient: Float[Tensor, "N W D gates"]) -> Float[Tensor, "N D gates E"]:
        """Of the weights that the vectors were multiplied with."""
        found: Tensor = product(gradient.flatten(2).transpose(1, 2), self.vectors).unflatten(1, gradient.shape[2:])
        return found

    def to_vectors(
        self, gradient: Float[Tensor, "N W D gates"], more: Float[Tensor, "N W E"] | None = None
    ) -> Float[Tensor, "N W E"]:
        """Of the vectors, and more, which is used up."""
        own = gradient.flatten(2)
        return torch.bmm(own, self.inputs) if more is None else more.baddbmm_(own, self.inputs)

    def to_recurrent(
        self, out: Float[Tensor, "R T B four_H"], sums: Float[Tensor, "R four_H"] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of the recurrent weights, of the inputs' biases and of the recurrent ones."""
        of_product, resets_and_updates, of_new = recurrence.to_biases(out, sums).tensor_split([1, 3], dim=1)
        found = (
            recurrence.to_weights(out, self.passed),
            torch.cat([resets_and_updates, of_new], dim=1).flatten(1),
            torch.cat([resets_and_updates, of_product], dim=1).flatten(1),
        )
        weights, inputs, recurrent = (tensor.unflatten(0, (-1, 2)) for tensor in found)
        return weights, inputs, recurrent


@dataclass(frozen=True)
class _Done:
    """What scores are made of, and what the backward pass needs of the forward one."""

    lesson: Lesson
    document: _Read
    asked: _Read
    question: Float[Tensor, "R B H"]
    of_lines: Callable[[Tensor], Tensor] | None  # sums for each word


class _Scores(torch.autograd.Function):
    """The whole network up to the scores. Streams are joined whatever happens: no graph can be given up otherwise."""

    @staticmethod
    def forward(context: Any, task: Task, vectors: Float[Tensor, "N W E"], *weights: Tensor) -> Float[Tensor, "N B T"]:
        try:
            done = _read(task, vectors, weights, any(context.needs_input_grad))
        finally:
            task.early.beside.join()
        context.done = done if any(context.needs_input_grad) else None
        return pointing.scores(done.document.passed.states, done.question)

    @staticmethod
    def backward(context: Any, gradient: Float[Tensor, "N B T"]) -> tuple[Tensor | None, ...]:
        done: _Done = context.done
        beside = Beside(gradient.device, done.document.passed.way.ALONE)
        try:
            found = _learn(done, gradient.contiguous(), beside)
        finally:
            beside.join()
        context.done = None
        return None, *found


def _read(task: Task, vectors: Float[Tensor, "N W E"], weights: Sequence[Tensor], learning: bool) -> _Done:
    """Both encoders' forward pass."""
    lesson, words, batch, beside = task.lesson, task.words, task.batch, task.early.beside
    with beside:  # while the vectors are still being made
        ready = _Ready.of(Encoders(*weights[:4]), vectors.dtype)
    beside.join()
    read = task.wide_vectors(vectors, 0)
    given = ready.given(read, words.document, batch.document_lengths)
    beside.wait()  # nothing else may keep the long recurrence from beginning
    passed = recurrence.forward(task.way, given, learning)
    with beside:
        asked_ready = _Ready.of(Encoders(*weights[4:]), vectors.dtype)
        lines = _gathered(task.wide_vectors(vectors, 1), words.lines)
        asked_given = asked_ready.given(lines, words.question, batch.question_lengths)
        asked_passed = recurrence.forward(task.way, asked_given, learning)
        question = lesson.dropped(_ended(asked_passed.states).unflatten(0, (-1, 2)), 2).flatten(0, 1)
        each = (words.document, given.table), (words.question, asked_given.table), (words.lines, vectors[:, :, None])
        # Where no word stands sums are zero: there is time for it now.
        documents, asked, of_lines = (where.sums(like) if learning else None for where, like in each)
    return _Done(
        lesson,
        _Read(read[..., :-BEHIND], ready.inputs[..., :-BEHIND], passed, documents),
        _Read(lines[..., :-BEHIND], asked_ready.inputs[..., :-BEHIND], asked_passed, asked),
        question,
        of_lines,
    )


def _learn(done: _Done, gradient: Float[Tensor, "N B T"], beside: Beside) -> tuple[Tensor, ...]:
    """Gradients of the vectors, of the documents' weights and of the questions'."""
    lesson, documents, asked = done.lesson, done.document, done.asked
    # A state's gradient is its question's vector times its score's.
    out, sums = recurrence.backward(documents.passed, done.question, gradient)
    with beside:
        to_question = pointing.to_question(gradient, documents.passed.states).to(done.question.dtype)
        to_question = lesson.dropped(to_question.unflatten(0, (-1, 2)), 2).flatten(0, 1)
        at_ends = _at_ends(to_question, asked.passed.states.shape[1])
        asked_out, asked_sums = recurrence.backward(asked.passed, at_ends)
        asked_recurrent = asked.to_recurrent(asked_out, asked_sums)
        to_lines = asked.to_table(asked_out)
        to_asked_inputs = asked.to_inputs(to_lines)
        assert done.of_lines is not None
        to_vectors = lesson.dropped(done.of_lines(asked.to_vectors(to_lines))[:, :, 0], 1)
    beside.wait()
    with beside:  # products keep the tensor cores busy, sums the memory
        recurrent = documents.to_recurrent(out, sums)
    to_words = documents.to_table(out)
    to_inputs = documents.to_inputs(to_words)
    beside.join()
    if lesson.drops:
        to_vectors = to_vectors + lesson.dropped(documents.to_vectors(to_words), 0)
    else:
        to_vectors = documents.to_vectors(to_words, to_vectors)
    return to_vectors, to_inputs, *recurrent, to_asked_inputs, *asked_recurrent


class _Missed(torch.autograd.Function):
    """Scores -> the losses of every example."""

    @staticmethod
    def forward(
        context: Any, scores: Float[Tensor, "N B T"], readable: Bool[Tensor, "N B T"], answer_at: Bool[Tensor, "N B T"]
    ) -> Float[Tensor, "N B"]:
        everywhere, supported = pointing.losses(scores, readable, answer_at)
        context.save_for_backward(scores, readable, answer_at, everywhere, supported)
        return everywhere - supported

    @staticmethod
    def backward(context: Any, gradient: Float[Tensor, "N B"]) -> tuple[Tensor, None, None]:
        scores, readable, answer_at, everywhere, supported = context.saved_tensors
        return pointing.to_scores(scores, readable, answer_at, (everywhere, supported), gradient), None, None


def _gathered(vectors: Float[Tensor, "N W E"], places: Places) -> Float[Tensor, "N places E"]:
    """Every place's vector."""
    first = torch.arange(len(vectors), dtype=torch.int32, device=vectors.device) * vectors.shape[1]
    return functional.embedding(places.index.flatten(1) + first[:, None], vectors.flatten(0, 1))


def _ended(states: Float[Tensor, "R T B H"]) -> Float[Tensor, "R B H"]:
    """Each direction's state when it has read everything, at its own end; padding hands a state on unchanged."""
    return torch.stack([states[::2, -1], states[1::2, 0]], dim=1).flatten(0, 1)


def _at_ends(gradient: Float[Tensor, "R B H"], steps: int) -> Float[Tensor, "R T B H"]:
    """Gradients of states whose ends alone matter."""
    whole = gradient.new_zeros(len(gradient), steps, *gradient.shape[1:])
    whole[::2, -1], whole[1::2, 0] = gradient[::2], gradient[1::2]
    return whole
