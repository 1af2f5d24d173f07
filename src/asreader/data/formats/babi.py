"""bAbI text -> Examples: numbered statements and, between them, questions with an answer and supporting facts.

`1 Mary moved to the bathroom.` ... `3 Where is Mary?<TAB>bathroom<TAB>1`; the number 1 starts a new story. A question's
document is all statements of its story so far. There are no candidates and no gap. An answer of several words
(`milk,football`) stays as it is, which is no word of the document. Task 15 asks for a kind in the singular that its
stories name in the plural; these are read as the singular, or a third of its answers could not be pointed at.
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
    found = _TASK.search(PurePosixPath(name).name)
    return found[0] if found else ""


def read(member: SourceFile) -> Iterator[Example | Fault]:
    """The questions of one file, story after story, numbered through."""
    remembered = lru_cache(1 << 12)(split_words)
    numbers = count(1)
    for first, lines in split_records(member.read_lines(), lambda line, record: line.startswith("1 ")):
        yield from _story(member, first, lines, numbers, remembered)


def split_words(text: str) -> Sentence:
    """Words and punctuation apart; hyphens and apostrophes inside a word stay."""
    return tuple(sys.intern(_SINGULAR.get(word.lower(), word)) for word in _WORD.findall(text))


def _story(
    member: SourceFile, first: int, lines: list[str], numbers: Iterator[int], sentence: Callable[[str], Sentence]
) -> Iterator[Example | Fault]:
    """The questions of one story. Behind a broken line the document is incomplete, so the rest of them are Faults."""
    document: list[Sentence] = []
    expected, broken = 1, 0
    for place, line in enumerate(lines, first):
        if not line.strip():
            continue
        number, _, text = line.partition(" ")
        statement, tab, rest = text.partition("\t")
        if not broken and number != str(expected):
            broken = place
            yield member.make_fault(place, f"expected a line numbered {expected}, found {line[:40]!r}")
        elif broken and tab:
            yield member.make_fault(place, f"its story is broken at line {broken}")
        elif tab:
            answer = sys.intern(rest.partition("\t")[0].strip())
            name = f"{member.stem}:{next(numbers)}"
            example = Example(name, tuple(document), sentence(statement), (), answer or None)
            reason = find_problem(example)
            yield member.make_fault(place, reason) if reason else example
        else:
            document.append(sentence(statement))
        expected += 1
