"""question, document -> what the document encoder reads: the document alone, or with the question next to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from asreader.batches.anonymous_rows import IntArray
from asreader.data.vocabulary import PADDING_ROW, SEPARATOR_ROW

_Counts = TypeVar("_Counts", NDArray[np.integer], Tensor)


def place_question(question: IntArray, question_at: str) -> tuple[IntArray, IntArray]:
    """What the document encoder reads before and behind the document: the question and a separator, or nothing."""
    separator, nothing = np.array([SEPARATOR_ROW], np.int32), np.zeros(0, np.int32)
    before = np.concatenate([question, separator]) if question_at in ("before", "around") else nothing
    behind = np.concatenate([separator, question]) if question_at in ("after", "around") else nothing
    return before, behind


@dataclass(frozen=True)
class QuestionPlacement:
    """On which sides of a document its question is placed, with a separator between them; for batches on a device."""

    before: bool
    behind: bool

    @classmethod
    def from_setting(cls, question_at: str) -> QuestionPlacement:
        """From data.question_at."""
        return cls(question_at in ("before", "around"), question_at in ("after", "around"))

    def added_words(self, asked: _Counts) -> _Counts:
        """By how many words documents grow."""
        return (asked + 1) * (self.before + self.behind)

    def find_start(self, asked: Int[Tensor, "N B"]) -> Int[Tensor, "N B"]:
        """Where the document itself begins."""
        return (asked + 1) * self.before

    def map_positions(
        self, lengths: Int[Tensor, "N B"], asked: Int[Tensor, "N B"], width: int
    ) -> tuple[Int[Tensor, "N B T"], Bool[Tensor, "N B T"]]:
        """Which word of the document stands at each position, and whether one does."""
        column = torch.arange(width, device=lengths.device)
        position = column - self.find_start(asked)[..., None]
        return position.clamp(0, width - 1), (position >= 0) & (position < lengths[..., None])

    def place_rows(
        self,
        document: Int[Tensor, "N B T"],
        question: Int[Tensor, "N B Q"],
        lengths: Int[Tensor, "N B"],
        asked: Int[Tensor, "N B"],
    ) -> Int[Tensor, "N B T"]:
        """Document rows with the question's next to them; T is wide enough for both."""
        width = document.shape[2]
        position, in_document = self.map_positions(lengths, asked, width)
        rows = torch.where(in_document, document.gather(2, position), PADDING_ROW)
        column = torch.arange(width, device=lengths.device)
        separators = [asked[..., None]] * self.before
        starts = [torch.zeros_like(asked)[..., None]] * self.before
        if self.behind:
            separators.append((self.find_start(asked) + lengths)[..., None])
            starts.append(separators[-1] + 1)
        for separator, start in zip(separators, starts, strict=True):
            position = column - start
            in_question = (position >= 0) & (position < asked[..., None])
            rows = torch.where(in_question, question.gather(2, position.clamp(0, question.shape[2] - 1)), rows)
            rows = torch.where(column == separator, SEPARATOR_ROW, rows)
        return rows
