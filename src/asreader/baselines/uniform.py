"""Answers with any candidate of the document, all equally likely: chance level, the floor under every reader.

It is not the "Uniform Reader" of Hermann et al. (2015), an Attentive Reader trained with its attention held uniform.
Without training there is nothing to hold: uniform attention summed over the positions of each word, as the Attention
Sum Reader sums it, is the word's frequency, which `maximum_frequency` already is.
"""

from __future__ import annotations

from collections.abc import Sequence

from asreader.data.example import Example
from asreader.data.occurrences import find_occurrences


def score_candidates(example: Example) -> Sequence[float]:
    """1 for each candidate that occurs in the document, 0 for the others."""
    words = example.words
    return [float(bool(find_occurrences(words, candidate))) for candidate in example.choices]
