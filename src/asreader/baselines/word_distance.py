"""Answers with the candidate around which the document reads most like the question (Hermann et al. 2015).

The gap is laid on each occurrence of a candidate; every other word of the question then falls on a position of the
document, and its distance is that to the nearest copy of the word, MAXIMUM at most. The paper sums distances and takes
the smallest sum; here each word gives MAXIMUM - distance, the greatest sum wins: the same order, in weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asreader.data.example import GAP, Example
from asreader.data.occurrences import find_occurrences

MAX_DISTANCE = 8
"""The most that one word can be away: m = 8 in the paper, tuned there on validation data."""


def score_candidates(example: Example) -> Sequence[float]:
    """The closeness of each candidate's best occurrence plus 1, so that a candidate not in the document (0) is last."""
    words, question = example.words, example.question
    # A question without a gap (bAbI) asks for what would follow it. Of several gaps the first is aligned.
    gap = question.index(GAP) if GAP in question else len(question)
    before = compute_closeness(words, [(word, place - gap) for place, word in enumerate(question[:gap])])
    after = compute_closeness(words, [(word, place) for place, word in enumerate(question[gap + 1 :], start=1)])

    def best(candidate: str) -> float:
        """The words before the gap are laid out from the candidate's first word, those after it from its last."""
        length = len(candidate.split())
        found = [before[start] + after[start + length - 1] for start in find_occurrences(words, candidate)]
        return 1.0 + float(max(found)) if found else 0.0

    return [best(candidate) for candidate in example.choices]


def compute_closeness(words: Sequence[str], laid: Sequence[tuple[str, int]]) -> NDArray[np.int64]:
    """(word, offset from the gap) pairs -> with the gap at each position: MAXIMUM - distance, summed over the words."""
    positions = defaultdict(list)
    for position, word in enumerate(words):
        positions[word].append(position)
    gaps = np.arange(len(words))
    total = np.zeros(len(words), dtype=np.int64)
    for word, offset in laid:
        if word in positions and word != GAP:
            total += MAX_DISTANCE - np.minimum(compute_nearest_distance(positions[word], gaps + offset), MAX_DISTANCE)
    return total


def compute_nearest_distance(positions: Sequence[int], aligned: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distance of each aligned position to the nearest of the positions, which are sorted and at least one."""
    known = np.array(positions)
    following = np.searchsorted(known, aligned)
    left, right = known[np.maximum(following - 1, 0)], known[np.minimum(following, len(known) - 1)]
    distances: NDArray[np.int64] = np.minimum(np.abs(aligned - left), np.abs(aligned - right))
    return distances
