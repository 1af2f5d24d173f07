"""runs, and how they did so far -> the better half, which goes on: poor runs are stopped early, always the same ones.

Runs go on exactly where they stopped, so nothing is lost by training all of them for a while, and then the better ones
for longer. How a run did until an epoch is read from its own records: it does not matter when one looks.
"""

from __future__ import annotations

from collections.abc import Sequence

from asreader.errors import InputError
from asreader.sweep.run_plan import PlannedRun
from asreader.sweep.status import validations


def rungs(epochs: int) -> list[int]:
    """The epochs after which the worse half stops, 1, 2, 4 and so on, and the last epoch."""
    return [*(2**power for power in range(epochs.bit_length()) if 2**power < epochs), epochs]


def refuse_unstoppable(run: PlannedRun) -> None:
    """Only a run whose first epochs do not know how many will follow can be stopped and still be compared."""
    train = run.settings.train
    if train.validate_every:
        raise InputError("--halving compares runs after whole epochs: leave train.validate_every at 0")
    if train.decay != "none":
        raise InputError("--halving: with train.decay a run of few epochs is not the beginning of a longer one")


def better_half(runs: Sequence[PlannedRun], epochs: int) -> list[PlannedRun]:
    """The half with the best validation accuracy within so many epochs; of equals, the first ones."""
    best = {run.id: max(v.accuracy for v in validations(run) if v.epoch <= epochs) for run in runs}
    ranked = sorted(runs, key=lambda run: -best[run.id])[: -(-len(runs) // 2)]
    return [run for run in runs if run in ranked]


def ended_by_itself(run: PlannedRun) -> bool:
    """Whether a run would not have gone on anyway: perfect, or out of patience."""
    found, train = validations(run), run.settings.train
    perfect = train.metric == "accuracy" and any(validation.accuracy == 1.0 for validation in found)
    since_best = next((place for place, validation in enumerate(reversed(found)) if validation.best), len(found))
    return perfect or since_best >= train.patience
