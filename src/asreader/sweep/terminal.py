"""a report -> a table in the terminal: while a sweep runs, live; at its end, whole."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from asreader.runs.folder import Run
from asreader.sweep.status import validations
from asreader.sweep.summary import DONE, FAILED, STOPPED, WAITING, Report, Row
from asreader.system.progress import console, print_status

SHOWN = 12
"""Lines of the live table."""


class Board:
    """Shows how a sweep stands: a live table in a terminal, otherwise a line for each run that is done."""

    def __init__(self) -> None:
        self._report: Report | None = None
        self._since, self._wanted, self._done = time.time(), 0, 0
        self._live = Live(
            console=console, get_renderable=self._table, refresh_per_second=1, transient=True, redirect_stdout=False
        )

    def __enter__(self) -> Board:
        if console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def stage(self, report: Report, wanted: int) -> None:
        """So many runs are to be trained now."""
        self._report = report
        self._since, self._wanted, self._done = time.time(), wanted, 0

    def news(self, report: Report, row: Row) -> None:
        """A run is done, or has failed."""
        self._report, self._done = report, self._done + 1
        if row.note or not console.is_terminal:
            what = "failed" if row.accuracy is None else f"accuracy {row.accuracy:.4f}"
            print_status(f"{row.run.id} ({row.run.name}): {what}{f', {row.note}' if row.note else ''}; {self._left()}")

    def _left(self) -> str:
        rest = self._wanted - self._done
        if not rest or not self._done:
            return f"{rest} to go"
        return f"{rest} to go, {_duration((time.time() - self._since) / self._done * rest)} left"

    def _table(self) -> RenderableType:
        if self._report is None:
            return Text("sweep: looking at what is there")
        report, counts = self._report, Counter(row.state for row in self._report.rows)
        begun = [row for row in report.rows if row.state == WAITING and _written(row) > self._since]
        known = ", ".join(f"{counts[state]} {state}" for state in (DONE, STOPPED, FAILED) if counts[state])
        head = f"sweep of {len(report.rows)} runs: {known or 'none done'}, {len(begun)} running; {self._left()}"
        best = report.best
        if best is not None:
            head += f"; best {best.accuracy:.4f} ({best.run.name})"
        table = Table(box=None, pad_edge=False)
        for title in ("", "epochs", "accuracy", ""):
            table.add_column(title, justify="right" if title else "left")
        ranked = sorted((row for row in report.rows if row.accuracy is not None), key=lambda row: -(row.accuracy or 0))
        for row in begun:
            seen = validations(row.run)
            epoch = str(max((v.epoch for v in seen), default=0))
            accuracy = f"{max(v.accuracy for v in seen):.4f}" if seen else ""
            table.add_row(Text(row.run.name), epoch, accuracy, Text("running", style="yellow"))
        for row in ranked[: max(0, SHOWN - len(begun))]:
            table.add_row(Text(row.run.name), str(row.epochs), f"{row.accuracy:.4f}", Text(row.state, style="dim"))
        return Lines(Text(head, style="bold"), table)


def _written(row: Row) -> float:
    """When a run has last noted how it does."""
    try:
        return Run(row.run.folder).metrics.stat().st_mtime
    except OSError:
        return 0.0


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def table(report: Report) -> Table:
    """One line for each combination: its settings, mean and deviation over seeds, and the accuracy of each run."""
    shown = Table(box=None, pad_edge=False)
    names = [name for name, _ in report.rows[0].run.choice] if report.rows else []
    for title in (*names, "mean", "deviation", "runs"):
        shown.add_column(title, justify="left" if title in names or title == "runs" else "right")
    for group in report.groups:
        cells = [f"{number:.4f}" if number is not None else "" for number in (group.mean, group.deviation)]
        shown.add_row(*(Text(value) for _, value in group.choice), *cells, Text("  ".join(map(_cell, group.rows))))
    return shown


def closing(report: Report) -> list[str]:
    """What there is to say beside the table: the best run, those that were stopped early, repaired or failed."""
    best = report.best
    lines = [f"best: {best.accuracy:.4f}, {best.run.name}: {best.run.folder}"] if best else []
    if stopped := [row for row in report.rows if row.state == STOPPED]:
        lines.append(f"* stopped early: {len(stopped)} of {len(report.rows)} runs")
    return [*lines, *(f"failed: {row.run.folder} ({row.run.name}): {row.note}" for row in report.failed)]


def _cell(row: Row) -> str:
    return row.state if row.accuracy is None else f"{row.accuracy:.4f}" + "*" * (row.state == STOPPED)
