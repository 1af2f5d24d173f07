"""what became of every run -> a report: accuracies, their mean and deviation over seeds, failures; kept on disk."""

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
from asreader.sweep.search_space import Choice
from asreader.system import atomic_files
from asreader.system.progress import print_status

WAITING, DONE, STOPPED, FAILED = "waiting", "done", "stopped early", "failed"


@dataclass(frozen=True)
class Row:
    """A run and what became of it."""

    run: PlannedRun
    state: str = WAITING
    accuracy: float | None = None
    epochs: int = 0
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        run = self.run
        return {
            "id": run.id,
            "settings": run.chosen,
            "seed": run.seed,
            "state": self.state,
            "accuracy": self.accuracy,
            "epochs": self.epochs,
            "note": self.note,
        }


@dataclass(frozen=True)
class Group:
    """The runs of one combination, which differ in their seeds."""

    choice: Choice
    rows: tuple[Row, ...]

    @property
    def accuracies(self) -> list[float]:
        """Of the runs that have one."""
        return [row.accuracy for row in self.rows if row.accuracy is not None]

    @property
    def mean(self) -> float | None:
        """Over seeds."""
        return statistics.fmean(self.accuracies) if self.accuracies else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation between seeds, from two on."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else None


@dataclass(frozen=True)
class Report:
    """All runs of a sweep."""

    out: Path
    rows: tuple[Row, ...]

    @property
    def groups(self) -> list[Group]:
        """Runs by combination, the best mean first."""
        found: dict[Choice, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.run.choice, []).append(row)
        groups = [Group(choice, tuple(rows)) for choice, rows in found.items()]
        return sorted(groups, key=lambda group: -1.0 if group.mean is None else -1.0 - group.mean)

    @property
    def best(self) -> Row | None:
        """The run with the highest validation accuracy."""
        known = [row for row in self.rows if row.accuracy is not None]
        return max(known, key=lambda row: row.accuracy or 0.0, default=None)

    @property
    def failed(self) -> list[Row]:
        """Runs that could not be trained."""
        return [row for row in self.rows if row.state == FAILED]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "out": str(self.out),
            "best": self.best.run.id if self.best else None,
            "failed": len(self.failed),
            "runs": [row.as_json() for row in self.rows],
            "settings": [
                {
                    "settings": group.rows[0].run.chosen,
                    "mean": group.mean,
                    "deviation": group.deviation,
                    "runs": len(group.rows),
                }
                for group in self.groups
            ],
        }


@dataclass
class Record:
    """`sweep-NAME.json` in the folder of a sweep: what was asked for, and what has become of it so far."""

    out: Path
    name: str
    order: Mapping[str, Any]
    command: Sequence[str] = ()
    _trouble: bool = field(default=False, init=False)

    @property
    def path(self) -> Path:
        """One file for each different order, so that several sweeps can share a folder."""
        return self.out / f"sweep-{self.name}.json"

    def begin(self, *, resume: bool) -> None:
        """Refuse to begin again what is begun, unless it is to be gone on with."""
        if not resume and self._begun():
            raise InputError(
                f"{self.out}: this sweep was begun already ({self.path.name}); add --resume to go on with it"
            )
        for path in self.out.glob(f".{self.path.name}.*"):  # what a kill -9 left behind
            path.unlink(missing_ok=True)
        if not self.path.is_file():
            self._write([])

    def _begun(self) -> bool:
        """Whether any run of an earlier attempt was begun; a mistake that ended it before costs nothing."""
        try:
            runs = json.loads(self.path.read_text(encoding="utf-8"))["runs"]
            return any((self.out / run["id"]).is_dir() for run in runs)
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError, TypeError):
            return True

    def write(self, rows: Sequence[Row]) -> None:
        """Keep what is known; a full disk is told once, for runs may still be able to finish."""
        try:
            self._write(rows)
        except InputError as error:
            if not self._trouble:
                print_status(str(error))
            self._trouble = True

    def _write(self, rows: Sequence[Row]) -> None:
        about = {
            "asreader": asreader.__version__,
            "command": shlex.join(self.command),
            **self.order,
            "runs": [row.as_json() for row in rows],
        }
        atomic_files.write_text(self.path, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
