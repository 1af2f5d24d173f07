"""Answers with the candidate that occurs most often in the document (Hermann et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence

from asreader.data.example import Example
from asreader.data.occurrences import find_occurrences


def score_candidates(example: Example) -> Sequence[float]:
    """How often each candidate occurs in the document."""
    words = example.words
    return [float(len(find_occurrences(words, candidate))) for candidate in example.choices]
