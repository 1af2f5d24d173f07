"""CMRC 2017 text (Chinese) -> Examples: `N ||| words` lines, then `<qid_N> ||| question`; answers in a second file.

The answers to `cloze.valid.doc_query` are in the sibling `cloze.valid.answer`, as `<qid_N> ||| word`; without that file
the questions are unlabelled. The sentence of the question is also in the document, with its gap, and is kept there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath

from asreader.data.example import GAP, Example, find_problem
from asreader.data.source_file import SourceFile, split_records
from asreader.errors import Fault

BAR = " ||| "
_LINE = re.compile(r"\s*(?:1|<qid_\d+>) \|\|\| ")


def detect(name: str, head: str) -> bool:
    """A first line with a bar; the answer file is part of the data too, although it contains no question."""
    return bool(_LINE.match(head))


def read(file: SourceFile) -> Iterator[Example | Fault]:
    """The questions of a doc_query file, numbered in its order."""
    base = PurePosixPath(file.name).name
    if base.endswith("answer"):
        return
    answer_file = file.find_sibling(base.replace("doc_query", "answer")) if "doc_query" in base else None
    answers = _read_answers(answer_file) if answer_file else None
    number = 0
    for first, lines in split_records(file.read_lines(), _starts_record):
        if filled := [line for line in lines if line.strip()]:
            number += 1
            try:
                item: Example | Fault = _parse_record(filled, f"{file.stem}:{number}", answers)
            except ValueError as error:
                item = file.make_fault(first, str(error))
            yield item


def _starts_record(line: str, record: list[str]) -> bool:
    return line.startswith(f"1{BAR}") or record[-1].startswith("<")


def _read_answers(file: SourceFile) -> dict[str, str]:
    pairs = (line.partition(BAR) for line in file.read_lines())
    return {question.strip(): sys.intern(answer.strip()) for question, _, answer in pairs if answer.strip()}


def _parse_record(lines: list[str], example_id: str, answers: dict[str, str] | None) -> Example:
    """The Example; ValueError says why there is none."""
    texts = []
    for expected, line in enumerate(lines[:-1], 1):
        number, bar, text = line.partition(BAR)
        if not bar or number.strip() != str(expected):
            raise ValueError(f"expected a line `{expected}{BAR}words`, found {line[:40]!r}")
        texts.append(text)
    key, bar, text = lines[-1].partition(BAR)
    if not bar or not key.startswith("<"):
        raise ValueError("the document ends without a question line `<qid_N> ||| words`")
    if GAP not in text:
        raise ValueError(f"the question has no {GAP}")
    if answers is not None and key.strip() not in answers:
        raise ValueError(f"the answer file has no answer to {key.strip()}")
    document = tuple(tuple(map(sys.intern, text.split())) for text in texts)
    question = tuple(map(sys.intern, text.replace(GAP, f" {GAP} ").split()))
    example = Example(example_id, document, question, (), answers[key.strip()] if answers is not None else None)
    if reason := find_problem(example):
        raise ValueError(reason)
    return example
