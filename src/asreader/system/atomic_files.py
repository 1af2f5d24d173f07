"""content -> file, all or nothing: what a crash, a full disk or Ctrl-C leaves behind is the old file or the new one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asreader.errors import InputError

_PART = ".part"


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A scratch file beside `path` that takes its place once the block has ended without an error."""
    with disk_errors_as_input_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(_PART, f".{path.name}.", path.parent)
        os.close(handle)
        scratch = Path(name)
        try:
            yield scratch
            scratch.chmod(0o644)
            fsync_path(scratch)
            scratch.replace(path)
            fsync_path(path.parent)
        finally:
            scratch.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A scratch folder beside `path` that becomes it at the end; an existing `path` is never touched."""
    with disk_errors_as_input_errors(path):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(f"{path}: exists already; remove it or choose another --out")
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(_PART, f".{path.name}.", path.parent))
        try:
            yield scratch
            scratch.chmod(0o755)
            for file in sorted(scratch.rglob("*")):
                fsync_path(file)
            scratch.replace(path)
            fsync_path(path.parent)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def walk_folders(root: Path) -> Iterator[Path]:
    """A folder and all below it. Links are followed, since people collect runs by links; each place is met once."""
    met = set()
    for name, below, _ in os.walk(root, followlinks=True):
        place = os.path.realpath(name)
        if place in met:
            below.clear()
            continue
        met.add(place)
        yield Path(name)


def remove_scratch_files(folder: Path) -> None:
    """Scratch files that a kill -9 left behind."""
    for path in folder.rglob(f".*{_PART}"):
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace a text file as a whole."""
    with atomic_write(path) as scratch:
        scratch.write_text(text, encoding="utf-8", newline="\n")


def fsync_path(path: Path) -> None:
    """Wait until the disk has it: a rename is only as durable as the bytes it points to."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def disk_errors_as_input_errors(path: Path) -> Iterator[None]:
    """A disk that is full or not writable is the user's to mend: say so in one line."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
