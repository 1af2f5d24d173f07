"""a name -> an exclusive lock, shared by all processes that use a sweep's folder."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asreader.system import atomic_files


@contextmanager
def hold_lock(out: Path, name: str) -> Iterator[None]:
    """Wait for the lock and hold it; the operating system releases it if the process is killed."""
    folder = out / ".locks"
    with atomic_files.disk_errors_as_input_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / name).open("a")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
