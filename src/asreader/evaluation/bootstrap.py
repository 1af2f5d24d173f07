"""credits of questions -> bootstrap intervals: how much a figure varies with the sample of questions.

Each draw resamples all questions with replacement and recomputes the figure; the interval is the central 95% of the
draws. Figures that are passed together share their draws.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000
SEED = 1
BUFFER_SIZE = 1 << 22
"""Counts held in memory at a time."""

Credits = NDArray[np.float64] | NDArray[np.bool_]
Interval = tuple[float, float]


def compute_mean_intervals(credits: Credits, draws: int = DRAWS, seed: int = SEED) -> list[Interval]:
    """credits: figures by questions -> the 95% interval of each figure, which is the mean of its credits."""
    questions = credits.shape[1]
    means = [counts @ credits.T / questions for counts in draw_counts(questions, draws, seed)]
    return compute_central_intervals(np.concatenate(means))


def draw_counts(items: int, draws: int, seed: int, stream: int = 0) -> Iterator[NDArray[np.float64]]:
    """Yield chunks of draws by items: how often each item was drawn. Streams are independent random sequences."""
    random = np.random.default_rng((seed, stream))
    chunk = max(1, BUFFER_SIZE // items)
    for start in range(0, draws, chunk):
        rows = min(chunk, draws - start)
        indices = random.integers(items, size=(rows, items)) + items * np.arange(rows)[:, None]
        counts = np.bincount(indices.ravel(), minlength=rows * items)
        yield counts.reshape(rows, items).astype(np.float64)


def compute_central_intervals(values: NDArray[np.float64]) -> list[Interval]:
    """values: draws by figures -> the central 95% of each figure."""
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def compute_difference_interval(first: Credits, second: Credits, draws: int = DRAWS, seed: int = SEED) -> Interval:
    """The 95% interval of the mean accuracy of the first system minus that of the second; both are runs by questions.

    Each draw resamples the questions, the runs of the first system and the runs of the second. All runs share the drawn
    questions, so the comparison stays paired. With one run per system only the questions vary.
    """
    first_runs = np.concatenate(list(draw_counts(len(first), draws, seed, stream=1))) / len(first)
    second_runs = np.concatenate(list(draw_counts(len(second), draws, seed, stream=2))) / len(second)
    values: list[float] = []
    for counts in draw_counts(first.shape[1], draws, seed):
        rows = slice(len(values), len(values) + len(counts))
        differences = first_runs[rows] @ first - second_runs[rows] @ second
        values += (counts * differences).mean(axis=1).tolist()
    return compute_central_intervals(np.array(values)[:, None])[0]
