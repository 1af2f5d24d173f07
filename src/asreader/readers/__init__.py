"""Readers: each file here is a network that answers; `attention_sum` is the paper's.

A reader is a module `NAME.py` with a class of the same name in CamelCase, a torch module

    Name(vocabulary: int, *, settings...)        its keyword arguments are the keys of [reader] in a TOML file
    read(document: Words) -> Tensor              all it needs of documents, computed once
    answer(document: Tensor, batch: Batch) -> Reading
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from asreader import plugins
from asreader.batches.host import Batch, Words
from asreader.errors import InputError


@dataclass(frozen=True)
class Reading:
    """What a reader returns for a Batch: attention over the document, log P of each candidate (-inf: none)."""

    attention: Float[Tensor, "B T"]
    log_probabilities: Float[Tensor, "B C"]

    @property
    def probabilities(self) -> Float[Tensor, "B C"]:
        """Shares of the candidates alone: they sum to one, or are all zero where no candidate has any support."""
        without = self.log_probabilities.isneginf().all(dim=-1, keepdim=True)
        return self.log_probabilities.masked_fill(without, 0.0).softmax(dim=-1).masked_fill(without, 0.0)

    def at(self, temperature: float) -> Reading:
        """The same candidates in the same order, with another confidence."""
        return self if temperature == 1 else replace(self, log_probabilities=self.log_probabilities / temperature)

    def losses(self, answers: Int[Tensor, " B"]) -> Float[Tensor, " N"]:
        """-log P(a|q, d) of each question whose answer has any support; the others cannot be pointed at."""
        return -self._of(answers)[self.counted(answers)]

    def counted(self, answers: Int[Tensor, " B"]) -> Bool[Tensor, " B"]:
        """Which questions have a loss."""
        return (answers >= 0) & self._of(answers).isfinite()

    def _of(self, answers: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
        return self.log_probabilities.gather(1, answers.clamp(min=0)[:, None])[:, 0]


class ReaderNetwork(Protocol):
    """What every reader can do."""

    def read(self, document: Words) -> Tensor: ...
    def answer(self, document: Tensor, batch: Batch) -> Reading: ...


def settings(name: str) -> dict[str, inspect.Parameter]:
    """The settings of a reader: the keyword arguments of its constructor."""
    parameters = inspect.signature(_class(name)).parameters
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
        network: torch.nn.Module = _class(name)(vocabulary, **checked)
    except ValueError as error:
        raise InputError(f"[reader] {name}: {error}") from error
    return network


def _class(name: str) -> type[torch.nn.Module]:
    module = plugins.load_plugin("readers", name)
    return getattr(module, "".join(map(str.capitalize, name.replace("-", "_").split("_"))))  # type: ignore[no-any-return]
