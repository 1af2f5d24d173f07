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
    """Rows with sentences and no document, or a Parquet file; the folder `raw` of the data set contains books."""
    if name.endswith(".parquet"):
        return "raw" not in PurePosixPath(name).parts
    keys = set(_KEY.findall(head))
    return head.lstrip()[:1] in ("{", "[") and "sentences" in keys and "document" not in keys


def detect_group(name: str) -> str:
    """The kind of word that is missing, from the folder: NE, CN, V or P."""
    return cbt.detect_group(name)


def read(file: SourceFile) -> Iterator[Example | Fault]:
    """The questions of one file; an id contains the number of the row, which in a file of lines is the line."""
    for number, row in _read_rows(file):
        if isinstance(row, str):
            yield file.make_fault(number, row)
        else:
            yield _parse_row(file, number, row)


def _read_rows(file: SourceFile) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Numbered rows; a text in place of a row says why it cannot be read."""
    if file.name.endswith(".parquet"):
        yield from enumerate(_read_parquet(file), 1)
    elif file.read_head().lstrip().startswith("["):
        yield from enumerate(_read_list(file), 1)
    else:
        for number, line in enumerate(file.read_lines(), 1):
            if line.strip():
                yield number, _parse_line(line)


def _parse_line(line: str) -> dict[str, Any] | str:
    try:
        return jsonl.parse_object(line)
    except ValueError as error:
        return str(error)


def _read_list(file: SourceFile) -> Iterator[dict[str, Any] | str]:
    try:
        rows = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file.where}: not JSON: {error}") from error
    for row in rows:
        yield _parse_line(json.dumps(row))  # the same checks as in a file of lines


def _read_parquet(file: SourceFile) -> Iterator[dict[str, Any] | str]:
    import pyarrow.lib as arrow  # takes half a second; most data do not need it
    import pyarrow.parquet as parquet

    with file.open_seekable() as stream, report_errors(file.where):
        try:
            table = parquet.ParquetFile(stream)
            missing = [column for column in COLUMNS[:2] if column not in table.schema_arrow.names]
            if missing:
                yield f"no column {missing[0]!r}: these are not CBT rows"
                return
            columns = [column for column in COLUMNS if column in table.schema_arrow.names]
            for batch in table.iter_batches(batch_size=1024, columns=columns):
                yield from batch.to_pylist()
        except arrow.ArrowException as error:
            raise ValueError(error) from error


def _parse_row(file: SourceFile, number: int, row: dict[str, Any]) -> Example | Fault:
    sentences = _check_texts(row.get("sentences"))
    options = _check_texts(row.get("options") or [])
    question, answer = row.get("question"), row.get("answer")
    if sentences is None or options is None:
        return file.make_fault(number, '"sentences" or "options" is not a list of texts')
    if not isinstance(question, str) or not isinstance(answer, str | None):
        return file.make_fault(number, '"question" or "answer" is not a text')
    if GAP not in question:
        return file.make_fault(number, f"the question has no {GAP}")
    *document, question = _strip_line_numbers([*sentences, question])
    example = Example(
        id=f"{file.stem}:{number}",
        document=tuple(map(cbt.split_words, document)),
        question=cbt.split_question(question),
        # The script of the data set split the candidate `|` in two.
        candidates=cbt.split_candidates("|".join(options)),
        answer=(answer or "").strip() or None,
    )
    reason = find_problem(example)
    return file.make_fault(number, reason) if reason else example


def _check_texts(value: object) -> list[str] | None:
    """The value if it is a list of texts."""
    return value if isinstance(value, list) and all(isinstance(text, str) for text in value) else None


def _strip_line_numbers(texts: list[str]) -> list[str]:
    """Remove line numbers, which some copies of the data set contain."""
    if all(text.startswith(f"{number} ") for number, text in enumerate(texts, 1)):
        return [text.partition(" ")[2] for text in texts]
    return texts
