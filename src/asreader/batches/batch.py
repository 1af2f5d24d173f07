"""Batch: padded questions as tensors, the one type that every reader and every engine works on.

Tensors may have a leading axis N of readers, each with a batch of its own: so one type serves a host, one document that
is asked about many times, and a data set on a device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from asreader.ops.pointer_sum import NO_CANDIDATE
from asreader.ops.segment_sum import RowOrder

NO_ANSWER_INDEX = -1
"""In `Batch.answers`: the answer is not known, or is none of the candidates."""


@dataclass(frozen=True)
class Words:
    """Padded sequences of embedding rows."""

    rows: Int[Tensor, "*N B T"]
    lengths: Int[Tensor, "*N B"]
    # Rows number a table that holds the batch's unique words alone, which takes the place of the embedding table.
    is_compact: bool = False
    table_rows: Int[Tensor, "*N U"] | None = None  # of a compact table: which embedding row each of its rows is
    order: RowOrder | None = None  # positions sorted by row, time first, if an engine has prepared them

    @cached_property
    def mask(self) -> Bool[Tensor, "*N B T"]:
        """True at words, False at padding."""
        return torch.arange(self.rows.shape[-1], device=self.rows.device) < self.lengths[..., None]

    def to(self, device: torch.device) -> Words:
        """The same sequences on a device."""
        return replace(
            self, rows=self.rows.to(device, non_blocking=True), lengths=self.lengths.to(device, non_blocking=True)
        )


@dataclass(frozen=True)
class Batch:
    """Questions with their documents and candidates."""

    document: Words
    question: Words
    in_document: Bool[Tensor, "*N B T"]  # where attention may go: not at a question placed next to the document
    candidates: Int[Tensor, "*N B C"]  # rows, for readers that compare vectors
    eligible: Bool[Tensor, "*N B C"]  # False: padding, an empty candidate, a further copy of one
    candidate_at: Int[Tensor, "*N B T K"]  # the candidates that each position mentions, or NO_CANDIDATE
    answers: Int[Tensor, "*N B"]  # index among the candidates, or NO_ANSWER_INDEX

    @property
    def candidate_count(self) -> int:
        """C."""
        return self.candidates.shape[-1]

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device."""
        if self.in_document.device == device:
            return self
        tensors = {name: tensor.to(device, non_blocking=True) for name, tensor in self.tensors().items()}
        return Batch.from_tensors(tensors, is_compact=self.document.is_compact)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name; `from_tensors` is the way back, also inside `torch.func.vmap`."""
        named = {
            "document": self.document.rows,
            "document_lengths": self.document.lengths,
            "question": self.question.rows,
            "question_lengths": self.question.lengths,
            "in_document": self.in_document,
            "candidates": self.candidates,
            "eligible": self.eligible,
            "candidate_at": self.candidate_at,
            "answers": self.answers,
        }
        if self.document.table_rows is not None:
            named["table_rows"] = self.document.table_rows
        if self.document.order is not None:
            named |= {f"order_{number}": tensor for number, tensor in enumerate(self.document.order.tensors())}
        return named

    @classmethod
    def from_tensors(cls, named: Mapping[str, Tensor], *, is_compact: bool = False) -> Batch:
        """A Batch of these tensors."""
        order = RowOrder(*(named[f"order_{number}"] for number in range(4))) if "order_0" in named else None
        table_rows = named.get("table_rows")
        return cls(
            document=Words(named["document"], named["document_lengths"], is_compact, table_rows, order),
            question=Words(named["question"], named["question_lengths"], is_compact, table_rows),
            in_document=named["in_document"],
            candidates=named["candidates"],
            eligible=named["eligible"],
            candidate_at=named["candidate_at"],
            answers=named["answers"],
        )


__all__ = ["NO_ANSWER_INDEX", "NO_CANDIDATE", "Batch", "Words"]
