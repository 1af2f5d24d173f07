"""runs and their validations so far -> the better half, which continues; the other half is stopped early.

A run resumes exactly, so all runs train for a few epochs and the better ones then continue. Validations are read from
each run's metrics log up to the rung's epoch, so the choice does not depend on when it is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from asreader.errors import InputError
from asreader.sweep.run_plan import PlannedRun
from asreader.sweep.status import read_validations


def compute_rungs(epochs: int) -> list[int]:
    """The epochs after which the worse half stops (1, 2, 4, ...), and the last epoch."""
    return [*(2**power for power in range(epochs.bit_length()) if 2**power < epochs), epochs]


def check_run_can_stop(run: PlannedRun) -> None:
    """Refuse a run whose first epochs depend on the total number of epochs, or that validates within epochs."""
    train = run.settings.train
    if train.validate_every:
        raise InputError("--halving compares runs after whole epochs: leave train.validate_every at 0")
    if train.decay != "none":
        raise InputError("--halving: with train.decay the first epochs depend on the total; set train.decay=none")


def select_better_half(runs: Sequence[PlannedRun], epochs: int) -> list[PlannedRun]:
    """The half with the best validation accuracy within this number of epochs; of equals, the first."""
    best = {run.id: max(row.accuracy for row in read_validations(run) if row.epoch <= epochs) for run in runs}
    ranked = sorted(runs, key=lambda run: -best[run.id])[: -(-len(runs) // 2)]
    return [run for run in runs if run in ranked]


def has_ended_by_itself(run: PlannedRun) -> bool:
    """Whether the run would not have continued anyway: it is perfect, or out of patience."""
    validations = read_validations(run)
    train = run.settings.train
    is_perfect = train.metric == "accuracy" and any(row.accuracy == 1.0 for row in validations)
    since_best = next((age for age, row in enumerate(reversed(validations)) if row.best), len(validations))
    return is_perfect or since_best >= train.patience
