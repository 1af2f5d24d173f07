"""CNN / Daily Mail text -> Examples: `.question` files with @entity words and a @placeholder, or many in one file.

A record is blocks of lines with blank lines between: an address, the document (one block or several), the question, the
answer, and last the names of the entities, `@entity0:Name`. In a file of many, the next address starts the next record.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import chain, groupby
from pathlib import PurePosixPath

from asreader.data.example import GAP, Example, Sentence, find_problem
from asreader.data.source_file import SourceFile, split_records
from asreader.errors import Fault

PLACEHOLDER = "@placeholder"
_ENDS = {".", "?", "!"}
_CLOSERS = {"''", "'", '"', "”", "’", ")"}
_ADDRESS = re.compile(r"\s*https?://\S+\s*\n")
_NAMED = re.compile(r"@entity\d+:")
_ENTITY = re.compile(r"@entity\d+")


def detect(name: str, head: str) -> bool:
    """The suffix, or an address on top and a placeholder below."""
    return name.endswith(".question") or bool(_ADDRESS.match(head) and PLACEHOLDER in head)


def detect_group(name: str) -> str:
    """Cnn or dailymail, if a folder says so."""
    return next((part for part in PurePosixPath(name).parts[:-1] if part in ("cnn", "dailymail")), "")


def read(member: SourceFile) -> Iterator[Example | Fault]:
    """A `.question` file's id is its name, a hash; the questions of a file of many are numbered."""
    single = member.name.endswith(".question")
    for number, (first, lines) in enumerate(split_records(member.read_lines(), _begins), 1):
        try:
            item: Example | Fault = _parsed(lines, member.stem if single and number == 1 else f"{member.stem}:{number}")
        except ValueError as error:
            item = member.make_fault(first, str(error))
        yield item


def _begins(line: str, record: list[str]) -> bool:
    """An address starts a record only behind the names of the one before: stories cite addresses too."""
    if not line.startswith(("http://", "https://")):
        return False
    return bool(_NAMED.match(next((previous for previous in reversed(record) if previous.strip()), "")))


def _parsed(lines: list[str], name: str) -> Example:
    """The Example; ValueError says why there is none."""
    filled = [list(block) for full, block in groupby(lines, lambda line: bool(line.strip())) if full]
    if len(filled) < 5 or not _NAMED.match(filled[-1][0]):
        raise ValueError("not an address, document, question, answer and entity names with blank lines between")
    _, *story, asked, answer = (" ".join(block) for block in filled[:-1])
    if PLACEHOLDER not in asked:
        raise ValueError(f"the question has no {PLACEHOLDER}")
    if any(PLACEHOLDER in block for block in story):
        raise ValueError("two questions run together")
    document = tuple(sentence for block in story for sentence in sentences(_words(block)))
    distinct = dict.fromkeys(chain.from_iterable(document))
    found = dict.fromkeys(word for word in distinct if _ENTITY.fullmatch(word))
    question = _words(asked.replace(PLACEHOLDER, f" {GAP} "))
    # The paper's candidates are the document's entities; an answer elsewhere is kept, to be counted as missed.
    candidates = tuple({**found, answer.strip(): None}) if found else ()
    example = Example(name, document, question, candidates, answer.strip(), _names(filled[-1]))
    if reason := find_problem(example):
        raise ValueError(reason)
    return example


def _names(lines: list[str]) -> dict[str, str]:
    """What the entities are called."""
    parted = (line.partition(":") for line in lines if _NAMED.match(line))
    return {label: name.strip() for label, _, name in parted if name.strip()}


def _words(text: str) -> Sentence:
    return tuple(map(sys.intern, text.split()))


def sentences(run: Sentence) -> tuple[Sentence, ...]:
    """A run of words cut behind each . ? ! and the quotes that close it; no word is lost."""
    found, start, ended = [], 0, False
    for place, word in enumerate(run):
        if word in _ENDS:
            ended = True
        elif ended and word not in _CLOSERS:
            found.append(run[start:place])
            start, ended = place, False
    return (*found, run[start:]) if run else ()
