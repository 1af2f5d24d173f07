"""one file of news -> Articles: CNN `.story` files, or CSV and JSON lines with article, highlights and perhaps id."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from asreader.data.formats.jsonl import parsed
from asreader.data.source_file import LONGEST_RECORD, Member, records
from asreader.errors import Fault

HIGHLIGHT_MARK = "@highlight"
_HIGHLIGHT = re.compile(rf"^{HIGHLIGHT_MARK}[ \t]*$", re.MULTILINE)
_KEYS = re.compile(r'"(article|highlights)"\s*:')


@dataclass(frozen=True, slots=True)
class Article:
    """A news text and the short sentences that sum it up."""

    id: str
    text: str
    highlights: tuple[str, ...]


def is_article_file(name: str, head: str) -> bool:
    """Whether a file of this name and start holds articles."""
    return name.endswith(".story") or _is_jsonl(head) or _is_csv(head) or bool(_HIGHLIGHT.search(head))


def read_articles(member: Member) -> Iterator[Article | Fault]:
    """The articles of one file; one without an id gets the file's name and its line. Ids are unique inside a file."""
    head = member.head()
    rows = _of_jsonl if _is_jsonl(head) else _of_csv if _is_csv(head) else _of_story
    used: set[int] = set()
    for line, item in rows(member):
        if isinstance(item, str):
            yield member.fault(line, item)
        elif reason := _problem(item, used):
            yield member.fault(line, reason)
        else:
            used.add(hash(item.id))
            yield item


def _problem(article: Article, used: set[int]) -> str | None:
    """Why no question can come of it, or None."""
    if not article.text.strip():
        return "the article has no text"
    if not article.highlights:
        return "the article has no highlights"
    return f"the id {article.id!r} is used twice" if hash(article.id) in used else None


def _is_jsonl(head: str) -> bool:
    # The start of a file may end inside its first article, so one key is enough.
    return head.lstrip().startswith("{") and bool(_KEYS.search(head))


def _is_csv(head: str) -> bool:
    return {"article", "highlights"} <= set(_columns(next(csv.reader(head.split("\n", 1)[:1]), [])))


def _columns(header: list[str]) -> list[str]:
    return [name.strip().lower() for name in header]


def _of_story(member: Member) -> Iterator[tuple[int, Article | str]]:
    # One file is one article; `records` only sees to it that what unpacks without end is cut.
    empty = True
    for line, lines in records(member.lines(), lambda line, record: False):
        empty = False
        text, *highlights = _HIGHLIGHT.split("\n".join(lines))
        yield line, Article(member.stem, text.strip(), _cleaned(highlights))
    if empty:
        yield 1, "the file is empty"


def _of_jsonl(member: Member) -> Iterator[tuple[int, Article | str]]:
    for number, line in enumerate(member.lines(), 1):
        if line.strip():
            try:
                yield number, _from_row(parsed(line), f"{member.stem}:{number}")
            except ValueError as error:
                yield number, str(error)


def _from_row(row: dict[str, object], name: str) -> Article:
    """The article of a JSON object; ValueError says why there is none."""
    text, highlights, own = row.get("article"), row.get("highlights"), row.get("id")
    if not isinstance(text, str):
        raise ValueError('"article" is missing or not a text')
    if isinstance(highlights, str):
        highlights = highlights.split("\n")
    if not isinstance(highlights, list) or not all(isinstance(line, str) for line in highlights):
        raise ValueError('"highlights" is missing or neither a text nor a list of texts')
    if own is not None and (not isinstance(own, str | int) or isinstance(own, bool)):
        raise ValueError('"id" is neither a text nor a whole number')
    return Article(_id(own, name), text.strip(), _cleaned(highlights))


def _of_csv(member: Member) -> Iterator[tuple[int, Article | str]]:
    # The library's own limit is 128 KB, less than a long article. It knows only one limit for the whole process.
    csv.field_size_limit(LONGEST_RECORD)
    rows = csv.reader((line + "\n" for line in member.lines()), strict=True)
    columns = _columns(next(rows))
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
            highlights = _cleaned(fields["highlights"].split("\n"))
            yield line, Article(_id(fields.get("id"), f"{member.stem}:{line}"), fields["article"].strip(), highlights)
        elif row:
            yield line, f"{len(row)} fields where the header has {len(columns)}"


def _id(own: str | int | None, name: str) -> str:
    return " ".join(str(own).split()) or name if own is not None else name


def _cleaned(highlights: Iterable[str]) -> tuple[str, ...]:
    """Highlights with single spaces; empty ones are none."""
    return tuple(filter(None, (" ".join(line.split()) for line in highlights)))
