"""Answers with any candidate of the document, all equally likely: chance level, the lower bound for every reader.

It is not the "Uniform Reader" of Hermann et al. (2015), an Attentive Reader trained with its attention held uniform.
Without training, uniform attention summed over the positions of each word, as in the Attention Sum Reader, is the
frequency of the word, which `maximum_frequency` already computes.
"""

from __future__ import annotations

from collections.abc import Sequence

from asreader.data.example import Example
from asreader.data.occurrences import find_occurrences


def score_candidates(example: Example) -> Sequence[float]:
    """1 for each candidate that occurs in the document, 0 for the others."""
    words = example.words
    return [float(bool(find_occurrences(words, candidate))) for candidate in example.choices]
