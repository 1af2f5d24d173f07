"""metrics.jsonl -> MetricsRows: the mean loss every few training steps, and the scores of each validation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

TRAIN, VALID = "train", "valid"


@dataclass(frozen=True, slots=True)
class MetricsRow:
    """One line of the log; `best` marks a validation that was better than all before it."""

    step: int
    epoch: int
    kind: str
    loss: float | None = None
    accuracy: float | None = None
    best: bool = False


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """The scores of one validation."""

    epoch: int
    accuracy: float
    best: bool


def parse_row(line: str) -> MetricsRow | None:
    """A line as a row; None if it is not a metrics row or incomplete (its writer was killed)."""
    try:
        values = json.loads(line)
        if values["kind"] not in (TRAIN, VALID):
            return None
        return MetricsRow(
            step=int(values["step"]),
            epoch=int(values.get("epoch", 0)),
            kind=values["kind"],
            loss=_parse_number(values.get("loss")),
            accuracy=_parse_number(values.get("accuracy")),
            best=bool(values.get("best", False)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _parse_number(value: object) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]


def read_metrics(path: Path) -> tuple[MetricsRow, ...]:
    """The rows of a log; none if the file is missing. Lines that cannot be parsed are skipped."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    return tuple(row for line in lines if (row := parse_row(line)) is not None)


def read_validations(path: Path) -> list[ValidationRow]:
    """The validations of a log, in order."""
    return [
        ValidationRow(row.epoch, row.accuracy, row.best)
        for row in read_metrics(path)
        if row.kind == VALID and row.accuracy is not None
    ]
