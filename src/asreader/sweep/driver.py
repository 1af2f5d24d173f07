"""a sweep specification -> many trained runs, here or on a cluster: finished runs are skipped, failures reported."""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from asreader import executors, plugins
from asreader.errors import ExecutionError, InputError
from asreader.executors import ResourceRequest
from asreader.inference.reader import pick_device
from asreader.settings import Config, TrainSettings
from asreader.sweep import search_space, successive_halving
from asreader.sweep.run_plan import NEUTRAL_SETTINGS, PlannedRun, RunPlanner
from asreader.sweep.search_space import MAX_RAISES, Combination, GridAxis, GridGrowth
from asreader.sweep.status import check_finished, mark_stopped_early
from asreader.sweep.summary import DONE, FAILED, STOPPED, WAITING, SweepRecord, SweepReport, SweepRow
from asreader.sweep.terminal import SweepTerminal
from asreader.sweep.worker import TrainedRun, WorkItem, train_work_item
from asreader.system.signals import graceful_shutdown


@dataclass(frozen=True)
class SweepSpec:
    """What to train: settings, the settings that vary, and the number of seeds for each combination."""

    config: Path
    overrides: tuple[str, ...] = ()
    axes: tuple[GridAxis, ...] = ()
    growths: tuple[GridGrowth, ...] = ()
    seeds: int = 1
    random: int = 0
    halving: bool = False

    def __post_init__(self) -> None:
        if self.random and self.growths:
            raise InputError("--random and --grow cannot be combined: one samples combinations, the other trains all")
        names = [axis.name for axis in self.axes]
        if len(set(names)) < len(names):
            raise InputError("--grid names the same setting twice; write all its values in one --grid")


@dataclass(frozen=True)
class ExecutionOptions:
    """How to train, which does not change the result."""

    out: Path
    executor: str = "local"
    workers: int = 0
    threads: int = 1
    gpus: float | None = None
    together: int = 8
    command: tuple[str, ...] = ()


def run_sweep(spec: SweepSpec, options: ExecutionOptions, *, resume: bool = False) -> SweepReport:
    """Train the runs of the specification into `options.out`; `resume` continues a sweep that was started before."""
    options = replace(options, out=options.out.resolve())
    try:
        with SweepTerminal() as terminal:
            return SweepDriver(spec, options, terminal, threading.Event()).run(resume=resume)
    except KeyboardInterrupt:
        raise ExecutionError(
            f"stopped; finished runs are kept in {options.out}, and the same command with --resume continues"
        ) from None


class SweepDriver:
    """Plans the runs of a sweep, hands them to an executor, and keeps the report up to date."""

    def __init__(
        self, spec: SweepSpec, options: ExecutionOptions, terminal: SweepTerminal, stopping: threading.Event
    ) -> None:
        self.spec = spec
        self.options = options
        self._terminal = terminal
        self._stopping = stopping
        self._planner = RunPlanner(spec.config, spec.overrides, options.out, spec.seeds)
        settings = self._planner.base_settings
        self._record = SweepRecord(
            options.out, _compute_sweep_name(spec, settings), _describe_sweep(spec, settings), options.command
        )
        self._rows: dict[str, SweepRow] = {}
        plugins.load_plugin("executors", options.executor)  # a wrong name must fail before the data are read
        self._gpus = self._choose_gpus_per_worker()

    def _choose_gpus_per_worker(self) -> float:
        device = self._planner.base_settings.train.device
        if self.options.gpus is None:
            return 1.0 if pick_device(device).type == "cuda" else 0.0
        if device == "cuda" and not self.options.gpus:
            raise InputError("train.device is cuda and --gpus is 0; change one of them")
        return self.options.gpus

    def run(self, *, resume: bool) -> SweepReport:
        """Train the grid, and larger grids while they grow."""
        axes = self.spec.axes
        combinations = self._choose_combinations(axes)
        self._record.start(resume=resume)
        for _ in range(1 + MAX_RAISES):
            runs = self._planner.plan_runs(combinations)
            self._train_grid([run for run in runs if run.id not in self._rows])
            grown = tuple(map(self._grow_axis, axes))
            if grown == axes:
                break
            axes = grown
            combinations = self._choose_combinations(axes)
        self._record.save_rows(self._report.rows)
        return self._report

    def _choose_combinations(self, axes: Sequence[GridAxis]) -> list[Combination]:
        if self.spec.random:
            seed = self._planner.base_settings.train.seed
            return search_space.sample_combinations(axes, self.spec.random, seed)
        return search_space.list_combinations(axes)

    @property
    def _report(self) -> SweepReport:
        return SweepReport(self.options.out, tuple(self._rows.values()))

    def _grow_axis(self, axis: GridAxis) -> GridAxis:
        step = next((growth.step for growth in self.spec.growths if growth.name == axis.name), 0)
        if not step:
            return axis
        best: dict[str, float] = {}
        for group in self._report.groups:
            if group.mean is not None:
                value = dict(group.combination)[axis.name]
                best[value] = max(best.get(value, 0.0), group.mean)
        return search_space.raise_upper_bound(axis, step, best)

    def _train_grid(self, runs: Sequence[PlannedRun]) -> None:
        """Train runs to their ends; with --halving only the better ones."""
        self._rows |= {run.id: SweepRow(run) for run in runs}
        rungs = [0]
        if self.spec.halving and runs:
            for run in runs:
                successive_halving.check_run_can_stop(run)
            rungs = successive_halving.compute_rungs(max(run.settings.train.epochs for run in runs))
        for rung in rungs:
            self._train_runs([_limit_to_rung(run, rung) for run in runs])
            runs = [run for run in runs if self._rows[run.id].state == DONE]
            if rung != rungs[-1]:
                runs = self._stop_worse_half(runs, rung)

    def _stop_worse_half(self, runs: Sequence[PlannedRun], rung: int) -> list[PlannedRun]:
        better = successive_halving.select_better_half(runs, rung)
        for run in runs:
            if run not in better and not successive_halving.has_ended_by_itself(run) and mark_stopped_early(run):
                self._rows[run.id] = replace(self._rows[run.id], state=STOPPED)
        return better

    def _train_runs(self, runs: Sequence[PlannedRun]) -> None:
        """Train the runs that are not finished, each up to its limit of epochs."""
        unfinished = []
        for run in runs:
            if finished := check_finished(run):
                self._update_row(TrainedRun(run.id, finished))
            else:
                unfinished.append(run)
                self._rows[run.id] = replace(self._rows[run.id], state=WAITING)
        self._terminal.start_stage(self._report, len(unfinished))
        self._record.save_rows(self._report.rows)
        with graceful_shutdown(self._stopping.set):
            for outcome in executors.run_each(
                self.options.executor,
                train_work_item,
                self._pack_runs(unfinished),
                self.options.workers,
                resources=ResourceRequest(self.options.threads, self._gpus),
                should_stop=self._stopping.is_set,
            ):
                for trained in outcome.result or _recover_lost_item(outcome.item, outcome.failure):
                    self._update_row(trained)
                    self._terminal.report_run(self._report, self._rows[trained.id])
                self._record.save_rows(self._report.rows)

    def _update_row(self, trained: TrainedRun) -> None:
        row = self._rows[trained.id]
        finished = trained.finished
        if finished is None:
            self._rows[trained.id] = SweepRow(row.run, FAILED, note=trained.failure)
        else:
            note = f"repaired: {trained.repaired}" if trained.repaired else row.note
            self._rows[trained.id] = SweepRow(row.run, DONE, finished.accuracy, finished.epochs, note)

    def _pack_runs(self, runs: Sequence[PlannedRun]) -> list[WorkItem]:
        """Pack runs into work items: one run each on a CPU, several of equal shape together on a GPU.

        Runs of one shape are divided by the number of GPUs, not of workers: workers that share a GPU would only take
        turns.
        """
        if not self._gpus:
            return [WorkItem((run,), self.options.threads) for run in runs]
        runs_of_shape: dict[str, list[PlannedRun]] = {}
        for run in runs:
            runs_of_shape.setdefault(compute_shape_key(run), []).append(run)
        gpus = math.ceil(self.options.workers * self._gpus)
        if not gpus and self.options.executor == "local":
            gpus = torch.cuda.device_count()
        items = []
        for alike in runs_of_shape.values():
            size = min(self.options.together, -(-len(alike) // gpus) if gpus else len(alike))
            items += [WorkItem(tuple(alike[start : start + size]), threads=0) for start in range(0, len(alike), size)]
        return items


def _limit_to_rung(run: PlannedRun, rung: int) -> PlannedRun:
    """The run limited to the epochs of a rung; 0 is no limit."""
    epochs = run.settings.train.epochs
    return run.limit_epochs(min(rung or epochs, epochs))


def _recover_lost_item(item: WorkItem, failure: str) -> list[TrainedRun]:
    """Results of a work item whose worker was lost: some of its runs may have finished before."""
    finished = [(run, check_finished(run)) for run in item.runs]
    return [TrainedRun(run.id, status, "" if status else failure) for run, status in finished]


def compute_shape_key(run: PlannedRun) -> str:
    """The settings that runs must share to be trained together: all but seed and learning rate."""
    settings = run.settings
    return replace(settings, train=replace(settings.train, seed=0, learning_rate=1.0)).toml()


def _describe_sweep(spec: SweepSpec, settings: Config) -> dict[str, Any]:
    """The specification as saved in the record; its hash names the record, so the keys are fixed."""
    return {
        "settings": asdict(settings),
        "grid": {axis.name: axis.text for axis in spec.axes},
        "grow": {growth.name: growth.step for growth in spec.growths},
        "seeds": spec.seeds,
        "random": spec.random,
        "halving": spec.halving,
    }


def _compute_sweep_name(spec: SweepSpec, settings: Config) -> str:
    """A hash that is equal for specifications of the same runs."""
    defaults = TrainSettings()
    neutral = {name: getattr(defaults, name) for name in NEUTRAL_SETTINGS}
    description = _describe_sweep(spec, replace(settings, train=replace(settings.train, **neutral)))
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:8]
