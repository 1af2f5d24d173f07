"""pieces of work -> questions on disk: by any executor, in order, under a bar, resumable; always the same output."""

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
from asreader.system.signals import politely

SHOWN_ERRORS = 5
"""How many bad pieces a Summary names; it counts all."""


class Piece(Protocol):
    """Something that questions are made from; small, for it travels to a worker."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...


Work = TypeVar("Work", bound=Piece)


@dataclass(frozen=True, slots=True)
class MakingJob:
    """How it is done, which changes nothing about what comes out."""

    out: Path
    executor: str = "local"
    workers: int = 0
    skip_bad: bool = False


@dataclass
class MakingSummary:
    """What became of all pieces."""

    pieces: int = 0
    questions: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    bad: int = 0
    first_bad: list[str] = field(default_factory=list)
    noted: list[tuple[int, str]] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """What is worth saying of single pieces, the weightiest first."""
        return [note for _, note in sorted(self.noted, key=lambda one: -one[0])]

    def add(self, made: PieceResult) -> None:
        """Count one piece."""
        self.pieces += not made.bad
        self.questions += made.questions
        self.counts.update(made.counts)
        if made.bad:
            self.bad += 1
            self.first_bad += [made.bad] * (self.bad <= SHOWN_ERRORS)
        if made.note:
            self.noted.append((made.weight, made.note))

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {"questions": self.questions, **self.counts, "bad": self.bad, "notes": self.notes}


def run_maker(
    pieces: Iterable[Work],
    function: Callable[[Work], tuple[PieceResult, PieceOutput]],
    job: MakingJob,
    settings: Mapping[str, Any],
    what: str,
    total: int | None = None,
    as_folder: bool = False,
) -> MakingSummary:
    """Apply `function` to every piece and write what it returns; `settings` says what may not differ when going on."""
    output = OutputCheckpoint(job.out, dict(settings) | {"asreader": asreader.__version__}, as_folder)
    summary = MakingSummary()
    try:
        rest = _behind(iter(pieces), output, summary, job)
        stopping = threading.Event()
        with politely(stopping.set), progress.bar(in_bytes=True) as bar:
            task = bar.add_task(what, total=total, completed=sum(made.size for made in output.finished), note="")
            for made in output.write(executors.ordered(job.executor, function, rest, job.workers)):
                if stopping.is_set():
                    raise KeyboardInterrupt
                if made.bad and not job.skip_bad:
                    raise InputError(f"{made.bad}; --skip-bad leaves it out")
                summary.add(made)
                bar.update(task, advance=made.size, note=f"{summary.pieces:,} {what}, {summary.questions:,} questions")
        if not summary.questions:
            raise InputError(_nothing(summary, what))
    except BaseException:
        if not summary.questions:
            output.discard()
        else:
            progress.say(f"what was made so far is kept in {output.folder}; the same command goes on from there")
        raise
    output.finish()
    return summary


def _behind(pieces: Iterator[Work], output: OutputCheckpoint, summary: MakingSummary, job: MakingJob) -> Iterator[Work]:
    """The pieces that an earlier job has not done; those it has are counted, as long as they are still the same."""
    for count, made in enumerate(output.finished):
        piece = next(pieces, None)
        same = piece is not None and (piece.name, piece.size) == (made.name, made.size)
        if piece is None or not same or (made.bad and not job.skip_bad):
            output.keep(count)
            return chain([] if piece is None else [piece], pieces)
        summary.add(made)
    if output.finished:
        output.keep(len(output.finished))
        progress.say(f"going on from {output.folder}: {len(output.finished):,} done before")
    return pieces


def _nothing(summary: MakingSummary, what: str) -> str:
    if summary.bad and not summary.pieces:
        return f"none of the {what} could be read; the first: {summary.first_bad[0]}"
    return f"no question could be made from these {what}; is the text long enough, and --tagger the right one for it?"


def group_items(things: Iterable[Any], size: int) -> Iterator[tuple[Any, ...]]:
    """Things in groups, for work whose single pieces are too small to send around."""
    remaining = iter(things)
    while some := tuple(islice(remaining, size)):
        yield some
