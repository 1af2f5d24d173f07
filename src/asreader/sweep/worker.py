"""planned runs -> trained runs: what a worker does, wherever it is. One run, or on a GPU many of equal shape."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch

from asreader.executors import describe_error
from asreader.inference.reader import pick_device
from asreader.sweep.lock import locked
from asreader.sweep.run_plan import PlannedRun
from asreader.sweep.status import Finished, concluded, finish, finished, make_ready
from asreader.system import progress
from asreader.training import loop


@dataclass(frozen=True)
class Unit:
    """Runs that one worker trains at a time, on a CPU with so many `threads`: another number changes the last bits."""

    runs: tuple[PlannedRun, ...]
    threads: int = 1  # 0: as many as there are


@dataclass(frozen=True)
class Trained:
    """What became of a run: what its folder says, or why it says nothing; and what was wrong with the folder before."""

    id: str
    finished: Finished | None
    failure: str = ""
    repaired: str = ""


def train_unit(unit: Unit) -> tuple[Trained, ...]:
    """Train the runs to their ends, from wherever each stands; a run's failure is told, not raised."""
    if unit.threads:
        torch.set_num_threads(unit.threads)
    with _quiet(), ExitStack() as locks:
        for run in sorted(unit.runs, key=lambda run: run.id):  # in one order everywhere, or two could wait for ever
            locks.enter_context(locked(run.folder.parent, run.id))
        rest = [run for run in unit.runs if finished(run) is None]  # another sweep may have trained some by now
        repaired = {run.id: make_ready(run) for run in rest}
        failures = _failures(rest)
        return tuple(_trained(run, failures.get(run.id, ""), repaired.get(run.id, "")) for run in unit.runs)


def _failures(runs: Sequence[PlannedRun]) -> dict[str, str]:
    """Train runs and tell why some of them did not come to their ends.

    Of runs that were trained together these are tried again in two halves, so that one that cannot be trained, or a
    memory too small for all, costs the others nothing.
    """
    failure = ""
    try:
        _train(runs)
    except Exception as error:
        failure = describe_error(error)
    lost = [run for run in runs if not concluded(run)]
    if len(lost) > 1:
        gc.collect()
        torch.cuda.empty_cache()
        half = len(lost) // 2
        return _failures(lost[:half]) | _failures(lost[half:])
    return {run.id: failure for run in lost}


def _train(runs: Sequence[PlannedRun]) -> None:
    if runs and pick_device(runs[0].settings.train.device).type == "cuda":
        loop.train_runs([run.settings for run in runs], [run.folder for run in runs], resume=True)
        return
    for run in runs:
        loop.train_run(run.settings, run.folder, resume=True)


def _trained(run: PlannedRun, failure: str, repaired: str) -> Trained:
    try:
        return Trained(run.id, None if failure else finished(run) or finish(run), failure, repaired)
    except Exception as error:
        return Trained(run.id, None, describe_error(error), repaired)


@contextmanager
def _quiet() -> Iterator[None]:
    """What single runs say would break into the sweep's own table."""
    before, progress.console.quiet = progress.console.quiet, True
    try:
        yield
    finally:
        progress.console.quiet = before
