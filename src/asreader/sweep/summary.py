"""the state of every run -> a report: accuracies, mean and standard deviation over seeds, failures; saved as JSON."""

from __future__ import annotations

import json
import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asreader
from asreader.errors import InputError
from asreader.sweep.run_plan import PlannedRun
from asreader.sweep.search_space import Combination
from asreader.system import atomic_files
from asreader.system.progress import print_status

WAITING = "waiting"
DONE = "done"
STOPPED = "stopped early"
FAILED = "failed"


@dataclass(frozen=True)
class SweepRow:
    """A run and its state."""

    run: PlannedRun
    state: str = WAITING
    accuracy: float | None = None
    epochs: int = 0
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The row for programs."""
        run = self.run
        return {
            "id": run.id,
            "settings": run.chosen_settings,
            "seed": run.seed,
            "state": self.state,
            "accuracy": self.accuracy,
            "epochs": self.epochs,
            "note": self.note,
        }


@dataclass(frozen=True)
class CombinationSummary:
    """The runs of one combination, which differ in their seeds."""

    combination: Combination
    rows: tuple[SweepRow, ...]

    @property
    def accuracies(self) -> list[float]:
        """Accuracies of the runs that have one."""
        return [row.accuracy for row in self.rows if row.accuracy is not None]

    @property
    def mean(self) -> float | None:
        """Mean accuracy over seeds."""
        return statistics.fmean(self.accuracies) if self.accuracies else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation over seeds, from two runs on."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else None


@dataclass(frozen=True)
class SweepReport:
    """All runs of a sweep."""

    out: Path
    rows: tuple[SweepRow, ...]

    @property
    def groups(self) -> list[CombinationSummary]:
        """Runs by combination, the best mean first."""
        rows_of: dict[Combination, list[SweepRow]] = {}
        for row in self.rows:
            rows_of.setdefault(row.run.combination, []).append(row)
        groups = [CombinationSummary(combination, tuple(rows)) for combination, rows in rows_of.items()]
        return sorted(groups, key=lambda group: -1.0 if group.mean is None else -1.0 - group.mean)

    @property
    def best(self) -> SweepRow | None:
        """The run with the highest validation accuracy."""
        scored = [row for row in self.rows if row.accuracy is not None]
        return max(scored, key=lambda row: row.accuracy or 0.0, default=None)

    @property
    def failed(self) -> list[SweepRow]:
        """Runs that could not be trained."""
        return [row for row in self.rows if row.state == FAILED]

    def as_json(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "out": str(self.out),
            "best": self.best.run.id if self.best else None,
            "failed": len(self.failed),
            "runs": [row.as_json() for row in self.rows],
            "settings": [
                {
                    "settings": group.rows[0].run.chosen_settings,
                    "mean": group.mean,
                    "deviation": group.deviation,
                    "runs": len(group.rows),
                }
                for group in self.groups
            ],
        }


@dataclass
class SweepRecord:
    """`sweep-NAME.json` in the folder of a sweep: its specification and the state of its runs."""

    out: Path
    name: str
    spec: Mapping[str, Any]
    command: Sequence[str] = ()
    _has_warned: bool = field(default=False, init=False)

    @property
    def path(self) -> Path:
        """One file for each specification, so that several sweeps can share a folder."""
        return self.out / f"sweep-{self.name}.json"

    def start(self, *, resume: bool) -> None:
        """Refuse to start a sweep that was started before, unless it is to be resumed."""
        if not resume and self._was_started():
            raise InputError(f"{self.out}: this sweep was started before ({self.path.name}); add --resume to continue")
        for path in self.out.glob(f".{self.path.name}.*"):  # left behind by kill -9
            path.unlink(missing_ok=True)
        if not self.path.is_file():
            self._write_rows([])

    def _was_started(self) -> bool:
        """Whether an earlier attempt started any run; one that ended before needs no --resume."""
        try:
            runs = json.loads(self.path.read_text(encoding="utf-8"))["runs"]
            return any((self.out / run["id"]).is_dir() for run in runs)
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError, TypeError):
            return True

    def save_rows(self, rows: Sequence[SweepRow]) -> None:
        """Save the states of the runs. A full disk is reported once: runs may still be able to finish."""
        try:
            self._write_rows(rows)
        except InputError as error:
            if not self._has_warned:
                print_status(str(error))
            self._has_warned = True

    def _write_rows(self, rows: Sequence[SweepRow]) -> None:
        document = {
            "asreader": asreader.__version__,
            "command": shlex.join(self.command),
            **self.spec,
            "runs": [row.as_json() for row in rows],
        }
        atomic_files.write_text(self.path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
