"""a batch for each of N readers -> their losses: the network of `readers/attention_sum` with stacked weights.

Every product is a batched one over the readers, the recurrences of all run side by side, and what depends on a word
alone is computed once for each distinct word of a batch. Products take the precision of the group (bfloat16 halves what
they read), weights and softmax stay in float32, as with autocast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from asreader.data.resident import ReadersBatch
from asreader.kernels import recurrence
from asreader.kernels.dropout import dropped
from asreader.kernels.recurrence import product
from asreader.kernels.words import DistinctWords, Places, distinct

_DIRECTIONS = ("", "_reverse")


@dataclass(frozen=True)
class Encoders:
    """The bidirectional GRUs of N readers; gates are 3H numbers: reset, update, new."""

    inputs: Float[Tensor, "N D gates E"]
    recurrent: Float[Tensor, "N D gates H"]
    input_biases: Float[Tensor, "N D gates"]
    recurrent_biases: Float[Tensor, "N D gates"]

    def tensors(self) -> tuple[Tensor, ...]:
        """In the order of the fields."""
        return self.inputs, self.recurrent, self.input_biases, self.recurrent_biases


@dataclass(frozen=True)
class Stack:
    """One number for each weight of N readers: the weights themselves, or Adam's moments of them."""

    embed: Float[Tensor, "N V E"]
    document: Encoders
    question: Encoders

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> Stack:
        """From what `tensors` gives."""
        return cls(tensors[0], Encoders(*tensors[1:5]), Encoders(*tensors[5:9]))

    @classmethod
    def zeros(cls, readers: int, network: nn.Module, device: torch.device) -> Stack:
        """Room for readers of a network's shape."""
        shapes = {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}
        gru = [shapes[name] for name in _gru_names("document_encoder", "")]
        sizes = [shapes["embed.weight"], *((2, *shape) for shape in gru * 2)]
        return cls.of([torch.zeros(readers, *size, device=device) for size in sizes])

    @property
    def readers(self) -> int:
        """N."""
        return self.embed.shape[0]

    def tensors(self) -> tuple[Tensor, ...]:
        """All stacked tensors, always in the same order."""
        return self.embed, *self.document.tensors(), *self.question.tensors()

    def views(self, reader: int) -> dict[str, Tensor]:
        """One reader's part under the names its network has for its parameters; writing there writes here."""
        named = {"embed.weight": self.embed.detach()[reader]}
        for encoder, stacked in (("document_encoder", self.document), ("question_encoder", self.question)):
            for place, direction in enumerate(_DIRECTIONS):
                names = _gru_names(encoder, direction)
                parts = (tensor.detach()[reader, place] for tensor in stacked.tensors())
                named |= dict(zip(names, parts, strict=True))
        return named

    def chosen(self, readers: Sequence[int]) -> Stack:
        """A copy of some readers."""
        return Stack.of([tensor.detach()[list(readers)] for tensor in self.tensors()])

    def learnable(self) -> Stack:
        """The same memory, with gradients wanted."""
        return Stack.of([tensor.detach().requires_grad_() for tensor in self.tensors()])


def vectors(weights: Stack, words: DistinctWords) -> Float[Tensor, "N W E"]:
    """The vectors of the words of each reader's batch."""
    first = torch.arange(weights.readers, dtype=words.rows.dtype, device=words.rows.device) * weights.embed.shape[1]
    return nn.functional.embedding(words.rows + first[:, None], weights.embed.flatten(0, 1))


@dataclass(frozen=True)
class Lesson:
    """How the batches of one step are learnt from."""

    precision: torch.dtype
    dropout: float = 0.0  # of the words' vectors and of the questions; what is dropped depends on the readers' keys
    keys: Int[Tensor, " N"] | None = None
    said: Float[Tensor, "N B C"] | None = None  # by a teacher, of every candidate
    teacher_weight: float = 0.0

    def dropped(self, values: Float[Tensor, "N ..."], salt: int) -> Float[Tensor, "N ..."]:
        """Without some of the numbers."""
        return values if self.keys is None else dropped(values, self.keys, self.dropout, salt)


def losses(
    weights: Stack, vectors: Float[Tensor, "N W E"], words: DistinctWords, batch: ReadersBatch, lesson: Lesson
) -> Float[Tensor, " N"]:
    """-log P(a|q, d), the mean over each reader's batch. The words' vectors come apart: so they have own gradients."""
    scores = _scores(weights, vectors, words, batch, lesson)
    everywhere = scores.masked_fill(~batch.readable, -torch.inf).logsumexp(dim=-1)
    # An example that does not count has both sums equal and so adds nothing, neither here nor to a gradient.
    own = everywhere - scores.masked_fill(~batch.answer_at, -torch.inf).logsumexp(dim=-1)
    if lesson.said is not None:
        own = _taught(own, scores, everywhere, batch, lesson.said, lesson.teacher_weight)
    return own.sum(dim=1) / batch.counted.sum(dim=1)


def _taught(
    own: Float[Tensor, "N B"],
    scores: Float[Tensor, "N B T"],
    everywhere: Float[Tensor, "N B"],
    batch: ReadersBatch,
    said: Float[Tensor, "N B C"],
    weight: float,
) -> Float[Tensor, "N B"]:
    """The losses of `distillation.Teacher`: the answer's, and the cross entropy with what the teacher says."""
    choice = torch.arange(said.shape[-1], device=said.device)
    mentioned = (batch.candidate_at[..., None, :] == choice[:, None]) & batch.readable[..., None, :]
    possible = mentioned.any(dim=-1) & batch.counted[..., None]
    # Where nothing is mentioned the sum is taken over everything, so that it is finite, and then not used.
    support = scores[..., None, :].masked_fill(~(mentioned | ~possible[..., None]), -torch.inf).logsumexp(dim=-1)
    said = said * possible
    total = said.sum(dim=-1, keepdim=True)
    share = said / total.where(total > 0, 1.0)
    taught = (share * (everywhere[..., None] - support).where(possible, 0.0)).sum(dim=-1)
    weights = weight * (total[..., 0] > 0)
    return (1 - weights) * own + weights * taught


def log_attention(weights: Stack, batch: ReadersBatch, room: int, precision: torch.dtype) -> Float[Tensor, "N B T"]:
    """Equation 1 of the paper, in log space; `room` is what the distinct words of a batch need at the most."""
    words = distinct(batch.document, batch.question, weights.embed.shape[1], room)
    scores = _scores(weights, vectors(weights, words), words, batch, Lesson(precision))
    return scores.masked_fill(~batch.readable, -torch.inf).log_softmax(dim=-1)


def _scores(
    weights: Stack, vectors: Float[Tensor, "N W E"], words: DistinctWords, batch: ReadersBatch, lesson: Lesson
) -> Float[Tensor, "N B T"]:
    """The products of document states and question, in float32: bfloat16 scores would blur the softmax."""
    found = vectors.to(lesson.precision)
    read = lesson.dropped(found, 0)
    # Of a question's few words hardly any are the same: they are taken as they stand.
    asked_at: Tensor = _Placed.apply(lesson.dropped(found, 1), words.question)  # type: ignore[no-untyped-call]
    places = Places.one_each(words.question.index.shape, read.device)
    states, asked = recurrence.run(
        _given(weights.document, read, words.document, batch.document_lengths),
        _given(weights.question, asked_at, places, batch.question_lengths),
    )
    states, asked = states.unflatten(0, (-1, 2)), asked.unflatten(0, (-1, 2))
    whole: Tensor = _Ended.apply(asked)  # type: ignore[no-untyped-call]
    scores: Tensor = _Pointed.apply(states, lesson.dropped(whole, 2))  # type: ignore[no-untyped-call]
    return scores


def _given(
    encoders: Encoders, vectors: Float[Tensor, "N W E"], places: Places, lengths: Int[Tensor, "N B"]
) -> recurrence.Given:
    """What the recurrences of both directions work on."""
    gates, hidden = encoders.recurrent.shape[2:]
    resets_and_updates = torch.arange(gates, device=vectors.device) < 2 * hidden
    biases = encoders.input_biases + encoders.recurrent_biases * resets_and_updates
    table: Tensor = _Projected.apply(vectors, encoders.inputs, biases)  # type: ignore[no-untyped-call]
    return recurrence.Given(
        table=table,
        places=places,
        weights=encoders.recurrent.flatten(0, 1),
        biases=encoders.recurrent_biases.flatten(0, 1)[:, 2 * hidden :],
        lengths=lengths,
    )


class _Placed(torch.autograd.Function):
    """Vectors of words -> vectors at places; a word's gradient is the sum of those at its places."""

    @staticmethod
    def forward(context: Any, vectors: Float[Tensor, "N W E"], places: Places) -> Float[Tensor, "N places E"]:
        if any(context.needs_input_grad):
            context.sums = places.sums(vectors[:, :, None])
        reader = torch.arange(len(vectors), device=vectors.device)[:, None]
        return vectors[reader, places.index.flatten(1).long()]

    @staticmethod
    def backward(context: Any, gradient: Float[Tensor, "N places E"]) -> tuple[Float[Tensor, "N W E"], None]:
        return context.sums(gradient)[:, :, 0], None


class _Ended(torch.autograd.Function):
    """States -> each direction's when it has read everything, at its own end; padding hands a state on unchanged."""

    @staticmethod
    def forward(context: Any, states: Float[Tensor, "N D T B H"]) -> Float[Tensor, "N D B H"]:
        context.shape = states.shape
        return torch.stack([states[:, 0, -1], states[:, 1, 0]], dim=1)

    @staticmethod
    def backward(context: Any, gradient: Float[Tensor, "N D B H"]) -> Float[Tensor, "N D T B H"]:
        whole = gradient.new_zeros(context.shape)
        whole[:, 0, -1], whole[:, 1, 0] = gradient.unbind(dim=1)
        return whole


class _Projected(torch.autograd.Function):
    """Vectors -> W x + b of both directions, side by side, as the recurrence reads them."""

    @staticmethod
    def forward(
        context: Any,
        vectors: Float[Tensor, "N W E"],
        weights: Float[Tensor, "N D gates E"],
        biases: Float[Tensor, "N D gates"],
    ) -> Float[Tensor, "N W D gates"]:
        both, biases = weights.to(vectors.dtype).flatten(1, 2), biases.to(vectors.dtype).flatten(1)
        inputs = vectors.new_empty(*vectors.shape[:2], both.shape[1])
        # One product for each reader: unlike a batched one it adds the bias without another pass over the memory.
        for own, weight, bias, room in zip(vectors, both, biases, inputs, strict=True):
            torch.addmm(bias, own, weight.T, out=room)
        context.save_for_backward(vectors, both)
        return inputs.view(*inputs.shape[:2], *weights.shape[1:3])

    @staticmethod
    def backward(context: Any, gradient: Float[Tensor, "N W D gates"]) -> tuple[Tensor, Tensor, Tensor]:
        vectors, both = context.saved_tensors
        to_biases = gradient.sum(dim=1, dtype=torch.float32)
        if gradient.is_contiguous():
            whole = gradient.flatten(2)
            to_weights = product(whole.transpose(1, 2), vectors).view(-1, *gradient.shape[2:], vectors.shape[2])
            return torch.bmm(whole, both), to_weights, to_biases
        # Directions lie apart: bringing them together would cost more than one more product.
        weights = both.unflatten(1, gradient.shape[2:])
        to_weights = torch.empty(weights.shape, device=vectors.device)
        for direction, own in enumerate(gradient.unbind(dim=2)):
            product(own.transpose(1, 2), vectors, to_weights[:, direction])
        forth, back = (product(own, weights[:, direction]) for direction, own in enumerate(gradient.unbind(dim=2)))
        return (forth + back).to(vectors.dtype), to_weights, to_biases


class _Pointed(torch.autograd.Function):
    """States and questions -> scores, as matrix products that read the states once, where they lie.

    Position (t, b) is multiplied with the questions of the whole batch, of which only b's own is kept: B times the
    arithmetic, but a matrix product, which costs less than bringing the states into another order.
    """

    @staticmethod
    def forward(
        context: Any, states: Float[Tensor, "N D T B H"], question: Float[Tensor, "N D B H"]
    ) -> Float[Tensor, "N B T"]:
        context.save_for_backward(states, question)
        readers, directions, steps, batch, _ = states.shape
        products = product(states.flatten(2, 3).flatten(0, 1), question.flatten(0, 1).transpose(1, 2))
        own = products.view(readers, directions, steps, batch, batch).diagonal(dim1=3, dim2=4)
        return own.sum(dim=1).transpose(1, 2)

    @staticmethod
    def backward(context: Any, gradient: Float[Tensor, "N B T"]) -> tuple[Tensor, Tensor]:
        states, question = context.saved_tensors
        readers, directions, steps, batch, hidden = states.shape
        own = states.new_zeros(readers, directions, steps, batch, batch)
        own.diagonal(dim1=3, dim2=4).copy_(gradient.transpose(1, 2)[:, None])
        own = own.view(readers * directions, steps * batch, batch)
        to_states = torch.bmm(own, question.flatten(0, 1)).view(readers, directions, steps, batch, hidden)
        to_question = product(own.transpose(1, 2), states.flatten(2, 3).flatten(0, 1))
        return to_states, to_question.view(question.shape).to(question.dtype)


def _gru_names(encoder: str, direction: str) -> list[str]:
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")  # the order of the fields of Encoders
    return [f"{encoder}.layers.0.{kind}_l0{direction}" for kind in kinds]
