"""Hugging Face CBT rows -> Examples: sentences, question, options, answer; from Parquet, JSON lines or a JSON list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from asreader.data.example import GAP, Example, find_problem
from asreader.data.formats import cbt, jsonl
from asreader.data.source_file import SourceFile, report_errors
from asreader.errors import Fault, InputError

COLUMNS = ("sentences", "question", "options", "answer")
_KEY = re.compile(r'"(\w+)"\s*:')


def detect(name: str, head: str) -> bool:
    """Rows with sentences and no document, or a Parquet file; their folder `raw` holds books, not questions."""
    if name.endswith(".parquet"):
        return "raw" not in PurePosixPath(name).parts
    keys = set(_KEY.findall(head))
    return head.lstrip()[:1] in ("{", "[") and "sentences" in keys and "document" not in keys


def detect_group(name: str) -> str:
    """The kind of word that is missing, from the folder: NE, CN, V or P."""
    return cbt.detect_group(name)


def read(member: SourceFile) -> Iterator[Example | Fault]:
    """The questions of one file; an id carries the row, which in a file of lines is the line."""
    for number, row in _rows(member):
        if isinstance(row, str):
            yield member.make_fault(number, row)
        else:
            yield _parsed(member, number, row)


def _rows(member: SourceFile) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Numbered rows, or why there is none."""
    if member.name.endswith(".parquet"):
        yield from enumerate(_parquet(member), 1)
    elif member.read_head().lstrip().startswith("["):
        yield from enumerate(_list(member), 1)
    else:
        for number, line in enumerate(member.read_lines(), 1):
            if line.strip():
                yield number, _line(line)


def _line(line: str) -> dict[str, Any] | str:
    try:
        return jsonl.parse_object(line)
    except ValueError as error:
        return str(error)


def _list(member: SourceFile) -> Iterator[dict[str, Any] | str]:
    try:
        rows = json.loads(member.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{member.where}: not JSON: {error}") from error
    for row in rows:
        yield _line(json.dumps(row))  # the same checks as in a file of lines


def _parquet(member: SourceFile) -> Iterator[dict[str, Any] | str]:
    import pyarrow.lib as arrow  # half a second; most data needs none of it
    import pyarrow.parquet as parquet

    with member.open_seekable() as stream, report_errors(member.where):
        try:
            file = parquet.ParquetFile(stream)
            missing = [column for column in COLUMNS[:2] if column not in file.schema_arrow.names]
            if missing:
                yield f"no column {missing[0]!r}: these are no CBT rows"
                return
            columns = [column for column in COLUMNS if column in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=1024, columns=columns):
                yield from batch.to_pylist()
        except arrow.ArrowException as error:
            raise ValueError(error) from error


def _parsed(member: SourceFile, number: int, row: dict[str, Any]) -> Example | Fault:
    sentences, options = _texts(row.get("sentences")), _texts(row.get("options") or [])
    asked, answer = row.get("question"), row.get("answer")
    if sentences is None or options is None:
        return member.make_fault(number, '"sentences" or "options" is not a list of texts')
    if not isinstance(asked, str) or not isinstance(answer, str | None):
        return member.make_fault(number, '"question" or "answer" is not a text')
    if GAP not in asked:
        return member.make_fault(number, f"the question has no {GAP}")
    *document, asked = _unnumbered([*sentences, asked])
    example = Example(
        id=f"{member.stem}:{number}",
        document=tuple(map(cbt.split_words, document)),
        question=cbt.split_question(asked),
        # Their script cut the candidate `|` in two.
        candidates=cbt.split_candidates("|".join(options)),
        answer=(answer or "").strip() or None,
    )
    reason = find_problem(example)
    return member.make_fault(number, reason) if reason else example


def _texts(value: object) -> list[str] | None:
    return value if isinstance(value, list) and all(isinstance(text, str) for text in value) else None


def _unnumbered(texts: list[str]) -> list[str]:
    """Some copies kept the line numbers; they are no words."""
    if all(text.startswith(f"{number} ") for number, text in enumerate(texts, 1)):
        return [text.partition(" ")[2] for text in texts]
    return texts
