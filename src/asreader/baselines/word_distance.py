"""Answers with the candidate whose surroundings in the document are most like the question (Hermann et al. 2015).

The gap is aligned with each occurrence of a candidate. Every other word of the question is then aligned with a position
of the document, and its distance is that to the nearest occurrence of the word, at most MAX_DISTANCE. The paper sums
distances and takes the smallest sum; here each word adds MAX_DISTANCE - distance and the largest sum wins: the same
order, as weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asreader.data.example import GAP, Example
from asreader.data.occurrences import find_occurrences

MAX_DISTANCE = 8
"""Upper limit of the distance of one word: m = 8 in the paper, tuned there on validation data."""


def score_candidates(example: Example) -> Sequence[float]:
    """1 plus the closeness of each candidate's best occurrence; 0 for a candidate that is not in the document."""
    words, question = example.words, example.question
    # A question without a gap (bAbI) has its gap at the end. Of several gaps the first is aligned.
    gap = question.index(GAP) if GAP in question else len(question)
    before = compute_closeness(words, [(word, index - gap) for index, word in enumerate(question[:gap])])
    after = compute_closeness(words, [(word, offset) for offset, word in enumerate(question[gap + 1 :], start=1)])

    def score_best_occurrence(candidate: str) -> float:
        """Words before the gap are aligned with the candidate's first word, those after it with its last."""
        length = len(candidate.split())
        scores = [before[start] + after[start + length - 1] for start in find_occurrences(words, candidate)]
        return 1.0 + float(max(scores)) if scores else 0.0

    return [score_best_occurrence(candidate) for candidate in example.choices]


def compute_closeness(words: Sequence[str], offsets: Sequence[tuple[str, int]]) -> NDArray[np.int64]:
    """(word, offset from the gap) pairs -> sum of MAX_DISTANCE - distance over words, with the gap at each position."""
    positions = defaultdict(list)
    for position, word in enumerate(words):
        positions[word].append(position)
    gaps = np.arange(len(words))
    total = np.zeros(len(words), dtype=np.int64)
    for word, offset in offsets:
        if word in positions and word != GAP:
            total += MAX_DISTANCE - np.minimum(compute_nearest_distance(positions[word], gaps + offset), MAX_DISTANCE)
    return total


def compute_nearest_distance(positions: Sequence[int], aligned: NDArray[np.int64]) -> NDArray[np.int64]:
    """Distance of each aligned position to the nearest of `positions`, which are sorted and not empty."""
    known = np.array(positions)
    following = np.searchsorted(known, aligned)
    left, right = known[np.maximum(following - 1, 0)], known[np.minimum(following, len(known) - 1)]
    distances: NDArray[np.int64] = np.minimum(np.abs(aligned - left), np.abs(aligned - right))
    return distances
