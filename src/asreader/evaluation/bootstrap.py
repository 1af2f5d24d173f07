"""credits of questions -> intervals: how far a figure would move with other questions of the same kind.

Questions are drawn with replacement, as many as there are, and the figure is computed anew; the middle 95% of these
are the interval. All figures that are put in together share their draws.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000
SEED = 1
BUFFER_SIZE = 1 << 22
"""Numbers held at a time, so that many questions do not need much memory."""

Credits = NDArray[np.float64] | NDArray[np.bool_]
Interval = tuple[float, float]


def compute_mean_intervals(credits: Credits, draws: int = DRAWS, seed: int = SEED) -> list[Interval]:
    """Figures by questions, each figure the mean of its credits -> the 95% interval of each."""
    questions = credits.shape[1]
    means = [counts @ credits.T / questions for counts in draw_counts(questions, draws, seed)]
    return compute_central_intervals(np.concatenate(means))


def draw_counts(things: int, draws: int, seed: int, stream: int = 0) -> Iterator[NDArray[np.float64]]:
    """How often each of the things was drawn: draws by things, in portions. Streams are independent of each other."""
    random = np.random.default_rng((seed, stream))
    portion = max(1, BUFFER_SIZE // things)
    for start in range(0, draws, portion):
        rows = min(portion, draws - start)
        places = random.integers(things, size=(rows, things)) + things * np.arange(rows)[:, None]
        counts = np.bincount(places.ravel(), minlength=rows * things)
        yield counts.reshape(rows, things).astype(np.float64)


def compute_central_intervals(values: NDArray[np.float64]) -> list[Interval]:
    """Draws by figures -> the middle 95% of each figure."""
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def compute_difference_interval(first: Credits, second: Credits, draws: int = DRAWS, seed: int = SEED) -> Interval:
    """Runs by the same questions, of two sides -> the 95% interval of the first's mean accuracy minus the second's.

    Each draw takes questions, runs of the first side and runs of the second, all with replacement. Every run meets the
    same questions, so the comparison stays paired. With one run a side only the questions vary.
    """
    first_runs = np.concatenate(list(draw_counts(len(first), draws, seed, stream=1))) / len(first)
    second_runs = np.concatenate(list(draw_counts(len(second), draws, seed, stream=2))) / len(second)
    values: list[float] = []
    for counts in draw_counts(first.shape[1], draws, seed):
        rows = slice(len(values), len(values) + len(counts))
        ahead = first_runs[rows] @ first - second_runs[rows] @ second
        values += (counts * ahead).mean(axis=1).tolist()
    return compute_central_intervals(np.array(values)[:, None])[0]
