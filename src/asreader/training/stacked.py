"""a batch for each of N readers -> their losses: the network of `readers/attention_sum` with stacked weights.

Every product is a batched one over the readers, and the recurrences of all run side by side. Products take the
precision of the group (bfloat16 halves what they read), weights and softmax stay in float32, as with autocast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from asreader.data.resident import ReadersBatch
from asreader.kernels import recurrence

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


def losses(weights: Stack, batch: ReadersBatch, precision: torch.dtype) -> Float[Tensor, " N"]:
    """-log P(a|q, d), the mean over each reader's batch."""
    scores = _scores(weights, batch, precision)
    everywhere = scores.masked_fill(~batch.readable, -torch.inf).logsumexp(dim=-1)
    at_answer = scores.masked_fill(~batch.answer_at, -torch.inf).logsumexp(dim=-1)
    # An example that does not count has both sums equal and so adds nothing, neither here nor to a gradient.
    return (everywhere - at_answer).sum(dim=1) / batch.counted.sum(dim=1)


def log_attention(weights: Stack, batch: ReadersBatch, precision: torch.dtype) -> Float[Tensor, "N B T"]:
    """Equation 1 of the paper, in log space."""
    return _scores(weights, batch, precision).masked_fill(~batch.readable, -torch.inf).log_softmax(dim=-1)


def touched(batch: ReadersBatch) -> Int[Tensor, "N words"]:
    """Every row of the table that a batch reads, time first, as the recurrence steps: documents, then questions."""
    return torch.cat([batch.document.transpose(1, 2).flatten(1), batch.question.transpose(1, 2).flatten(1)], dim=1)


def _scores(weights: Stack, batch: ReadersBatch, precision: torch.dtype) -> Float[Tensor, "N B T"]:
    """The products of document states and question, in float32: bfloat16 scores would blur the softmax."""
    vectors: Tensor = _Embedded.apply(weights.embed, touched(batch), precision)  # type: ignore[no-untyped-call]
    document, question = vectors.split([batch.document[0].numel(), batch.question[0].numel()], dim=1)
    states = _encoded(weights.document, document, batch.document_lengths)
    asked = _encoded(weights.question, question, batch.question_lengths)
    # Each direction has read the whole question at its own end; padding hands the state on unchanged.
    whole = torch.stack([asked[:, 0, -1], asked[:, 1, 0]], dim=1)
    scores: Tensor = _Pointed.apply(states, whole)  # type: ignore[no-untyped-call]
    return scores


def _encoded(
    encoders: Encoders, vectors: Float[Tensor, "N words E"], lengths: Int[Tensor, "N B"]
) -> Float[Tensor, "N D T B H"]:
    """The states of both directions at every word."""
    readers, batch = lengths.shape
    gates, hidden = encoders.recurrent.shape[2:]
    resets_and_updates = torch.arange(gates, device=vectors.device) < 2 * hidden
    biases = encoders.input_biases + encoders.recurrent_biases * resets_and_updates
    inputs: Tensor = _Projected.apply(vectors, encoders.inputs, biases)  # type: ignore[no-untyped-call]
    states = recurrence.run(
        inputs.view(2 * readers, -1, batch, gates),
        encoders.recurrent.flatten(0, 1).to(vectors.dtype),
        encoders.recurrent_biases.flatten(0, 1)[:, 2 * hidden :],
        lengths.repeat_interleave(2, dim=0),
    )
    return states.view(readers, 2, -1, batch, hidden)


class _Embedded(torch.autograd.Function):
    """Rows of N tables -> vectors in the precision of products; gradients are summed in float32."""

    @staticmethod
    def forward(
        context: Any, embed: Float[Tensor, "N V E"], rows: Int[Tensor, "N words"], precision: torch.dtype
    ) -> Float[Tensor, "N words E"]:
        first = torch.arange(embed.shape[0], dtype=rows.dtype, device=rows.device) * embed.shape[1]
        places = rows + first[:, None]
        context.save_for_backward(places)
        context.shape = embed.shape
        return nn.functional.embedding(places, embed.flatten(0, 1)).to(precision)

    @staticmethod
    def backward(context: Any, gradient: Float[Tensor, "N words E"]) -> tuple[Float[Tensor, "N V E"], None, None]:
        (places,) = context.saved_tensors
        readers, rows, _ = context.shape
        summed = torch.ops.aten.embedding_dense_backward(gradient.float(), places, readers * rows, -1, False)
        return summed.view(context.shape), None, None


class _Projected(torch.autograd.Function):
    """Vectors -> W x + b of both directions, each written where the recurrence reads it."""

    @staticmethod
    def forward(
        context: Any,
        vectors: Float[Tensor, "N words E"],
        weights: Float[Tensor, "N D gates E"],
        biases: Float[Tensor, "N D gates"],
    ) -> Float[Tensor, "N D words gates"]:
        weights, biases = weights.to(vectors.dtype), biases.to(vectors.dtype)
        inputs = vectors.new_empty(*weights.shape[:2], vectors.shape[1], weights.shape[2])
        # One product for each reader: unlike a batched one it adds the bias without another pass over the memory.
        for reader, direction in _pairs(weights):
            weight, bias = weights[reader, direction], biases[reader, direction]
            torch.addmm(bias, vectors[reader], weight.T, out=inputs[reader, direction])
        context.save_for_backward(vectors, weights)
        return inputs

    @staticmethod
    def backward(context: Any, gradient: Float[Tensor, "N D words gates"]) -> tuple[Tensor, Tensor, Tensor]:
        vectors, weights = context.saved_tensors
        to_vectors = torch.bmm(gradient[:, 0], weights[:, 0])
        to_vectors.baddbmm_(gradient[:, 1], weights[:, 1])
        to_weights = [_product(gradient[:, place].transpose(1, 2), vectors) for place in range(2)]
        return to_vectors, torch.stack(to_weights, dim=1), gradient.sum(dim=2, dtype=torch.float32)


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
        products = _product(states.flatten(2, 3).flatten(0, 1), question.flatten(0, 1).transpose(1, 2))
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
        to_question = _product(own.transpose(1, 2), states.flatten(2, 3).flatten(0, 1))
        return to_states, to_question.view(question.shape).to(question.dtype)


def _product(left: Float[Tensor, "R I K"], right: Float[Tensor, "R K J"]) -> Float[Tensor, "R I J"]:
    """A batched product in float32, whatever precision its factors have."""
    if left.dtype == torch.float32:
        return torch.bmm(left, right)
    if left.device.type == "cuda":
        return torch.bmm(left, right, out_dtype=torch.float32)
    return torch.bmm(left.float(), right.float())


def _gru_names(encoder: str, direction: str) -> list[str]:
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")  # the order of the fields of Encoders
    return [f"{encoder}.layers.0.{kind}_l0{direction}" for kind in kinds]


def _pairs(weights: Float[Tensor, "N D gates E"]) -> Iterator[tuple[int, int]]:
    return ((reader, direction) for reader in range(weights.shape[0]) for direction in range(weights.shape[1]))
