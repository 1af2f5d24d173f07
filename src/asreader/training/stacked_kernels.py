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
from asreader.training.stacked import Encoders, Lesson, Stack


@dataclass(frozen=True)
class Task:
    """What is to be read, and how."""

    way: ModuleType  # kernels of the recurrence
    wide: Float[Tensor, "N W E_and_8"] | None  # the vectors with a one behind each, if there are such already
    words: DistinctWords
    batch: ReadersBatch
    lesson: Lesson

    def wide_vectors(self, vectors: Float[Tensor, "N W E"], salt: int) -> Float[Tensor, "N W E_and_8"]:
        """With a one behind each, after dropout."""
        if self.wide is not None and not self.lesson.drops:
            return self.wide
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
class _Read:
    """What an encoder has read and left behind."""

    vectors: Float[Tensor, "N W E"]
    inputs: Float[Tensor, "N both_gates E"]
    passed: Passed
    sums: Callable[[Tensor], Tensor] | None  # of the gradients of each word's inputs

    def to_inputs(
        self, out: Float[Tensor, "R T B four_H"]
    ) -> tuple[Float[Tensor, "N W E"], Float[Tensor, "N D gates E"]]:
        """Gradients of the vectors and of the weights they were multiplied with."""
        assert self.sums is not None
        gradient = self.sums(recurrence.to_inputs(out))
        if gradient.is_contiguous():
            whole = gradient.flatten(2)
            to_weights = product(whole.transpose(1, 2), self.vectors)
            return torch.bmm(whole, self.inputs), to_weights.unflatten(1, gradient.shape[2:])
        # Directions lie apart: bringing them together would cost more than one more product.
        weights = self.inputs.unflatten(1, gradient.shape[2:])
        to_weights = torch.empty(weights.shape, device=weights.device)
        for direction, own in enumerate(gradient.unbind(dim=2)):
            product(own.transpose(1, 2), self.vectors, to_weights[:, direction])
        forth, back = gradient.unbind(dim=2)
        return torch.baddbmm(torch.bmm(forth, weights[:, 0]), back, weights[:, 1]), to_weights

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
    to_words: Callable[[Tensor], Tensor] | None


class _Scores(torch.autograd.Function):
    """The whole network up to the scores. Streams are joined whatever happens: no graph can be given up otherwise."""

    @staticmethod
    def forward(context: Any, task: Task, vectors: Float[Tensor, "N W E"], *weights: Tensor) -> Float[Tensor, "N B T"]:
        beside = Beside(vectors.device, task.way.ALONE)
        try:
            done = _read(task, vectors, weights, any(context.needs_input_grad), beside)
        finally:
            beside.join()
        context.done = done if any(context.needs_input_grad) else None
        return pointing.scores(done.document.passed.states, done.question)

    @staticmethod
    def backward(context: Any, gradient: Float[Tensor, "N B T"]) -> tuple[Tensor | None, ...]:
        done: _Done = context.done
        beside = Beside(gradient.device, done.document.passed.way.ALONE)
        try:
            documents, asked = _learn(done, gradient.contiguous(), beside)
        finally:
            beside.join()
        context.done = None
        return None, documents[0] + asked[0], *documents[1:], *asked[1:]


def _read(
    task: Task, vectors: Float[Tensor, "N W E"], weights: Sequence[Tensor], learning: bool, beside: Beside
) -> _Done:
    """Both encoders' forward pass."""
    lesson, words, batch = task.lesson, task.words, task.batch
    with beside:
        # Of a question's few words hardly any are the same: they are taken as they stand.
        at = _gathered(task.wide_vectors(vectors, 1), words.question)
        places = Places.one_each(words.question.index.shape, vectors.device)
        asked_inputs, asked_given = _given(Encoders(*weights[4:]), at, places, batch.question_lengths)
    read = task.wide_vectors(vectors, 0)
    inputs, given = _given(Encoders(*weights[:4]), read, words.document, batch.document_lengths)
    beside.wait()  # the short recurrence would keep the long one from beginning
    passed = recurrence.forward(task.way, given, learning)
    with beside:
        asked_passed = recurrence.forward(task.way, asked_given, learning)
        question = lesson.dropped(_ended(asked_passed.states).unflatten(0, (-1, 2)), 2).flatten(0, 1)
        each = (words.document, given.table), (places, asked_given.table), (words.question, vectors[:, :, None])
        # Sums begin as zero: there is time for it now.
        documents, asked, to_words = (where.sums(like) if learning else None for where, like in each)
    return _Done(
        lesson,
        _Read(read[..., :-BEHIND], inputs, passed, documents),
        _Read(at[..., :-BEHIND], asked_inputs, asked_passed, asked),
        question,
        to_words,
    )


def _learn(done: _Done, gradient: Float[Tensor, "N B T"], beside: Beside) -> tuple[list[Tensor], list[Tensor]]:
    """Gradients of the documents' vectors and weights, and of the questions'."""
    lesson, documents, asked = done.lesson, done.document, done.asked
    # A state's gradient is its question's vector times its score's.
    out, sums = recurrence.backward(documents.passed, done.question, gradient)
    with beside:
        to_question = pointing.to_question(gradient, documents.passed.states).to(done.question.dtype)
        to_question = lesson.dropped(to_question.unflatten(0, (-1, 2)), 2).flatten(0, 1)
        at_ends = _at_ends(to_question, asked.passed.states.shape[1])
        asked_out, asked_sums = recurrence.backward(asked.passed, at_ends)
        asked_recurrent = asked.to_recurrent(asked_out, asked_sums)
        to_places, to_asked_inputs = asked.to_inputs(asked_out)
        assert done.to_words is not None
        to_asked_words = lesson.dropped(done.to_words(to_places)[:, :, 0], 1)
    beside.wait()
    with beside:  # products keep the tensor cores busy, sums the memory
        recurrent = documents.to_recurrent(out, sums)
    to_words, to_inputs = documents.to_inputs(out)
    beside.join()  # before anything that was held for the other stream is let go
    return (
        [lesson.dropped(to_words, 0), to_inputs, *recurrent],
        [to_asked_words, to_asked_inputs, *asked_recurrent],
    )


def _given(
    encoders: Encoders, vectors: Float[Tensor, "N W E_and_8"], places: Places, lengths: Int[Tensor, "N B"]
) -> tuple[Float[Tensor, "N both_gates E"], Given]:
    """Input weights in the precision of the vectors, and what the recurrences of both directions work on.

    The vectors have a one behind them, for which the weights have their biases.
    """
    of_inputs, of_products = encoders.biases()
    inputs = with_biases(encoders.inputs.flatten(1, 2), of_inputs.flatten(1), vectors.dtype)
    table = torch.bmm(vectors, inputs.transpose(1, 2)).unflatten(2, (2, -1))
    recurrent = encoders.recurrent.flatten(0, 1).to(vectors.dtype)
    return inputs[..., :-BEHIND], Given(table, places, recurrent, of_products, lengths)


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
