"""long work -> a progress bar with speed and remaining time on stderr; silent if stderr is not a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

T = TypeVar("T")

console = Console(stderr=True, highlight=False)


class _Speed(ProgressColumn):
    """Steps per second, averaged by rich over the last 30 seconds."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s", style="dim")


def progress_bar(in_bytes: bool = False) -> Progress:
    """A bar with description, count, speed, remaining time and a note such as the loss (`update(task, note=...)`)."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        *((DownloadColumn(), TransferSpeedColumn()) if in_bytes else (MofNCompleteColumn(), _Speed())),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def track_progress(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Yield the items while a progress bar counts them."""
    with progress_bar() as progress:
        task = progress.add_task(description, total=total, note="")
        for item in items:
            yield item
            progress.advance(task)


@contextmanager
def show_spinner(description: str) -> Iterator[None]:
    """Show a spinner during work of unknown length."""
    with console.status(description) if console.is_terminal else nullcontext():
        yield


def print_status(text: str) -> None:
    """Print one line for the user to stderr; stdout is kept for results."""
    console.print(text, markup=False, soft_wrap=True)
