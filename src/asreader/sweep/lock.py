"""a name -> the right to be alone with it, among all processes that share a sweep's folder."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asreader.system import atomic_files


@contextmanager
def locked(out: Path, name: str) -> Iterator[None]:
    """Wait until nobody else works on this; the system lets go of it for whoever is killed."""
    place = out / ".locks"
    with atomic_files.disk_errors_as_input_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        file = (place / name).open("a")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
