"""LAMBADA text -> Examples: one tokenised passage per line; its last word is the answer.

The question is the last sentence with a gap in place of its last word, the document is everything before it. The
document of a passage with one sentence is the passage without its last word, because a document must not be empty.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import PurePosixPath

from asreader.data.example import GAP, Example, find_problem
from asreader.data.source_file import SourceFile
from asreader.data.text.sentence_splitter import split_sentences
from asreader.errors import Fault

MIN_PASSAGE_WORDS = 5
"""Words of the first line of a file of passages; the vocabulary file of the data set has one word per line."""


def detect(name: str, head: str) -> bool:
    """The file name decides, because the content is plain text."""
    first = head.lstrip().partition("\n")[0]
    has_name = "lambada" in PurePosixPath(name.lower()).name
    return has_name and len(first.split()) >= MIN_PASSAGE_WORDS and "\t" not in first and first[:1] not in "{["


def read(file: SourceFile) -> Iterator[Example | Fault]:
    """The passages of one file; an id contains the line number."""
    for number, line in enumerate(file.read_lines(), 1):
        if words := tuple(map(sys.intern, line.split())):
            *before, last = split_sentences(words)
            document = tuple(before) or (words[:-1],)
            example = Example(f"{file.stem}:{number}", document, (*last[:-1], GAP), (), words[-1])
            reason = find_problem(example)
            yield file.make_fault(number, reason) if reason else example
