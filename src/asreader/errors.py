"""What a user may see when something is wrong: a mistake in the input, a bad question in a file, or failed work."""

from __future__ import annotations

from dataclasses import dataclass


class InputError(Exception):
    """A mistake of the user, in one line: the file or option, the reason and what to do; exit code 2."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A question that could not be read: its file, line and the reason. Formats yield it in place of the Example."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class ExecutionError(Exception):
    """Work that failed although its input was right, in one line; exit code 1."""
