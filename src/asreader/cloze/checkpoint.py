"""questions, piece by piece -> one file or folder, which appears only when all is there; a stopped job goes on.

Until then everything lies in `OUT.unfinished`: the questions so far, and a journal with one line for each finished
piece. A kill between the two costs one piece: what the journal does not know is cut off.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from asreader.errors import InputError
from asreader.system import atomic_files


@dataclass(frozen=True, slots=True)
class PieceResult:
    """What became of one piece of work: a book, or some articles of a file."""

    name: str
    size: int
    questions: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    bad: str = ""
    """Why nothing could be made of it, as one line; "" if all is well."""
    note: str = ""
    weight: int = 0
    """How much the note matters beside those of other pieces."""


@dataclass(frozen=True, slots=True)
class PieceOutput:
    """What is written for one piece: text at the end of the file, or files of a folder."""

    text: str = ""
    files: tuple[tuple[str, str], ...] = ()


class OutputCheckpoint:
    """The growing output. `finished` holds the pieces that an earlier, stopped job had done with the same settings."""

    def __init__(self, out: Path, settings: Mapping[str, Any], as_folder: bool = False) -> None:
        if out.is_dir() and (not as_folder or any(out.iterdir())):
            raise InputError(f"{out}: exists already; remove it or choose another --out")
        self.out, self.settings = out, dict(settings) | {"folder": as_folder}
        self.folder = out.with_name(out.name + ".unfinished")
        self.questions, self.journal = self.folder / "questions", self.folder / "journal.jsonl"
        self.finished = tuple(self._read_journal())
        if not self.finished:
            self._begin(as_folder)

    def _read_journal(self) -> Iterator[PieceResult]:
        """The pieces done so far, if the journal is of the same job; a torn last line is not counted."""
        if not self.journal.is_file() or not self.questions.exists():
            return
        with self.journal.open(encoding="utf-8") as lines:
            if _row(next(lines, "")) != self.settings:
                return
            for row in map(_row, lines):
                if row is None:
                    return
                yield PieceResult(**row["made"])

    def _begin(self, as_folder: bool) -> None:
        with atomic_files.failures_named(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            self.questions.mkdir() if as_folder else self.questions.touch()
            self.journal.write_text(json.dumps(self.settings) + "\n", encoding="utf-8")

    def keep(self, count: int) -> None:
        """Go on behind the first `count` finished pieces; what lies behind them is cut off."""
        with atomic_files.failures_named(self.folder):
            lines = self.journal.read_text(encoding="utf-8").splitlines(keepends=True)[: count + 1]
            end = json.loads(lines[-1])["end"] if count else 0
            if self.questions.is_file():
                with self.questions.open("r+b") as file:
                    file.truncate(end)
            atomic_files.write_text(self.journal, "".join(lines))
        self.finished = self.finished[:count]

    def write(self, results: Iterable[tuple[PieceResult, PieceOutput]]) -> Iterator[PieceResult]:
        """Add the results in order; each is on disk before it is yielded."""
        with (
            atomic_files.failures_named(self.out),
            self.journal.open("a", encoding="utf-8") as journal,
            self._end() as file,
        ):
            for made, output in results:
                for name, text in output.files:
                    (self.questions / name).write_text(text, encoding="utf-8", newline="\n")
                if file is not None:
                    file.write(output.text.encode())
                    file.flush()
                row = {"made": asdict(made), "end": file.tell() if file is not None else 0}
                journal.write(json.dumps(row, ensure_ascii=False) + "\n")
                journal.flush()
                yield made

    def _end(self) -> AbstractContextManager[BinaryIO | None]:
        """The file to add to, or None where the output is a folder."""
        return self.questions.open("ab") if self.questions.is_file() else nullcontext()

    def finish(self) -> None:
        """The questions take their place; nothing else is left."""
        with atomic_files.failures_named(self.out):
            for path in [self.questions, *self.questions.glob("*")]:
                atomic_files.flush_to_disk(path)
            self.questions.replace(self.out)
            atomic_files.flush_to_disk(self.out.parent)
            shutil.rmtree(self.folder)

    def discard(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _row(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
