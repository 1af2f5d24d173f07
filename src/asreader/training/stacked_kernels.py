"""vectors and weights of N readers -> scores of all positions, losses and gradients, by the kernels of a GPU.

The network is that of `stacked`, which defines it in plain PyTorch. Every gradient is written out, because it matters
what is done when: the long recurrence of the documents leaves a part of the device unused, and all that the questions
need runs there, beside it, forward and backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from asreader.batches.device import ReadersBatch
from asreader.kernels import clipping, pointing, recurrence
from asreader.kernels.beside import Beside
from asreader.kernels.biased import BEHIND, Ready, with_ones
from asreader.kernels.recurrence import Passed, product
from asreader.kernels.words import DistinctWords, Places, Summing
from asreader.training import stacked
from asreader.training.stacked import Encoders, Lesson, Stack


@dataclass(frozen=True)
class Task:
    """What is to be read, and how. Weights are asked for when they are wanted, and where: beside other work."""

    way: ModuleType  # kernels of the recurrence
    vectors: Callable[[], Float[Tensor, "N W E_and_8"]]  # of the words, with a one behind each
    document: Callable[[], Ready]
    question: Callable[[], Ready]
    words: DistinctWords
    batch: ReadersBatch
    lesson: Lesson

    def dropped(self, wide: Float[Tensor, "N W E_and_8"], salt: int) -> Float[Tensor, "N W E_and_8"]:
        """Vectors after dropout."""
        return with_ones(self.lesson.dropped(wide[..., :-BEHIND], salt)) if self.lesson.drops else wide


def task(
    way: ModuleType,
    weights: Stack,
    vectors: Float[Tensor, "N W E"],
    words: DistinctWords,
    batch: ReadersBatch,
    lesson: Lesson,
) -> Task:
    """That of weights as they are."""
    precision = lesson.precision

    def ready(own: Encoders) -> Ready:
        return Ready.of(own.inputs, own.recurrent, *own.biases(), precision)

    wide = with_ones(vectors.to(precision))
    return Task(
        way, lambda: wide, lambda: ready(weights.document), lambda: ready(weights.question), words, batch, lesson
    )


@dataclass(frozen=True)
class Learnt:
    """What a batch has taught each reader, but for the gradients of the encoders' weights, which have their places."""

    losses: Float[Tensor, " N"]
    to_vectors: Float[Tensor, "N W E"]
    squares: Sequence[Float[Tensor, "N parts"]]  # of all gradients


def scores(task: Task) -> Float[Tensor, "N B T"]:
    """The products of document states and question, in float32: bfloat16 scores would blur the softmax."""
    with Beside(task.batch.document.device, task.way.ALONE) as beside:
        read = _read(task, beside, learning=False)
        beside.join()
        return pointing.scores(read.document.passed.states, read.question)


def learnt(task: Task, document: Encoders, question: Encoders) -> Learnt:
    """Losses and gradients; those of the encoders' weights are put into `document` and `question`."""
    with Beside(task.batch.document.device, task.way.ALONE) as beside:
        read = _read(task, beside, learning=True)
        beside.join()
        return _learn(task, read, _pointed(task, read), (document, question), beside)


@dataclass(frozen=True)
class _Encoded:
    """What an encoder has read and left behind."""

    vectors: Float[Tensor, "N W E"]
    inputs: Float[Tensor, "N both_gates E"]
    passed: Passed
    sums: Summing | None  # of the gradients of each word's inputs

    def to_table(self, out: Float[Tensor, "R T B four_H"]) -> Callable[[], Float[Tensor, "N W D gates"]]:
        """What ends the summing up of the gradients of each word's inputs, which has begun."""
        assert self.sums is not None
        return self.sums(recurrence.to_inputs(out))

    def to_inputs(self, gradient: Float[Tensor, "N W D gates"], into: Float[Tensor, "N D gates E"]) -> None:
        """Of the weights that the vectors were multiplied with."""
        product(gradient.flatten(2).transpose(1, 2), self.vectors, into.flatten(1, 2))

    def to_vectors(
        self, gradient: Float[Tensor, "N W D gates"], more: Float[Tensor, "N W E"] | None = None
    ) -> Float[Tensor, "N W E"]:
        """Of the vectors, and more, which is used up."""
        own = gradient.flatten(2)
        return torch.bmm(own, self.inputs) if more is None else more.baddbmm_(own, self.inputs)

    def to_recurrent(self, out: Float[Tensor, "R T B four_H"], into: Encoders) -> None:
        """Of the recurrent weights."""
        recurrence.to_weights(out, self.passed, into.recurrent.flatten(0, 1))


def _to_biases(out: Float[Tensor, "R T B four_H"], sums: Float[Tensor, "R four_H"] | None, into: Encoders) -> None:
    """Of the inputs' biases and the recurrent ones."""
    of_product, resets_and_updates, of_new = recurrence.to_biases(out, sums).tensor_split([1, 3], dim=1)
    for biases, last in ((into.input_biases, of_new), (into.recurrent_biases, of_product)):
        torch.cat([resets_and_updates, last], dim=1, out=biases.unflatten(2, (3, -1)).flatten(0, 1))


@dataclass(frozen=True)
class _Read:
    """What scores are made of, and what the backward pass needs of the forward one."""

    document: _Encoded
    asked: _Encoded
    question: Float[Tensor, "R B H"]
    of_lines: Summing | None  # for each word


def _read(task: Task, beside: Beside, learning: bool) -> _Read:
    """Both encoders' forward pass; what is done beside goes on."""
    words, batch = task.words, task.batch
    with beside.work("weights"):
        ready = task.document()
    vectors = task.vectors()
    beside.join()
    read = task.dropped(vectors, 0)
    given = ready.given(read, words.document, batch.document_lengths)
    beside.wait()  # nothing else may keep the long recurrence from beginning
    passed = recurrence.forward(task.way, given, learning)
    with beside.work("questions"):
        asked_ready = task.question()
        lines = _gathered(task.dropped(vectors, 1), words.lines)
        asked_given = asked_ready.given(lines, words.question, batch.question_lengths)
        asked_passed = recurrence.forward(task.way, asked_given, learning)
        question = task.lesson.dropped(_ended(asked_passed.states).unflatten(0, (-1, 2)), 2).flatten(0, 1)
        like = vectors[:, :, None, :-BEHIND]
        each = (words.document, given.table), (words.question, asked_given.table), (words.lines, like)
        # Where no word stands sums are zero: there is time for it now.
        documents, asked, of_lines = (where.sums(table) if learning else None for where, table in each)
    return _Read(
        _Encoded(read[..., :-BEHIND], ready.inputs[..., :-BEHIND], passed, documents),
        _Encoded(lines[..., :-BEHIND], asked_ready.inputs[..., :-BEHIND], asked_passed, asked),
        question,
        of_lines,
    )


@dataclass(frozen=True)
class _Pointed:
    """What is learnt from the scores."""

    losses: Callable[[], Float[Tensor, " N"]]
    to_scores: Float[Tensor, "N B T"]
    to_question: Float[Tensor, "R B H"]


def _pointed(task: Task, read: _Read) -> _Pointed:
    """Losses, and the gradients of scores and questions."""
    batch, lesson, states = task.batch, task.lesson, read.document.passed.states
    if lesson.said is None:
        found = pointing.learnt(states, read.question, batch.readable, batch.answer_at, batch.shares)
        return _Pointed(lambda: found.missed.sum(dim=1) * batch.shares, found.to_scores, found.to_question)
    with torch.enable_grad():
        scores = pointing.scores(states, read.question).requires_grad_()
        losses = stacked.of_scores(scores, batch, lesson)
        to_scores = torch.autograd.grad(losses.sum(), scores)[0].contiguous()
    to_question = pointing.to_question(to_scores, states).to(read.question.dtype)
    return _Pointed(losses.detach, to_scores, to_question)


def _learn(task: Task, read: _Read, pointed: _Pointed, into: tuple[Encoders, Encoders], beside: Beside) -> Learnt:
    """The backward pass."""
    lesson, documents, asked, (of_documents, of_questions) = task.lesson, read.document, read.asked, into
    beside.wait()
    # A state's gradient is its question's vector times its score's.
    out, sums = recurrence.backward(documents.passed, read.question, pointed.to_scores)
    with beside.work("questions"):
        to_question = lesson.dropped(pointed.to_question.unflatten(0, (-1, 2)), 2).flatten(0, 1)
        at_ends = _at_ends(*asked.passed.states.shape[:3], to_question.device)
        asked_out, asked_sums = recurrence.backward(asked.passed, to_question.contiguous(), at_ends)
        to_lines = asked.to_table(asked_out)()
        assert read.of_lines is not None
        to_vectors = lesson.dropped(read.of_lines(asked.to_vectors(to_lines))()[:, :, 0], 1)
        asked.to_inputs(to_lines, of_questions.inputs)
        asked.to_recurrent(asked_out, of_questions)
        _to_biases(asked_out, asked_sums, of_questions)
        squares, losses = [clipping.squares(of_questions.tensors())], pointed.losses()
    beside.wait()
    with beside.work("biases"):
        _to_biases(out, sums, of_documents)
    # Sums keep the memory busy, products the tensor cores; at the same time they would only be in each other's way.
    summing = documents.to_table(out)
    beside.wait()
    with beside.work("weights"):
        documents.to_recurrent(out, of_documents)
    to_words = summing()
    beside.wait()
    with beside.work("norms", after="weights"):
        squares.append(clipping.squares([of_documents.recurrent]))
    with beside.work("weights", after="biases"):
        documents.to_inputs(to_words, of_documents.inputs)
        squares.append(
            clipping.squares([of_documents.inputs, of_documents.input_biases, of_documents.recurrent_biases])
        )
    beside.join("questions")
    if lesson.drops:
        to_vectors = to_vectors + lesson.dropped(documents.to_vectors(to_words), 0)
    else:
        to_vectors = documents.to_vectors(to_words, to_vectors)
    squares.append(clipping.squares([to_vectors]))
    beside.join()
    return Learnt(losses, to_vectors, squares)


def _gathered(vectors: Float[Tensor, "N W E"], places: Places) -> Float[Tensor, "N places E"]:
    """Every place's vector."""
    first = torch.arange(len(vectors), dtype=torch.int32, device=vectors.device) * vectors.shape[1]
    return functional.embedding(places.index.flatten(1) + first[:, None], vectors.flatten(0, 1))


def _ended(states: Float[Tensor, "R T B H"]) -> Float[Tensor, "R B H"]:
    """Each direction's state when it has read everything, at its own end; padding hands a state on unchanged."""
    return torch.stack([states[::2, -1], states[1::2, 0]], dim=1).flatten(0, 1)


@cache
def _at_ends(recurrences: int, steps: int, batch: int, device: torch.device) -> Float[Tensor, "R B T"]:
    """One where `_ended` takes a state from. Made once: an ordinary step of a width comes before its graphs."""
    whole = torch.zeros(recurrences, batch, steps, device=device)
    whole[::2, :, -1], whole[1::2, :, 0] = 1, 1
    return whole
