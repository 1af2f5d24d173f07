"""questions, piece by piece -> one file or folder, which appears only when it is complete; a stopped job resumes.

Until then the folder `OUT.unfinished` holds the questions so far and a journal with one line per finished piece.
Questions that are not in the journal are cut off on resume, so a kill costs at most one piece.
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
    """The result of one piece of work, such as a book or a group of articles. Its fields are written to the journal."""

    name: str
    size: int
    questions: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    bad: str = ""
    """The error, in one line, if the piece could not be read; otherwise empty."""
    note: str = ""
    weight: int = 0
    """The importance of the note; notes with greater weights are shown first."""


@dataclass(frozen=True, slots=True)
class PieceOutput:
    """What is written for one piece: text to append to the output file, or (name, text) files for the output folder."""

    text: str = ""
    files: tuple[tuple[str, str], ...] = ()


class OutputCheckpoint:
    """The unfinished output. `finished` holds the pieces that an earlier job with the same settings has done."""

    def __init__(self, out: Path, settings: Mapping[str, Any], as_folder: bool = False) -> None:
        if out.is_dir() and (not as_folder or any(out.iterdir())):
            raise InputError(f"{out}: exists already; remove it or choose another --out")
        self.out = out
        self.settings = dict(settings) | {"folder": as_folder}
        self.folder = out.with_name(out.name + ".unfinished")
        self.questions = self.folder / "questions"
        self.journal = self.folder / "journal.jsonl"
        self.finished = tuple(self._read_journal())
        if not self.finished:
            self._create_files(as_folder)

    def _read_journal(self) -> Iterator[PieceResult]:
        """The finished pieces, if the journal belongs to the same job; an incomplete last line is ignored."""
        if not self.journal.is_file() or not self.questions.exists():
            return
        with self.journal.open(encoding="utf-8") as lines:
            if _parse_row(next(lines, "")) != self.settings:
                return
            for row in map(_parse_row, lines):
                if row is None:
                    return
                yield PieceResult(**row["made"])

    def _create_files(self, as_folder: bool) -> None:
        with atomic_files.disk_errors_as_input_errors(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            self.questions.mkdir() if as_folder else self.questions.touch()
            self.journal.write_text(json.dumps(self.settings) + "\n", encoding="utf-8")

    def truncate(self, count: int) -> None:
        """Keep the first `count` finished pieces and cut off everything after them."""
        with atomic_files.disk_errors_as_input_errors(self.folder):
            lines = self.journal.read_text(encoding="utf-8").splitlines(keepends=True)[: count + 1]
            end = json.loads(lines[-1])["end"] if count else 0
            if self.questions.is_file():
                with self.questions.open("r+b") as file:
                    file.truncate(end)
            atomic_files.write_text(self.journal, "".join(lines))
        self.finished = self.finished[:count]

    def append_results(self, results: Iterable[tuple[PieceResult, PieceOutput]]) -> Iterator[PieceResult]:
        """Append the results in order; each is on disk before it is yielded."""
        with (
            atomic_files.disk_errors_as_input_errors(self.out),
            self.journal.open("a", encoding="utf-8") as journal,
            self._open_output() as file,
        ):
            for result, output in results:
                for name, text in output.files:
                    (self.questions / name).write_text(text, encoding="utf-8", newline="\n")
                if file is not None:
                    file.write(output.text.encode())
                    file.flush()
                row = {"made": asdict(result), "end": file.tell() if file is not None else 0}
                journal.write(json.dumps(row, ensure_ascii=False) + "\n")
                journal.flush()
                yield result

    def _open_output(self) -> AbstractContextManager[BinaryIO | None]:
        """The file to append to, or None if the output is a folder."""
        return self.questions.open("ab") if self.questions.is_file() else nullcontext()

    def publish(self) -> None:
        """Move the questions to `out` and delete the checkpoint."""
        with atomic_files.disk_errors_as_input_errors(self.out):
            for path in [self.questions, *self.questions.glob("*")]:
                atomic_files.fsync_path(path)
            self.questions.replace(self.out)
            atomic_files.fsync_path(self.out.parent)
            shutil.rmtree(self.folder)

    def delete(self) -> None:
        """Delete the checkpoint with its questions."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _parse_row(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
