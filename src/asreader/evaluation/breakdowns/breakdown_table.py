"""rows of numbers -> CSV, Markdown: exactly what a figure draws, for programs and for people."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from asreader.system.markup import shortened, visible

Cell = str | int | float | None

MAX_TEXT_LENGTH = 60
"""Characters of a text that a page shows; a CSV file has all of them."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
_MARKDOWN = re.compile(r"[\\`*_~\[\]|$#]")


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns; what is not known is None."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        """ValueError if a row does not fit the header."""
        if any(len(row) != len(self.header) for row in self.rows):
            raise ValueError(f"a row has not as many cells as the header {self.header}")

    def column(self, name: str) -> list[Cell]:
        """The cells under one name."""
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def select_rows(self, name: str, value: Cell) -> Table:
        """The rows that have this value in this column."""
        place = self.header.index(name)
        return Table(self.header, tuple(row for row in self.rows if row[place] == value))

    def iterate_records(self) -> Iterator[dict[str, Cell]]:
        """Each row, its cells by name."""
        return (dict(zip(self.header, row, strict=True)) for row in self.rows)

    def to_csv(self) -> str:
        """CSV with every digit; texts are in quotes, numbers are not.

        A text that a spreadsheet would take for a formula (= + - @ in front) gets an apostrophe in front, and so does
        one that begins with an apostrophe: taking one away gives the text back.
        """
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(self.header)
        writer.writerows([_harmless(cell) for cell in row] for row in self.rows)
        return written.getvalue()

    def to_markdown(self) -> str:
        """A Markdown table: numbers rounded, texts shortened and escaped."""
        lines = [self.header, ["---"] * len(self.header), *(map(_shown, row) for row in self.rows)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def flatten_text(text: str, longest: int = MAX_TEXT_LENGTH) -> str:
    """A text that can stand on one line anywhere: of bearable length, nothing in it is obeyed."""
    return " ".join(visible(shortened(text, longest)).split())


def escape_markdown(text: str) -> str:
    """A text as Markdown that shows it letter by letter."""
    return _MARKDOWN.sub(r"\\\g<0>", html.escape(text, quote=False))


def _harmless(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    text = cell.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair cannot be written
    return f"'{text}" if text.startswith(_FORMULA) else text


def _shown(cell: Cell) -> str:
    if isinstance(cell, str):
        return escape_markdown(flatten_text(cell))
    return "" if cell is None else f"{cell:.4f}" if isinstance(cell, float) else f"{cell:,}"
