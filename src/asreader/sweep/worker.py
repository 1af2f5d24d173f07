"""planned runs -> trained runs: the code of a worker process. One run, or on a GPU several of equal shape together."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch

from asreader.executors import describe_error
from asreader.inference.reader import pick_device
from asreader.sweep.lock import hold_lock
from asreader.sweep.run_plan import PlannedRun
from asreader.sweep.status import FinishedRun, check_finished, is_trained, mark_finished, repair_folder
from asreader.system import progress
from asreader.training import loop


@dataclass(frozen=True)
class WorkItem:
    """Runs that one worker trains together. The number of CPU threads changes the last bits of the result."""

    runs: tuple[PlannedRun, ...]
    threads: int = 1  # 0: torch's default


@dataclass(frozen=True)
class TrainedRun:
    """The result of a run, or why it failed; `repaired` says what was wrong with its folder before."""

    id: str
    finished: FinishedRun | None
    failure: str = ""
    repaired: str = ""


def train_work_item(item: WorkItem) -> tuple[TrainedRun, ...]:
    """Train the runs to their ends, resuming where possible; a run's failure is returned, not raised."""
    if item.threads:
        torch.set_num_threads(item.threads)
    with _silence_console(), ExitStack() as locks:
        for run in sorted(item.runs, key=lambda run: run.id):  # one order everywhere prevents deadlocks
            locks.enter_context(hold_lock(run.folder.parent, run.id))
        unfinished = [run for run in item.runs if check_finished(run) is None]  # another sweep may have trained some
        repaired = {run.id: repair_folder(run) for run in unfinished}
        failures = _train_and_collect_failures(unfinished)
        return tuple(_conclude_run(run, failures.get(run.id, ""), repaired.get(run.id, "")) for run in item.runs)


def _train_and_collect_failures(runs: Sequence[PlannedRun]) -> dict[str, str]:
    """Train runs; returns id -> reason for those that failed.

    Runs that fail together are retried in two halves, so that one bad run, or too little memory for all of them, does
    not cost the others.
    """
    failure = ""
    try:
        _train_runs(runs)
    except Exception as error:
        failure = describe_error(error)
    failed = [run for run in runs if not is_trained(run)]
    if len(failed) > 1:
        gc.collect()
        torch.cuda.empty_cache()
        half = len(failed) // 2
        return _train_and_collect_failures(failed[:half]) | _train_and_collect_failures(failed[half:])
    return {run.id: failure for run in failed}


def _train_runs(runs: Sequence[PlannedRun]) -> None:
    if runs and pick_device(runs[0].settings.train.device).type == "cuda":
        loop.train_runs([run.settings for run in runs], [run.folder for run in runs], resume=True)
        return
    for run in runs:
        loop.train_run(run.settings, run.folder, resume=True)


def _conclude_run(run: PlannedRun, failure: str, repaired: str) -> TrainedRun:
    try:
        finished = None if failure else check_finished(run) or mark_finished(run)
        return TrainedRun(run.id, finished, failure, repaired)
    except Exception as error:
        return TrainedRun(run.id, None, describe_error(error), repaired)


@contextmanager
def _silence_console() -> Iterator[None]:
    """Suppress the progress of single runs, which would break the table of the sweep."""
    before = progress.console.quiet
    progress.console.quiet = True
    try:
        yield
    finally:
        progress.console.quiet = before
