"""pieces of work -> questions on disk: runs a maker on any executor, in order, resumable, with reproducible output."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import asreader
from asreader import executors
from asreader.cloze.checkpoint import OutputCheckpoint, PieceOutput, PieceResult
from asreader.errors import InputError
from asreader.system import progress
from asreader.system.signals import graceful_shutdown

SHOWN_ERRORS = 5
"""How many bad pieces a MakingSummary names; it counts all."""


class Piece(Protocol):
    """A piece of work, such as a book. It is sent to a worker, so it should be small."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...


AnyPiece = TypeVar("AnyPiece", bound=Piece)
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class MakingJob:
    """Where the output goes and how the work is executed; only `skip_bad` affects the content of the output."""

    out: Path
    executor: str = "local"
    workers: int = 0
    skip_bad: bool = False


@dataclass
class MakingSummary:
    """Totals over all pieces."""

    pieces: int = 0
    questions: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    bad: int = 0
    first_bad: list[str] = field(default_factory=list)
    """The errors of the first SHOWN_ERRORS bad pieces."""
    noted: list[PieceResult] = field(default_factory=list)
    """The pieces with a note."""

    @property
    def notes(self) -> list[str]:
        """The notes on single pieces, the most important first."""
        return [result.note for result in sorted(self.noted, key=lambda result: -result.weight)]

    def add_result(self, result: PieceResult) -> None:
        """Count one piece."""
        self.pieces += not result.bad
        self.questions += result.questions
        self.counts.update(result.counts)
        if result.bad:
            self.bad += 1
            if self.bad <= SHOWN_ERRORS:
                self.first_bad.append(result.bad)
        if result.note:
            self.noted.append(result)

    def as_json(self) -> dict[str, Any]:
        """The summary as a JSON object."""
        return {"questions": self.questions, **self.counts, "bad": self.bad, "notes": self.notes}


def run_maker(
    pieces: Iterable[AnyPiece],
    maker: Callable[[AnyPiece], tuple[PieceResult, PieceOutput]],
    job: MakingJob,
    settings: Mapping[str, Any],
    label: str,
    total: int | None = None,
    as_folder: bool = False,
) -> MakingSummary:
    """Apply `maker` to every piece and write its outputs in order.

    A stopped job is resumed only if its `settings` were equal. `label` names the pieces in messages, `total` is the sum
    of their sizes, if known.
    """
    checkpoint = OutputCheckpoint(job.out, dict(settings) | {"asreader": asreader.__version__}, as_folder)
    summary = MakingSummary()
    try:
        remaining = _skip_finished(iter(pieces), checkpoint, summary, job)
        stopping = threading.Event()
        with graceful_shutdown(stopping.set), progress.progress_bar(in_bytes=True) as bar:
            completed = sum(result.size for result in checkpoint.finished)
            task = bar.add_task(label, total=total, completed=completed, note="")
            for result in checkpoint.append_results(executors.map_ordered(job.executor, maker, remaining, job.workers)):
                if stopping.is_set():
                    raise KeyboardInterrupt
                if result.bad and not job.skip_bad:
                    raise InputError(f"{result.bad}; or skip it with --skip-bad")
                summary.add_result(result)
                note = f"{summary.pieces:,} {label}, {summary.questions:,} questions"
                bar.update(task, advance=result.size, note=note)
        if not summary.questions:
            raise InputError(_explain_no_questions(summary, label))
    except BaseException:
        if not summary.questions:
            checkpoint.delete()
        else:
            progress.print_status(
                f"the questions made so far are in {checkpoint.folder}; run the same command again to resume"
            )
        raise
    checkpoint.publish()
    return summary


def _skip_finished(
    pieces: Iterator[AnyPiece], checkpoint: OutputCheckpoint, summary: MakingSummary, job: MakingJob
) -> Iterator[AnyPiece]:
    """The pieces that an earlier job has not finished; those it has are counted, as long as they are unchanged."""
    for count, result in enumerate(checkpoint.finished):
        piece = next(pieces, None)
        is_same = piece is not None and (piece.name, piece.size) == (result.name, result.size)
        if piece is None or not is_same or (result.bad and not job.skip_bad):
            checkpoint.truncate(count)
            return chain([] if piece is None else [piece], pieces)
        summary.add_result(result)
    if checkpoint.finished:
        checkpoint.truncate(len(checkpoint.finished))
        progress.print_status(f"resuming from {checkpoint.folder}: {len(checkpoint.finished):,} already done")
    return pieces


def _explain_no_questions(summary: MakingSummary, label: str) -> str:
    if summary.bad and not summary.pieces:
        return f"none of the {label} could be read; the first: {summary.first_bad[0]}"
    return f"no question could be made from these {label}; is the text long enough, and --tagger the right one for it?"


def group_items(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    """Items in groups of `size`, for work whose single items are too small to send to a worker."""
    remaining = iter(items)
    while group := tuple(islice(remaining, size)):
        yield group
