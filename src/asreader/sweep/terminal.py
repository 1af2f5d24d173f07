"""a sweep report -> tables for the terminal: live while the sweep runs, complete at its end."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from asreader.runs.folder import Run
from asreader.sweep.status import read_validations
from asreader.sweep.summary import DONE, FAILED, STOPPED, WAITING, SweepReport, SweepRow
from asreader.system.progress import console, print_status

LIVE_ROWS = 12
"""Rows of the live table."""


class SweepTerminal:
    """Shows the progress of a sweep: a live table in a terminal, otherwise one line for each run that ends."""

    def __init__(self) -> None:
        self._report: SweepReport | None = None
        self._start_time = time.time()
        self._total = 0
        self._done = 0
        self._live = Live(
            console=console,
            get_renderable=self._render_table,
            refresh_per_second=1,
            transient=True,
            redirect_stdout=False,
        )

    def __enter__(self) -> SweepTerminal:
        if console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def start_stage(self, report: SweepReport, total: int) -> None:
        """Show a new stage in which `total` runs are trained."""
        self._report = report
        self._start_time = time.time()
        self._total = total
        self._done = 0

    def report_run(self, report: SweepReport, row: SweepRow) -> None:
        """Show that a run is done or has failed."""
        self._report = report
        self._done += 1
        if row.note or not console.is_terminal:
            result = "failed" if row.accuracy is None else f"accuracy {row.accuracy:.4f}"
            note = f", {row.note}" if row.note else ""
            print_status(f"{row.run.id} ({row.run.label}): {result}{note}; {self._format_remaining()}")

    def _format_remaining(self) -> str:
        remaining = self._total - self._done
        if not remaining or not self._done:
            return f"{remaining} to go"
        seconds = (time.time() - self._start_time) / self._done * remaining
        return f"{remaining} to go, {_format_duration(seconds)} left"

    def _render_table(self) -> RenderableType:
        report = self._report
        if report is None:
            return Text("sweep: checking existing runs")
        running = [row for row in report.rows if row.state == WAITING and _last_metrics_time(row) > self._start_time]
        table = Table(box=None, pad_edge=False)
        for title in ("", "epochs", "accuracy", ""):
            table.add_column(title, justify="right" if title else "left")
        for row in running:
            validations = read_validations(row.run)
            epoch = str(max((validation.epoch for validation in validations), default=0))
            accuracy = f"{max(validation.accuracy for validation in validations):.4f}" if validations else ""
            table.add_row(Text(row.run.label), epoch, accuracy, Text("running", style="yellow"))
        ranked = sorted((row for row in report.rows if row.accuracy is not None), key=lambda row: -(row.accuracy or 0))
        for row in ranked[: max(0, LIVE_ROWS - len(running))]:
            table.add_row(Text(row.run.label), str(row.epochs), f"{row.accuracy:.4f}", Text(row.state, style="dim"))
        return Group(Text(self._format_head(report, len(running)), style="bold"), table)

    def _format_head(self, report: SweepReport, running: int) -> str:
        counts = Counter(row.state for row in report.rows)
        states = ", ".join(f"{counts[state]} {state}" for state in (DONE, STOPPED, FAILED) if counts[state])
        best = "" if report.best is None else f"; best {report.best.accuracy:.4f} ({report.best.run.label})"
        return (
            f"sweep of {len(report.rows)} runs: {states or 'none done'}, {running} running; "
            f"{self._format_remaining()}{best}"
        )


def _last_metrics_time(row: SweepRow) -> float:
    """When the run last wrote to its metrics log, in seconds since the epoch."""
    try:
        return Run(row.run.folder).metrics.stat().st_mtime
    except OSError:
        return 0.0


def _format_duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def build_sweep_table(report: SweepReport) -> Table:
    """One row for each combination: settings, mean and standard deviation over seeds, the accuracy of each run."""
    table = Table(box=None, pad_edge=False)
    names = [name for name, _ in report.rows[0].run.combination] if report.rows else []
    for title in (*names, "mean", "deviation", "runs"):
        table.add_column(title, justify="left" if title in names or title == "runs" else "right")
    for group in report.groups:
        numbers = [f"{number:.4f}" if number is not None else "" for number in (group.mean, group.deviation)]
        values = [Text(value) for _, value in group.combination]
        table.add_row(*values, *numbers, Text("  ".join(map(_format_cell, group.rows))))
    return table


def format_closing_lines(report: SweepReport) -> list[str]:
    """Lines below the table: the best run, the number of runs stopped early, and the failures."""
    best = report.best
    lines = [f"best: {best.accuracy:.4f}, {best.run.label}: {best.run.folder}"] if best else []
    if stopped := [row for row in report.rows if row.state == STOPPED]:
        lines.append(f"* stopped early: {len(stopped)} of {len(report.rows)} runs")
    return [*lines, *(f"failed: {row.run.folder} ({row.run.label}): {row.note}" for row in report.failed)]


def _format_cell(row: SweepRow) -> str:
    return row.state if row.accuracy is None else f"{row.accuracy:.4f}" + "*" * (row.state == STOPPED)
