"""content -> file, written atomically: after a crash, a full disk or Ctrl-C a file is either the old or the new one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asreader.errors import InputError

_SCRATCH_SUFFIX = ".part"


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a scratch file in the folder of `path`; it replaces `path` when the block ends without an error."""
    with disk_errors_as_input_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(_SCRATCH_SUFFIX, f".{path.name}.", path.parent)
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
    """Yield a scratch folder that is renamed to `path` at the end; an existing `path` is never changed."""
    with disk_errors_as_input_errors(path):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(f"{path}: exists already; remove it or choose another --out")
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(_SCRATCH_SUFFIX, f".{path.name}.", path.parent))
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
    """A folder and all folders below it. Links are followed (runs are often collected by links), each target once."""
    visited = set()
    for name, subfolders, _ in os.walk(root, followlinks=True):
        target = os.path.realpath(name)
        if target in visited:
            subfolders.clear()
            continue
        visited.add(target)
        yield Path(name)


def remove_scratch_files(folder: Path) -> None:
    """Delete scratch files that a killed process left behind."""
    for path in folder.rglob(f".*{_SCRATCH_SUFFIX}"):
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write or replace a text file atomically."""
    with atomic_write(path) as scratch:
        scratch.write_text(text, encoding="utf-8", newline="\n")


def fsync_path(path: Path) -> None:
    """Flush a file or folder to disk: a rename is only as durable as the bytes it points to."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def disk_errors_as_input_errors(path: Path) -> Iterator[None]:
    """Turn an OSError (disk full, no permission) into a one-line InputError: only the user can fix it."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
