from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.cloze.news.articles import Article, is_article_file, read_articles
from asreader.data.discovery import find_files
from asreader.errors import Fault

STORY = """Oslo (CNN) -- Tilda Brankov won.

She was glad.

@highlight

Brankov wins
in Oslo

@highlight

A second prize went to Otto Dresch
"""
HIGHLIGHTS = ("Brankov wins in Oslo", "A second prize went to Otto Dresch")
TEXT = "Oslo (CNN) -- Tilda Brankov won.\n\nShe was glad."


def articles(path: Path) -> list[Article | Fault]:
    return [item for member in find_files(path) for item in read_articles(member)]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def table(*rows: tuple[str, ...]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def test_a_story_file(tmp_path: Path) -> None:
    assert articles(write(tmp_path / "0a1b.story", STORY)) == [Article("0a1b", TEXT, HIGHLIGHTS)]


def test_stories_in_an_archive_and_packed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "cnn.zip", "w") as archive:
        archive.writestr("cnn/stories/a.story", STORY)
        archive.writestr("cnn/stories/b.story", STORY)
    assert [item.id for item in articles(tmp_path / "cnn.zip") if isinstance(item, Article)] == ["a", "b"]
    (tmp_path / "c.story.gz").write_bytes(gzip.compress(STORY.encode()))
    assert articles(tmp_path / "c.story.gz") == [Article("c", TEXT, HIGHLIGHTS)]


def test_csv_with_any_order_of_columns_and_long_fields(tmp_path: Path) -> None:
    long = "word " * 100_000
    text = table(
        ("Highlights", "other", "article", "id"), ("One\n\n Two ", "", long, " x "), ("Three", "", "Text.", "")
    )
    assert articles(write(tmp_path / "news.csv", text)) == [
        Article("x", long.strip(), ("One", "Two")),
        Article("news:5", "Text.", ("Three",)),
    ]


def test_json_lines_with_highlights_as_text_or_list(tmp_path: Path) -> None:
    rows = [
        {"article": "A b.", "highlights": "One\nTwo"},
        {"article": "A b.", "highlights": ["One ", "Two"], "id": 7, "more": None},
    ]
    text = "\n\n".join(map(json.dumps, rows))
    assert articles(write(tmp_path / "n.jsonl", text)) == [
        Article("n:1", "A b.", ("One", "Two")),
        Article("7", "A b.", ("One", "Two")),
    ]


@pytest.mark.parametrize(
    ("name", "text", "faults"),
    [
        ("a.story", "Only text.\n", [(1, "no highlights")]),
        ("a.story", "@highlight\n\nOnly this\n", [(1, "no text")]),
        ("a.story", "", [(1, "empty")]),
        ("a.txt", "Nothing of the kind.", [(1, "no highlights")]),
        ("a.csv", table(("id", "article", "highlights"), ("1", " ", "One")), [(2, "no text")]),
        ("a.csv", table(("id", "article", "highlights"), ("1", "Text", "\n")), [(2, "no highlights")]),
        ("a.csv", table(("id", "article", "highlights"), ("1", "Text")), [(2, "2 fields where the header has 3")]),
        ("a.csv", 'id,article,highlights\n1,"never ends,x\n\n', [(2, "not CSV")]),
        ("a.csv", table(("id", "article", "highlights"), *[("1", "T", "H")] * 2), [(3, "'1' is used twice")]),
        ("a.jsonl", '{"article": "T", "highlights": 3}\n', [(1, '"highlights"')]),
        ("a.jsonl", '{"article": "T", "highlights": ["a", 1]}\n', [(1, '"highlights"')]),
        ("a.jsonl", '{"article": null, "highlights": "H"}\n', [(1, '"article"')]),
        ("a.jsonl", '{"article": "T", "highlights": "H", "id": [1]}\n', [(1, '"id"')]),
        ("a.jsonl", '{"article": "T", "highlights": ""}\n', [(1, "no highlights")]),
        ("a.jsonl", '{"article": "T", "highlights": "H"}\n{"broken\n', [(2, "not JSON")]),
    ],
)
def test_a_bad_record_is_a_fault_with_its_line(
    tmp_path: Path, name: str, text: str, faults: list[tuple[int, str]]
) -> None:
    found = [item for item in articles(write(tmp_path / name, text)) if isinstance(item, Fault)]
    assert [fault.line for fault in found] == [line for line, _ in faults]
    assert all(reason in fault.reason for fault, (_, reason) in zip(found, faults, strict=True))
    assert all(fault.file == str(tmp_path / name) for fault in found)


def test_what_is_recognised() -> None:
    assert is_article_file("x.story", "")
    assert is_article_file("x", STORY)
    assert is_article_file("x.csv", "id,article,highlights\n")
    assert is_article_file("x.jsonl", '{"id": 1, "article": "A long')
    assert not is_article_file("README.txt", "About these articles and highlights.")
    assert not is_article_file("questions.jsonl", '{"document": "A", "question": "B"}')


texts = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"])).filter(str.strip)
lines = texts.map(lambda text: " ".join(text.split()))


@given(st.lists(st.tuples(texts.map(str.strip), st.lists(lines, min_size=1, max_size=3)), min_size=1, max_size=4))
def test_csv_and_json_lines_hold_the_same(rows: list[tuple[str, list[str]]]) -> None:
    wanted = [Article(str(number), text, tuple(high)) for number, (text, high) in enumerate(rows)]
    with tempfile.TemporaryDirectory() as folder:
        made = [(str(number), text, "\n".join(high)) for number, (text, high) in enumerate(rows)]
        comma = write(Path(folder) / "a.csv", table(("id", "article", "highlights"), *made))
        objects = [dict(zip(("id", "article", "highlights"), row, strict=True)) for row in made]
        line = write(Path(folder) / "a.jsonl", "\n".join(map(json.dumps, objects)))
        assert articles(comma) == articles(line) == wanted
