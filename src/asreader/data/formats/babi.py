"""bAbI text -> Examples: numbered statements and, between them, questions with an answer and supporting facts.

`1 Mary moved to the bathroom.` ... `3 Where is Mary?<TAB>bathroom<TAB>1`; the number 1 starts a new text. The document
of a question is all statements of its text so far. There are no candidates and no gap. An answer of several words
(`milk,football`) is kept, although it is no word of the document. Task 15 asks for an animal in the singular that its
texts have in the plural; the plurals are read as the singular, or a third of its answers would not be in the document.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import count
from pathlib import PurePosixPath

from asreader.data.example import GAP, Example, Sentence, find_problem
from asreader.data.source_file import SourceFile, split_records
from asreader.errors import Fault

_START = re.compile(r"\s*1 [^\t\n]+\n")
_QUESTION = re.compile(r"^\d+ [^\t\n]*\? *\t[^\t\n]+(?:\t[\d ]*)?$", re.MULTILINE)
_WORD = re.compile(r"\w+(?:[-']\w+)*|[^\w\s]")
_SINGULAR = {"mice": "mouse", "wolves": "wolf", "cats": "cat", "sheep": "sheep"}
_TASK = re.compile(r"(?<![A-Za-z])qa\d+(?!\d)")


def detect(name: str, head: str) -> bool:
    """Numbered statements and a numbered question without a gap."""
    return GAP not in head and bool(_START.match(head) and _QUESTION.search(head))


def detect_group(name: str) -> str:
    """The task, qa1 to qa20."""
    match = _TASK.search(PurePosixPath(name).name)
    return match[0] if match else ""


def read(file: SourceFile) -> Iterator[Example | Fault]:
    """The questions of one file, numbered across its texts."""
    split_cached = lru_cache(1 << 12)(split_words)
    question_numbers = count(1)
    for first, lines in split_records(file.read_lines(), lambda line, record: line.startswith("1 ")):
        yield from _read_text(file, first, lines, question_numbers, split_cached)


def split_words(text: str) -> Sentence:
    """Words and punctuation; hyphens and apostrophes inside a word are kept."""
    return tuple(sys.intern(_SINGULAR.get(word.lower(), word)) for word in _WORD.findall(text))


def _read_text(
    file: SourceFile, first: int, lines: list[str], question_numbers: Iterator[int], split: Callable[[str], Sentence]
) -> Iterator[Example | Fault]:
    """The questions of one text. After a broken line the document is incomplete, so the other questions are Faults."""
    document: list[Sentence] = []
    expected, broken = 1, 0
    for line_number, line in enumerate(lines, first):
        if not line.strip():
            continue
        number, _, text = line.partition(" ")
        statement, tab, rest = text.partition("\t")
        if not broken and number != str(expected):
            broken = line_number
            yield file.make_fault(line_number, f"expected a line numbered {expected}, found {line[:40]!r}")
        elif broken and tab:
            yield file.make_fault(line_number, f"its text is broken at line {broken}")
        elif tab:
            answer = sys.intern(rest.partition("\t")[0].strip())
            name = f"{file.stem}:{next(question_numbers)}"
            example = Example(name, tuple(document), split(statement), (), answer or None)
            reason = find_problem(example)
            yield file.make_fault(line_number, reason) if reason else example
        else:
            document.append(split(statement))
        expected += 1
