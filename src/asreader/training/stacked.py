"""a batch for each of N readers -> their losses: the network of `readers/attention_sum` with stacked weights.

Every product is a batched one over the readers, the recurrences of all run side by side, and what depends on a word
alone is computed once for each distinct word of a batch. Products take the precision of the group (bfloat16 halves what
they read), weights and softmax stay in float32, as with autocast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from asreader.batches.device import ReadersBatch, Resident, Widths
from asreader.kernels import recurrence
from asreader.kernels.dropout import dropped
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

    def biases(self) -> tuple[Float[Tensor, "N D gates"], Float[Tensor, "R H"]]:
        """What is added to a word's inputs, and to the recurrent product of new."""
        of_inputs, of_products = recurrence.biases(self.input_biases.flatten(0, 1), self.recurrent_biases.flatten(0, 1))
        return of_inputs.view(self.input_biases.shape), of_products


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


def gathered(
    data: Resident,
    numbers: Int[Tensor, "N B"],
    sizes: Int[Tensor, " N"],
    widths: Widths,
    dealt: Int[Tensor, "N anonymous"] | None = None,
    keys: Int[Tensor, " N"] | None = None,
) -> ReadersBatch:
    """A batch for each reader, by a kernel where there is one for such data."""
    if numbers.device.type == "cuda" and data.beside is None and (keys is None or data.strangers is None):
        try:
            from asreader.kernels import gathering
        except ImportError:  # Triton comes with PyTorch for GPUs, on most platforms
            pass
        else:
            return gathering.batch(data, numbers, sizes, widths, dealt)
    return data.batch(numbers, sizes, widths, dealt, keys)


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

    @property
    def drops(self) -> bool:
        """Whether anything is dropped."""
        return self.keys is not None and self.dropout > 0

    def dropped(self, values: Float[Tensor, "N ..."], salt: int) -> Float[Tensor, "N ..."]:
        """Without some of the numbers."""
        return values if self.keys is None else dropped(values, self.keys, self.dropout, salt)


def losses(
    weights: Stack, vectors: Float[Tensor, "N W E"], words: DistinctWords, batch: ReadersBatch, lesson: Lesson
) -> Float[Tensor, " N"]:
    """-log P(a|q, d), the mean over each reader's batch. The words' vectors come apart: so they have own gradients."""
    return of_scores(_scores(weights, vectors, words, batch, lesson), batch, lesson)


def of_scores(scores: Float[Tensor, "N B T"], batch: ReadersBatch, lesson: Lesson) -> Float[Tensor, " N"]:
    """The losses of positions with these scores."""
    everywhere = scores.masked_fill(~batch.readable, -torch.inf).logsumexp(dim=-1)
    # An example that does not count has both sums equal and so adds nothing, neither here nor to a gradient.
    own = everywhere - scores.masked_fill(~batch.answer_at, -torch.inf).logsumexp(dim=-1)
    if lesson.said is not None:
        own = _taught(own, scores, everywhere, batch, lesson.said, lesson.teacher_weight)
    return own.sum(dim=1) * batch.shares


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


def log_attention(
    weights: Stack, batch: ReadersBatch, widths: Widths, precision: torch.dtype
) -> Float[Tensor, "N B T"]:
    """Equation 1 of the paper, in log space."""
    words = distinct(batch.document, batch.question, weights.embed.shape[1], widths.words, widths.lines)
    read, lesson, way = vectors(weights, words), Lesson(precision), kernels(weights, precision)
    if way is None:
        scores = _scores(weights, read, words, batch, lesson)
    else:
        from asreader.training import stacked_kernels

        scores = stacked_kernels.scores(stacked_kernels.task(way, weights, read, words, batch, lesson))
    return scores.masked_fill(~batch.readable, -torch.inf).log_softmax(dim=-1)


def kernels(weights: Stack, precision: torch.dtype) -> ModuleType | None:
    """Those of the recurrence, if this device has any for readers of this size."""
    return recurrence.fastest(weights.embed.device, precision, weights.document.recurrent.shape[-1])


def _scores(
    weights: Stack, vectors: Float[Tensor, "N W E"], words: DistinctWords, batch: ReadersBatch, lesson: Lesson
) -> Float[Tensor, "N B T"]:
    """The products of document states and question, in float32: bfloat16 scores would blur the softmax."""
    found = vectors.to(lesson.precision)
    states = _states(weights.document, lesson.dropped(found, 0), words.document, batch.document_lengths)
    reader = torch.arange(len(found), device=found.device)[:, None]
    lines = lesson.dropped(found, 1)[reader, words.lines.index.flatten(1).long()]
    asked = _states(weights.question, lines, words.question, batch.question_lengths)
    # A direction has read everything at its own end; padding hands a state on unchanged.
    question = lesson.dropped(torch.stack([asked[:, 0, -1], asked[:, 1, 0]], dim=1), 2)
    return torch.einsum("ndtbh,ndbh->nbt", states.float(), question.float())


def _states(
    encoders: Encoders, vectors: Float[Tensor, "N W E"], places: Places, lengths: Int[Tensor, "N B"]
) -> Float[Tensor, "N D T B H"]:
    """Of both directions, at every word."""
    of_inputs, of_products = encoders.biases()
    products = torch.einsum("nwe,ndge->nwdg", vectors, encoders.inputs.to(vectors.dtype))
    table = products + of_inputs[:, None].to(vectors.dtype)
    given = recurrence.Given(table, places, encoders.recurrent.flatten(0, 1), of_products, lengths)
    states = recurrence.run(given)
    return states.view(-1, 2, *states.shape[1:])


def _gru_names(encoder: str, direction: str) -> list[str]:
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")  # the order of the fields of Encoders
    return [f"{encoder}.layers.0.{kind}_l0{direction}" for kind in kinds]
