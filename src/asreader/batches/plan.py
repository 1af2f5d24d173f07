"""settings, epoch -> which examples each step takes: pure functions, so a resumed run takes the same ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asreader.batches.anonymous_rows import IntArray, shuffle_anonymous_rows
from asreader.data.vocabulary import Vocabulary


@dataclass(frozen=True)
class StepPlan:
    """What one step of one reader is about: a pure function of seed, epoch and batch number."""

    examples: NDArray[np.intp]
    shuffled_rows: IntArray  # where the anonymous rows go
    key: int  # of everything else that is drawn: anonymized candidates, dropout
    step: int = 0  # steps taken before


def plan_epoch(
    lengths: NDArray[np.integer], examples: NDArray[np.intp], *, size: int, prefetch: int, seed: int, epoch: int
) -> list[NDArray[np.intp]]:
    """The batches of one epoch.

    Appendix A of the paper: reshuffled every epoch; `prefetch` batches at a time are sorted by document length.
    """
    shuffled = np.random.default_rng([seed, epoch]).permutation(examples)
    batches = []
    for start in range(0, len(shuffled), size * prefetch):
        chunk = shuffled[start : start + size * prefetch]
        chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
        batches += [chunk[first : first + size] for first in range(0, len(chunk), size)]
    return batches


def plan_step(
    examples: NDArray[np.intp], vocabulary: Vocabulary, *, seed: int, epoch: int, batch: int, step: int = 0
) -> StepPlan:
    """The draws of one step."""
    generator = np.random.default_rng([seed, epoch, batch])
    shuffled_rows = shuffle_anonymous_rows(vocabulary, generator)
    return StepPlan(examples, shuffled_rows, int(generator.integers(1 << 31)), step)
