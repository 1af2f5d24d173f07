"""gradients of N readers -> their weights after a step of Adam, each reader with its own norm and learning rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from asreader.kernels.words import DistinctWords
from asreader.training import stacked
from asreader.training.stacked import Encoders, Stack

if TYPE_CHECKING:
    from asreader.kernels.biased import Ready

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
    """torch.optim.Adam after clip_grad_norm_, for readers of one stack."""

    def __init__(self, weights: Stack, moments: Moments, recipe: Recipe, average: Stack | None = None) -> None:
        self._weights, self._moments, self._average, self._recipe = weights, moments, average, recipe
        device = weights.embed.device
        self._rates, self._factors = (torch.tensor(each, device=device) for each in (recipe.rates, recipe.factors))

    def vectors(self, words: DistinctWords) -> Float[Tensor, "N W E"]:
        """Those that a batch is about to read."""
        return stacked.vectors(self._weights, words)

    def settle(self) -> None:
        """Nothing is ever put off."""

    def step(self, gradients: Sequence[Tensor], words: DistinctWords) -> None:
        """Change the weights by the gradients, which are used up: of the words' vectors, then of all other weights."""
        # The fused step goes through memory as it lies; autograd is free to hand out a transposed gradient.
        laid = [tensor.contiguous() for tensor in gradients]
        norms = torch.stack(torch._foreach_norm([own for tensor in laid for own in tensor]))
        squares = norms.view(-1, len(self._rates)).square().sum(dim=0)
        scale = ((squares.sqrt() + 1e-6) / self._recipe.clip).clamp(min=1.0)  # what gradients are divided by
        self._moments.steps.add_(1)
        self._take([_whole(laid[0], words, self._weights.embed), *laid[1:]], scale)

    def _take(self, gradients: Sequence[Tensor], scale: Float[Tensor, " N"]) -> None:
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


class OwingAdam:
    """The same by kernels of a GPU, which puts off what need not be done at once.

    Rows of words that a batch does not have wait until they are met (`kernels/lazy_adam`). The encoders' step is owed
    until the next batch is read: then it is taken beside other work, and leaves the weights as products want them.
    """

    def __init__(self, weights: Stack, moments: Moments, recipe: Recipe, average: Stack | None = None) -> None:
        from asreader.kernels import lazy_adam
        from asreader.kernels.biased import Ready

        device = weights.embed.device
        rates, factors = (torch.tensor(each, device=device) for each in (recipe.rates, recipe.factors))
        self._steps, self._recipe = moments.steps, recipe
        self._divisors = torch.zeros(len(rates), device=device)  # of the gradients that are owed; 0: nothing is
        parts = (weights, moments.first, moments.second)
        vectors, first, second = (part.embed.detach() for part in parts)
        self._table = lazy_adam.tables(
            vectors,
            first,
            second,
            rates,
            moments.steps[:, 0],
            factors=factors,
            average=None if average is None else average.embed,
            keep=recipe.average,
        )
        both = weights.document, weights.question
        self.owed = [_owed(own, recipe.precision) for own in both]
        self._ready = [Ready.room(own.inputs.detach(), own.recurrent.detach(), recipe.precision) for own in both]
        of_encoders = ([tensor.detach() for tensor in part.tensors()[1:]] for part in parts)
        owed = [tensor for own in self.owed for tensor in own.tensors()]
        means = [None] * len(owed) if average is None else [*average.tensors()[1:]]
        every = [lazy_adam.Stepping(*each) for each in zip(*of_encoders, means, owed, strict=True)]
        self._stepping = every[:4], every[4:]

    def vectors(self, words: DistinctWords) -> Float[Tensor, "N W E_and_8"]:
        """Those that a batch is about to read, a one behind each, whatever their rows have missed."""
        return self._table.vectors(self._steps[:, 0], words, self._recipe.precision)

    def ready(self, encoder: int) -> Ready:
        """The weights of the documents' encoder (0) or the questions' (1), after the step that is owed, if any is."""
        inputs, recurrent, input_biases, recurrent_biases = self._stepping[encoder]
        ready, owed = self._ready[encoder], (self._divisors, self._steps[:, 0])
        self._table.step_biases(input_biases, recurrent_biases, *owed, ready)
        self._table.step(inputs, *owed, ready.inputs)
        self._table.step(recurrent, *owed, ready.recurrent)
        return ready

    def owe(
        self, to_vectors: Float[Tensor, "N W E"], squares: Sequence[Float[Tensor, "N parts"]], words: DistinctWords
    ) -> None:
        """One more step: of the words' rows at once, of what `owed` holds when weights are next asked for.

        `squares` are those of all gradients.
        """
        from asreader.kernels import clipping

        self._steps.add_(1)
        clipping.divisors(squares, self._recipe.clip, out=self._divisors)
        self._table.update(to_vectors, self._divisors, self._steps[:, 0], words)

    def step(self, gradients: Sequence[Tensor], words: DistinctWords) -> None:
        """Change all weights by gradients: of the words' vectors, then of the encoders."""
        from asreader.kernels import clipping

        to_vectors, *others = (tensor.contiguous() for tensor in gradients)
        for owed, own in zip((tensor for part in self.owed for tensor in part.tensors()), others, strict=True):
            owed.copy_(own)
        self.owe(to_vectors, [clipping.squares([to_vectors, *others])], words)
        self._pay()

    def settle(self) -> None:
        """Bring all weights up to date, for whoever else reads them."""
        self._pay()
        self._table.settle(self._steps[:, 0])

    def _pay(self) -> None:
        for encoder in range(len(self.owed)):
            self.ready(encoder)
        self._divisors.zero_()


def adam(weights: Stack, moments: Moments, recipe: Recipe, average: Stack | None = None) -> StackedAdam | OwingAdam:
    """What this device has: a CPU has no kernels for it, nor a GPU without Triton."""
    if weights.embed.device.type == "cuda":
        try:
            return OwingAdam(weights, moments, recipe, average)
        except ImportError:
            pass
    return StackedAdam(weights, moments, recipe, average)


def _owed(like: Encoders, precision: torch.dtype) -> Encoders:
    """Room for gradients: of matrices in the precision of the products that they come from, as autocast has them."""
    matrices = (torch.zeros_like(tensor, dtype=precision) for tensor in (like.inputs, like.recurrent))
    return Encoders(*matrices, *(torch.zeros_like(tensor) for tensor in (like.input_biases, like.recurrent_biases)))


def _whole(
    gradient: Float[Tensor, "N W E"], words: DistinctWords, like: Float[Tensor, "N V E"]
) -> Float[Tensor, "N V E"]:
    """The gradient of whole tables; unused room has none, so that it adds nothing to the row it names."""
    return torch.zeros_like(like).scatter_add_(1, words.rows.long()[..., None].expand_as(gradient), gradient)
