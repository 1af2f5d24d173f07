"""an order -> many runs, here or on a cluster: what is done is skipped, what fails is told, what stops goes on."""

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
from asreader.sweep.run_plan import NEUTRAL, PlannedRun, Planner
from asreader.sweep.search_space import MOST_RAISES, Axis, Choice, Growth
from asreader.sweep.status import finished, stop_early
from asreader.sweep.summary import DONE, FAILED, STOPPED, WAITING, Record, Report, Row
from asreader.sweep.terminal import Board
from asreader.sweep.worker import Trained, Unit, train_unit
from asreader.system.signals import graceful_shutdown


@dataclass(frozen=True)
class Order:
    """What is asked for: settings, which of them vary, and how often each combination is trained."""

    config: Path
    overrides: tuple[str, ...] = ()
    axes: tuple[Axis, ...] = ()
    growths: tuple[Growth, ...] = ()
    seeds: int = 1
    random: int = 0
    halving: bool = False

    def __post_init__(self) -> None:
        if self.random and self.growths:
            raise InputError("--random and --grow do not go together: one draws combinations, the other trains all")
        names = [axis.name for axis in self.axes]
        if len(set(names)) < len(names):
            raise InputError("--grid names the same setting twice; write all its values in one")


@dataclass(frozen=True)
class Job:
    """How it is done, which changes nothing about what comes out."""

    out: Path
    executor: str = "local"
    workers: int = 0
    threads: int = 1
    gpus: float | None = None
    together: int = 8
    command: tuple[str, ...] = ()


def sweep(order: Order, job: Job, *, resume: bool = False) -> Report:
    """Train what the order asks for into `job.out`; with `resume` go on with a sweep that was begun."""
    stopping = threading.Event()
    try:
        with Board() as board:
            return Sweep(order, replace(job, out=job.out.resolve()), board, stopping).run(resume=resume)
    except KeyboardInterrupt:
        raise ExecutionError(
            f"stopped; what is done is kept in {job.out}, and the same command with --resume goes on"
        ) from None


class Sweep:
    """A sweep at work."""

    def __init__(self, order: Order, job: Job, board: Board, stopping: threading.Event) -> None:
        self.order, self.job, self._board, self._stopping = order, job, board, stopping
        self._planner = Planner(order.config, order.overrides, job.out, order.seeds)
        base = self._planner.base
        self._record = Record(job.out, _name(order, base), _about(order, base), job.command)
        self._rows: dict[str, Row] = {}
        plugins.load_plugin("executors", job.executor)  # or the mistake would show only after the data were read
        self._gpus = self._share_of_gpu()

    def _share_of_gpu(self) -> float:
        device = self._planner.base.train.device
        if self.job.gpus is None:
            return 1.0 if pick_device(device).type == "cuda" else 0.0
        if device == "cuda" and not self.job.gpus:
            raise InputError("train.device is cuda and --gpus is 0; change one of them")
        return self.job.gpus

    def run(self, *, resume: bool) -> Report:
        """Train one grid, and greater ones for as long as they grow."""
        axes = self.order.axes
        choices = self._choices(axes)
        self._record.begin(resume=resume)
        for _ in range(1 + MOST_RAISES):
            self._round([run for run in self._planner.runs(choices) if run.id not in self._rows])
            grown = tuple(map(self._grown, axes))
            if grown == axes:
                break
            axes, choices = grown, self._choices(grown)
        self._record.write(self._report.rows)
        return self._report

    def _choices(self, axes: Sequence[Axis]) -> list[Choice]:
        if self.order.random:
            return search_space.drawn(axes, self.order.random, self._planner.base.train.seed)
        return search_space.combinations(axes)

    @property
    def _report(self) -> Report:
        return Report(self.job.out, tuple(self._rows.values()))

    def _grown(self, axis: Axis) -> Axis:
        step = next((growth.step for growth in self.order.growths if growth.name == axis.name), 0)
        if not step:
            return axis
        best: dict[str, float] = {}
        for group in self._report.groups:
            if group.mean is not None:
                value = dict(group.choice)[axis.name]
                best[value] = max(best.get(value, 0.0), group.mean)
        return search_space.raised(axis, step, best)

    def _round(self, runs: Sequence[PlannedRun]) -> None:
        """Train runs to their ends, or, halving, the better ones of them."""
        self._rows |= {run.id: Row(run) for run in runs}
        limits = [0]
        if self.order.halving and runs:
            for run in runs:
                successive_halving.refuse_unstoppable(run)
            limits = successive_halving.rungs(max(run.settings.train.epochs for run in runs))
        for limit in limits:
            self._train([run.until(min(limit or run.settings.train.epochs, run.settings.train.epochs)) for run in runs])
            runs = [run for run in runs if self._rows[run.id].state == DONE]
            if limit != limits[-1]:
                runs = self._better_half(runs, limit)

    def _better_half(self, runs: Sequence[PlannedRun], limit: int) -> list[PlannedRun]:
        kept = successive_halving.better_half(runs, limit)
        for run in runs:
            if run not in kept and not successive_halving.ended_by_itself(run) and stop_early(run):
                self._rows[run.id] = replace(self._rows[run.id], state=STOPPED)
        return kept

    def _train(self, runs: Sequence[PlannedRun]) -> None:
        """Train what is not yet done, up to the limit that each run brings with it."""
        rest = []
        for run in runs:
            if said := finished(run):
                self._know(Trained(run.id, said))
            else:
                rest.append(run)
                self._rows[run.id] = replace(self._rows[run.id], state=WAITING)
        self._board.stage(self._report, len(rest))
        self._record.write(self._report.rows)
        with graceful_shutdown(self._stopping.set):
            for outcome in executors.run_each(
                self.job.executor,
                train_unit,
                self._units(rest),
                self.job.workers,
                resources=ResourceRequest(self.job.threads, self._gpus),
                should_stop=self._stopping.is_set,
            ):
                for trained in outcome.result or _lost(outcome.item, outcome.failure):
                    self._know(trained)
                    self._board.news(self._report, self._rows[trained.id])
                self._record.write(self._report.rows)

    def _know(self, trained: Trained) -> None:
        run, said = self._rows[trained.id].run, trained.finished
        if said is None:
            self._rows[trained.id] = Row(run, FAILED, note=trained.failure)
        else:
            note = f"repaired: {trained.repaired}" if trained.repaired else self._rows[trained.id].note
            self._rows[trained.id] = Row(run, DONE, said.accuracy, said.epochs, note)

    def _units(self, runs: Sequence[PlannedRun]) -> list[Unit]:
        """On a CPU each run on its own; on GPUs as many of equal shape together as there are for each.

        Workers that share a GPU do not share out runs of one shape: apart they would only take turns.
        """
        if not self._gpus:
            return [Unit((run,), self.job.threads) for run in runs]
        shapes: dict[str, list[PlannedRun]] = {}
        for run in runs:
            shapes.setdefault(shape(run), []).append(run)
        gpus = math.ceil(self.job.workers * self._gpus)
        if not gpus and self.job.executor == "local":
            gpus = torch.cuda.device_count()
        units = []
        for alike in shapes.values():
            size = min(self.job.together, -(-len(alike) // gpus) if gpus else len(alike))
            units += [Unit(tuple(alike[at : at + size]), threads=0) for at in range(0, len(alike), size)]
        return units


def _lost(unit: Unit, failure: str) -> list[Trained]:
    """What is left of a unit whose worker was lost: some of its runs may have been finished before."""
    known = [(run, finished(run)) for run in unit.runs]
    return [Trained(run.id, said, "" if said else failure) for run, said in known]


def shape(run: PlannedRun) -> str:
    """What readers must have in common to be trained together: all but seed and learning rate."""
    settings = run.settings
    return replace(settings, train=replace(settings.train, seed=0, learning_rate=1.0)).toml()


def _about(order: Order, base: Config) -> dict[str, Any]:
    """What was asked for, for the record."""
    return {
        "settings": {"data": asdict(base.data), "reader": dict(base.reader), "train": asdict(base.train)},
        "grid": {axis.name: axis.text for axis in order.axes},
        "grow": {growth.name: growth.step for growth in order.growths},
        "seeds": order.seeds,
        "random": order.random,
        "halving": order.halving,
    }


def _name(order: Order, base: Config) -> str:
    """The same for orders that ask for the same runs."""
    defaults = TrainSettings()
    same = replace(base.train, **{name: getattr(defaults, name) for name in NEUTRAL})
    about = json.dumps(_about(order, replace(base, train=same)), sort_keys=True)
    return hashlib.sha256(about.encode()).hexdigest()[:8]
