"""Readers: each file here is a network that answers; `attention_sum` is the paper's.

A reader is a module `NAME.py` with a class of the same name in CamelCase, a torch module

    Name(vocabulary: int, *, settings...)        its keyword arguments are the keys of [reader] in a TOML file
    read(document: Words) -> EncodedWords        all it needs of documents, computed once
    answer(document: EncodedWords, batch: Batch) -> Reading

written for one reader with the layers of `layers.py`; engines train N of them at once.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from asreader import plugins
from asreader.batches.batch import Batch, Words
from asreader.errors import InputError
from asreader.readers.layers import EncodedWords


@dataclass(frozen=True)
class Reading:
    """What a reader returns for a Batch: log attention over positions, log P of each candidate (-inf: no support)."""

    log_attention: Float[Tensor, "*N B T"]
    log_probabilities: Float[Tensor, "*N B C"]

    @property
    def attention(self) -> Float[Tensor, "*N B T"]:
        """Where the reader looked."""
        return self.log_attention.exp()

    @property
    def probabilities(self) -> Float[Tensor, "*N B C"]:
        """Normalized over the candidates: they sum to one, or are all zero where no candidate has any support."""
        unsupported = self.log_probabilities.isneginf().all(dim=-1, keepdim=True)
        return self.log_probabilities.masked_fill(unsupported, 0.0).softmax(dim=-1).masked_fill(unsupported, 0.0)

    def scale(self, temperature: float) -> Reading:
        """The same candidates in the same order, with another confidence."""
        return self if temperature == 1 else replace(self, log_probabilities=self.log_probabilities / temperature)

    def compute_losses(
        self, answers: Int[Tensor, " B"], teacher: Float[Tensor, "B C"] | None = None, teacher_weight: float = 0.0
    ) -> Losses:
        """-log P(a|q, d) of each question whose answer has any support, or the cross entropy with a teacher's mixture.

        With a teacher the target is M(c) = (1 - w) [c is the answer] + w T(c). What the teacher gives to candidates
        without support is spread over those that have some; if it gives these nothing, the answer alone counts.
        """
        of_answer = self.log_probabilities.gather(1, answers.long().clamp(min=0)[:, None])[:, 0]
        # -inf: no support. A NaN counts, so that a reader that diverges is noticed.
        is_counted = (answers >= 0) & ~of_answer.isneginf()
        losses = -of_answer.where(is_counted, 0.0)
        if teacher is not None:
            supported = ~self.log_probabilities.isneginf()
            target = teacher.where(supported, 0.0)
            total = target.sum(dim=-1, keepdim=True)
            weight = teacher_weight * (total[:, 0] > 0)
            cross_entropy = -(target / total.where(total > 0, 1.0) * self.log_probabilities.where(supported, 0.0))
            losses = (1 - weight) * losses + weight * cross_entropy.sum(dim=-1) * is_counted
        return Losses(losses, is_counted)


@dataclass(frozen=True)
class Losses:
    """The loss of each question, 0 where there is none."""

    values: Float[Tensor, " B"]
    is_counted: Bool[Tensor, " B"]

    @property
    def mean(self) -> Float[Tensor, ""]:
        """Over the questions that count."""
        return self.values.sum() / self.is_counted.sum().clamp(min=1)


@runtime_checkable
class ReaderNetwork(Protocol):
    """What every reader can do."""

    def read(self, document: Words) -> EncodedWords: ...
    def answer(self, document: EncodedWords, batch: Batch) -> Reading: ...


class Forward(nn.Module):
    """A reader as a module with `forward`, for tools that need one: `torch.func.functional_call`, gradcheck."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Batch) -> Reading:
        """Read the documents and answer."""
        network: ReaderNetwork = self.network  # type: ignore[assignment]
        return network.answer(network.read(batch.document), batch)


def settings(name: str) -> dict[str, inspect.Parameter]:
    """The settings of a reader: the keyword arguments of its constructor."""
    parameters = inspect.signature(_find_class(name)).parameters
    return {key: value for key, value in parameters.items() if value.kind is value.KEYWORD_ONLY}


def build(name: str, vocabulary: int, options: dict[str, object]) -> torch.nn.Module:
    """A fresh reader; torch's generator decides its initial weights."""
    known = settings(name)
    checked: dict[str, object] = {}
    for key, value in options.items():
        if key not in known:
            raise InputError(f"[reader] has no setting {key!r} for {name}; {plugins.suggest_name(key, sorted(known))}")
        default = known[key].default
        if type(default) is float and type(value) is int:
            value = float(value)
        if type(value) is not type(default):
            raise InputError(f"reader.{key} must be like {default!r}, not {value!r}")
        if type(value) is int and value < 1:
            raise InputError(f"reader.{key} must be at least 1, not {value}")
        checked[key] = value
    try:
        network: torch.nn.Module = _find_class(name)(vocabulary, **checked)
    except ValueError as error:
        raise InputError(f"[reader] {name}: {error}") from error
    return network


def register(name: str, reader: type[nn.Module]) -> None:
    """Make a reader of one's own known under a name, in this process."""
    _REGISTERED[name] = reader


def _find_class(name: str) -> type[nn.Module]:
    if name in _REGISTERED:
        return _REGISTERED[name]
    module = plugins.load_plugin("readers", name)
    found: type[nn.Module] = getattr(module, "".join(map(str.capitalize, name.replace("-", "_").split("_"))))
    return found


_REGISTERED: dict[str, type[nn.Module]] = {}
