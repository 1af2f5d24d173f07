"""rows of numbers -> CSV, Markdown: the values that a figure draws."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from asreader.system.markup import escape_controls, shorten_word

Cell = str | int | float | None

MAX_TEXT_LENGTH = 60
"""Longest text in characters that a page shows; CSV files hold the whole text."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
_MARKDOWN = re.compile(r"[\\`*_~\[\]|$#]")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under named columns; unknown values are None."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        """ValueError if a row does not fit the header."""
        if any(len(row) != len(self.header) for row in self.rows):
            raise ValueError(f"a row has a different number of cells than the header {self.header}")

    def column(self, name: str) -> list[Cell]:
        """The cells of one column."""
        index = self.header.index(name)
        return [row[index] for row in self.rows]

    def select_rows(self, name: str, value: Cell) -> Table:
        """The rows with this value in this column."""
        index = self.header.index(name)
        return Table(self.header, tuple(row for row in self.rows if row[index] == value))

    def iterate_records(self) -> Iterator[dict[str, Cell]]:
        """Each row as a dict from column to cell."""
        return (dict(zip(self.header, row, strict=True)) for row in self.rows)

    def to_csv(self) -> str:
        """CSV with every digit; texts are quoted, numbers are not.

        A text that a spreadsheet would read as a formula (it starts with = + - @) gets a leading apostrophe, and so
        does a text that starts with an apostrophe: removing one leading apostrophe restores the text.
        """
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(self.header)
        writer.writerows([_escape_formula(cell) for cell in row] for row in self.rows)
        return buffer.getvalue()

    def to_markdown(self) -> str:
        """A Markdown table: numbers rounded, texts shortened and escaped."""
        lines = [self.header, ["---"] * len(self.header), *(map(_format_cell, row) for row in self.rows)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def flatten_text(text: str, longest: int = MAX_TEXT_LENGTH) -> str:
    """A text on one line, shortened, with control characters made visible."""
    return " ".join(escape_controls(shorten_word(text, longest)).split())


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it literally."""
    return _MARKDOWN.sub(r"\\\g<0>", html.escape(text, quote=False))


def _escape_formula(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    text = cell.encode("utf-8", "backslashreplace").decode()  # a lone surrogate cannot be encoded
    return f"'{text}" if text.startswith(_FORMULA) else text


def _format_cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escape_markdown(flatten_text(cell))
    return "" if cell is None else f"{cell:.4f}" if isinstance(cell, float) else f"{cell:,}"
