"""Tables of numbers: CSV that can be read back, Markdown without markup in its cells."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.evaluation.breakdowns.breakdown_table import Cell, Table, escaped, plain

cells = st.text(max_size=12) | st.integers() | st.floats(allow_nan=False) | st.none()


@given(st.lists(st.tuples(cells, cells), max_size=5))
def test_csv_can_be_read_back(rows: list[tuple[Cell, Cell]]) -> None:
    """Every cell but lone surrogates, once a leading apostrophe is taken away; and no cell is a formula."""
    text = Table(("one", "two"), tuple(rows)).csv()
    found = list(csv.reader(io.StringIO(text, newline="")))[1:]
    for ours, row in zip(found, rows, strict=True):
        for cell, was in zip(ours, row, strict=True):
            if isinstance(was, str):
                assert cell[:1] not in tuple("=+-@\t\r")
                assert cell.removeprefix("'") == was
            elif was is not None:
                assert type(was)(cell) == was
            else:
                assert cell == ""


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=30))
def test_markdown_cells_hold_no_markup(text: str) -> None:
    shown = Table(("one", "two"), ((text, 1.5),)).markdown().splitlines()
    assert len(shown) == 3
    cell = shown[2].removeprefix("| ").removesuffix(" | 1.5000 |")
    assert cell == escaped(plain(text))
    bare = cell.replace("\\\\", "")
    assert all(bare.count(mark) == bare.count(f"\\{mark}") for mark in "`*_[]|$#~")
    assert not re.search(r"[<>]|&(?!lt;|gt;|amp;)", cell)


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="header"):
        Table(("one", "two"), (("a",),))
