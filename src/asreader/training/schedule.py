"""step -> learning rate: it rises over the warm-up, then stays or falls to nothing; a pure function, so resumable."""

from __future__ import annotations

import math

from asreader.settings import TrainSettings


def compute_learning_rate(options: TrainSettings, step: int, steps: int) -> float:
    """Of the step after `step` steps, of `steps` in all epochs."""
    warming = min(1.0, (step + 1) / options.warmup) if options.warmup else 1.0
    return options.learning_rate * warming * _left(options, step, steps)


def _left(options: TrainSettings, step: int, steps: int) -> float:
    """The share of the rate that the decay leaves; it begins behind the warm-up."""
    gone = min(1.0, max(0, step - options.warmup) / max(1, steps - options.warmup))
    if options.decay == "linear":
        return 1.0 - gone
    if options.decay == "cosine":
        return (1.0 + math.cos(math.pi * gone)) / 2
    return 1.0
