"""The two ways in which input can be wrong: a whole command's mistake, or one bad question in a file."""

from __future__ import annotations

from dataclasses import dataclass


class InputError(Exception):
    """The user's mistake, in one line that names the file or option, the reason and what to do; exit code 2."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One question that could not be read: where it stands and why. Formats yield it in place of the Example."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class ExecutionError(Exception):
    """Work that could not go on through no fault of its input: one line, exit 1."""
