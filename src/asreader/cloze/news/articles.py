"""one file of news -> Articles: CNN `.story` files, or CSV and JSONL with article, highlights and optional id."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from asreader.data.formats.jsonl import parse_object
from asreader.data.source_file import MAX_RECORD_CHARACTERS, SourceFile, split_records
from asreader.errors import Fault

HIGHLIGHT_MARK = "@highlight"
# A line that holds only the mark "@highlight"; the lines up to the next mark are one highlight.
_HIGHLIGHT_LINE = re.compile(rf"^{HIGHLIGHT_MARK}[ \t]*$", re.MULTILINE)
# A key of an article in JSON: "article": or "highlights":
_ARTICLE_KEY = re.compile(r'"(article|highlights)"\s*:')


@dataclass(frozen=True, slots=True)
class Article:
    """A news text and its highlights: the short sentences that summarize it."""

    id: str
    text: str
    highlights: tuple[str, ...]


def is_article_file(name: str, head: str) -> bool:
    """Whether a file with this name and first characters holds articles."""
    return name.endswith(".story") or _is_jsonl(head) or _is_csv(head) or bool(_HIGHLIGHT_LINE.search(head))


def read_articles(member: SourceFile) -> Iterator[Article | Fault]:
    """The articles of one file; an article without an id gets file name and line. Ids are unique within a file."""
    head = member.read_head()
    read_rows = _read_jsonl if _is_jsonl(head) else _read_csv if _is_csv(head) else _read_story
    used_ids: set[int] = set()
    for line, item in read_rows(member):
        if isinstance(item, str):
            yield member.make_fault(line, item)
        elif reason := _find_problem(item, used_ids):
            yield member.make_fault(line, reason)
        else:
            used_ids.add(hash(item.id))
            yield item


def _find_problem(article: Article, used_ids: set[int]) -> str | None:
    """Why no question can be made from an article, or None."""
    if not article.text.strip():
        return "the article has no text"
    if not article.highlights:
        return "the article has no highlights"
    return f"the id {article.id!r} is used twice" if hash(article.id) in used_ids else None


def _is_jsonl(head: str) -> bool:
    # The head of a file may end inside its first article, so one key is enough.
    return head.lstrip().startswith("{") and bool(_ARTICLE_KEY.search(head))


def _is_csv(head: str) -> bool:
    return {"article", "highlights"} <= set(_normalize_columns(next(csv.reader(head.split("\n", 1)[:1]), [])))


def _normalize_columns(header: list[str]) -> list[str]:
    return [name.strip().lower() for name in header]


def _read_story(member: SourceFile) -> Iterator[tuple[int, Article | str]]:
    # One file is one article; `records` limits the size of what is decompressed.
    empty = True
    for line, lines in split_records(member.read_lines(), lambda line, record: False):
        empty = False
        text, *highlights = _HIGHLIGHT_LINE.split("\n".join(lines))
        yield line, Article(member.stem, text.strip(), _clean_highlights(highlights))
    if empty:
        yield 1, "the file is empty"


def _read_jsonl(member: SourceFile) -> Iterator[tuple[int, Article | str]]:
    for number, line in enumerate(member.read_lines(), 1):
        if line.strip():
            try:
                yield number, _parse_row(parse_object(line), f"{member.stem}:{number}")
            except ValueError as error:
                yield number, str(error)


def _parse_row(row: dict[str, object], default_id: str) -> Article:
    """The article of a JSON object; a ValueError gives the reason why there is none."""
    text = row.get("article")
    highlights = row.get("highlights")
    id = row.get("id")
    if not isinstance(text, str):
        raise ValueError('"article" is missing or not a text')
    if isinstance(highlights, str):
        highlights = highlights.split("\n")
    if not isinstance(highlights, list) or not all(isinstance(line, str) for line in highlights):
        raise ValueError('"highlights" is missing or neither a text nor a list of texts')
    if id is not None and (not isinstance(id, str | int) or isinstance(id, bool)):
        raise ValueError('"id" is neither a text nor a whole number')
    return Article(_choose_id(id, default_id), text.strip(), _clean_highlights(highlights))


def _read_csv(member: SourceFile) -> Iterator[tuple[int, Article | str]]:
    # The default limit of csv is 128 KB, less than a long article. The limit applies to the whole process.
    csv.field_size_limit(MAX_RECORD_CHARACTERS)
    rows = csv.reader((line + "\n" for line in member.read_lines()), strict=True)
    columns = _normalize_columns(next(rows))
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, f"not CSV: {error}"
            continue
        if len(row) == len(columns):
            fields = dict(zip(columns, row, strict=True))
            id = _choose_id(fields.get("id"), f"{member.stem}:{line}")
            highlights = _clean_highlights(fields["highlights"].split("\n"))
            yield line, Article(id, fields["article"].strip(), highlights)
        elif row:
            yield line, f"{len(row)} fields where the header has {len(columns)}"


def _choose_id(id: str | int | None, default: str) -> str:
    if id is None:
        return default
    return " ".join(str(id).split()) or default


def _clean_highlights(highlights: Iterable[str]) -> tuple[str, ...]:
    """Highlights with single spaces, without empty ones."""
    return tuple(filter(None, (" ".join(line.split()) for line in highlights)))
