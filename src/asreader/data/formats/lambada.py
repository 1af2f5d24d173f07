"""LAMBADA text -> Examples: one tokenised passage a line, whose last word is the answer.

The question is the last sentence with its last word as the gap, the document everything before it. A passage of one
sentence has nothing before it: its document is the passage without the last word, so that the question can be asked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import PurePosixPath

from asreader.data.example import GAP, Example, find_problem
from asreader.data.formats.cnn_dailymail import sentences
from asreader.data.source_file import SourceFile
from asreader.errors import Fault

SHORTEST = 5
"""Words of a first line that can be a passage; the data set's vocabulary file has one a line."""


def detect(name: str, head: str) -> bool:
    """Plain text tells nothing, so the file's name must."""
    first = head.lstrip().partition("\n")[0]
    named = "lambada" in PurePosixPath(name.lower()).name
    return named and len(first.split()) >= SHORTEST and "\t" not in first and first[:1] not in "{["


def read(member: SourceFile) -> Iterator[Example | Fault]:
    """The passages of one file; an id carries the line."""
    for number, line in enumerate(member.read_lines(), 1):
        if run := tuple(map(sys.intern, line.split())):
            *before, last = sentences(run)
            document = tuple(before) or (run[:-1],)
            example = Example(f"{member.stem}:{number}", document, (*last[:-1], GAP), (), run[-1])
            reason = find_problem(example)
            yield member.make_fault(number, reason) if reason else example
