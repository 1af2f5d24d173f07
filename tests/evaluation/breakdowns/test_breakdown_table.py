"""Tables: CSV round trip, and Markdown with escaped cells."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.evaluation.breakdowns.breakdown_table import Cell, Table, escape_markdown, flatten_text

cells = st.text(max_size=12) | st.integers() | st.floats(allow_nan=False) | st.none()


@given(st.lists(st.tuples(cells, cells), max_size=5))
def test_csv_round_trip(rows: list[tuple[Cell, Cell]]) -> None:
    """Every cell survives, apart from the leading apostrophe that keeps it from being a formula."""
    text = Table(("one", "two"), tuple(rows)).to_csv()
    parsed = list(csv.reader(io.StringIO(text, newline="")))[1:]
    for cells_read, row in zip(parsed, rows, strict=True):
        for cell, original in zip(cells_read, row, strict=True):
            if isinstance(original, str):
                assert cell[:1] not in tuple("=+-@\t\r")
                assert cell.removeprefix("'") == original
            elif original is not None:
                assert type(original)(cell) == original
            else:
                assert cell == ""


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=30))
def test_markdown_cells_are_escaped(text: str) -> None:
    shown = Table(("one", "two"), ((text, 1.5),)).to_markdown().splitlines()
    assert len(shown) == 3
    cell = shown[2].removeprefix("| ").removesuffix(" | 1.5000 |")
    assert cell == escape_markdown(flatten_text(text))
    bare = cell.replace("\\\\", "")
    assert all(bare.count(mark) == bare.count(f"\\{mark}") for mark in "`*_[]|$#~")
    assert not re.search(r"[<>]|&(?!lt;|gt;|amp;)", cell)


def test_row_of_wrong_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="header"):
        Table(("one", "two"), (("a",),))
