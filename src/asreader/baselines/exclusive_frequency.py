"""Answers with the most frequent candidate that is not in the question (Hermann et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence

from asreader.data.example import Example
from asreader.data.occurrences import find_occurrences


def score_candidates(example: Example) -> Sequence[float]:
    """How often each candidate occurs in the document; 0 if it occurs in the question."""
    words = example.words
    return [
        0.0 if find_occurrences(example.question, candidate) else float(len(find_occurrences(words, candidate)))
        for candidate in example.choices
    ]
