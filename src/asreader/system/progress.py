"""long work -> a bar with speed and time left on stderr; silent when nobody looks at a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
    """Steps a second, measured by rich over the last half minute."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s", style="dim")


def progress_bar(in_bytes: bool = False) -> Progress:
    """A bar: what, how far, how fast, how long still, and a note such as the loss (`update(task, note=...)`)."""
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


def track_progress(things: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Go through things under a bar."""
    with progress_bar() as progress:
        task = progress.add_task(what, total=total, note="")
        for thing in things:
            yield thing
            progress.advance(task)


@contextmanager
def show_spinner(what: str) -> Iterator[None]:
    """Work of unknown length."""
    with console.status(what) if console.is_terminal else _nothing():
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def print_status(text: str) -> None:
    """One line for the person, not for the program that reads stdout."""
    console.print(text, markup=False, soft_wrap=True)
