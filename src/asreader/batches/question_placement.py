"""documents and questions of a batch on a device -> documents with the question beside them, as `Batcher` puts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from asreader.data.vocabulary import PADDING_ROW, SEPARATOR_ROW

_Counts = TypeVar("_Counts", NDArray[np.integer], Tensor)


@dataclass(frozen=True)
class Surroundings:
    """On which sides of its document a question stands, a separator between them."""

    before: bool
    behind: bool

    @classmethod
    def of(cls, question_at: str) -> Surroundings:
        """From what the setting is called."""
        return cls(question_at in ("before", "around"), question_at in ("after", "around"))

    def added(self, asked: _Counts) -> _Counts:
        """By how many words documents grow."""
        return (asked + 1) * (self.before + self.behind)

    def first(self, asked: Int[Tensor, "N B"]) -> Int[Tensor, "N B"]:
        """Where the document proper begins."""
        return (asked + 1) * self.before

    def place(
        self, lengths: Int[Tensor, "N B"], asked: Int[Tensor, "N B"], width: int
    ) -> tuple[Int[Tensor, "N B T"], Bool[Tensor, "N B T"]]:
        """Which word of the document stands at each place, and whether one does."""
        column = torch.arange(width, device=lengths.device)
        place = column - self.first(asked)[..., None]
        return place.clamp(0, width - 1), (place >= 0) & (place < lengths[..., None])

    def rows(
        self,
        document: Int[Tensor, "N B T"],
        question: Int[Tensor, "N B Q"],
        lengths: Int[Tensor, "N B"],
        asked: Int[Tensor, "N B"],
    ) -> Int[Tensor, "N B T"]:
        """The rows with the question's beside them; there is room for them in T."""
        width = document.shape[2]
        place, proper = self.place(lengths, asked, width)
        rows = torch.where(proper, document.gather(2, place), PADDING_ROW)
        column = torch.arange(width, device=lengths.device)
        gaps = [asked[..., None]] * self.before  # where separators stand
        begins = [torch.zeros_like(asked)[..., None]] * self.before  # where the question does
        if self.behind:
            gaps.append((self.first(asked) + lengths)[..., None])
            begins.append(gaps[-1] + 1)
        for gap, begin in zip(gaps, begins, strict=True):
            of_question = column - begin
            asking = (of_question >= 0) & (of_question < asked[..., None])
            rows = torch.where(asking, question.gather(2, of_question.clamp(0, question.shape[2] - 1)), rows)
            rows = torch.where(column == gap, SEPARATOR_ROW, rows)
        return rows
