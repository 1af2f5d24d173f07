"""Children's Book Test text -> Examples: numbered sentences, then a question with XXXXX, its answer and candidates.

A record is `1 sentence`, `2 sentence`, ... and a last line `21 question<TAB>answer<TAB><TAB>candidate|candidate|...`;
blank lines, however many, come between records, and where they are missing a line numbered 1 starts the next one.
Answer and candidates may be missing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePosixPath

from asreader.data.example import GAP, Example, Sentence, find_problem
from asreader.data.source_file import SourceFile, split_records
from asreader.errors import Fault, InputError

CACHED_SENTENCES = 1 << 16
"""Sentences kept for reuse while reading: the windows of one book share all but one sentence with their neighbours."""

_QUESTION = re.compile(rf"^\d+ (?!\|\|\| )[^\t\n]*(?:{GAP}|\t[^\t\n]*\t\t[^\t\n]*\|)", re.MULTILINE)
_KIND = re.compile(r"(?<![A-Za-z])(NE|CN|V|P)(?![A-Za-z])")


def detect(name: str, head: str) -> bool:
    """A numbered line with a gap or with candidates (CMRC's have ||| behind the number)."""
    return bool(_QUESTION.search(head))


def detect_group(name: str) -> str:
    """The kind of word that is missing: NE, CN, V or P."""
    found = (_KIND.search(part) for part in reversed(PurePosixPath(name).parts))
    return next((match[1] for match in found if match), "")


def read(member: SourceFile) -> Iterator[Example | Fault]:
    """The questions of one file; behind a bad one, reading goes on at the next blank line or line numbered 1."""
    remembered = lru_cache(CACHED_SENTENCES)(split_words)
    stem, number = member.stem, 0
    for first, lines in split_records(member.read_lines(), _begins):
        if lines := [line for line in lines if line and not line.isspace()]:
            number += 1
            yield _parsed(member.where, first, lines, f"{stem}:{number}", remembered)


def _begins(line: str, record: list[str]) -> bool:
    return line.startswith("1 ") or not record[-1] or record[-1].isspace()


def split_words(text: str) -> Sentence:
    """Words as the file separates them; interned, since they come again in thousands of questions."""
    return tuple(map(sys.intern, text.split()))


def _parsed(
    where: str, first: int, lines: list[str], name: str, sentence: Callable[[str], Sentence]
) -> Example | Fault:
    texts, last = [], first + len(lines) - 1
    for expected, line in enumerate(lines, 1):
        number, _, text = line.partition(" ")
        if number != str(expected):
            return Fault(where, first + expected - 1, f"expected a line numbered {expected}, found {line[:40]!r}")
        if "\t" in text and expected < len(lines):
            return Fault(where, first + expected - 1, "a question in the middle of a document")
        texts.append(text)
    asked, tab, rest = texts.pop().partition("\t")
    if GAP not in asked:
        return Fault(where, last, f"the question has no {GAP}" if tab else "the document ends without a question")
    answer, _, listed = rest.partition("\t")
    example = Example(
        id=name,
        document=tuple(map(sentence, texts)),
        question=split_question(asked),
        candidates=split_candidates(listed.strip("\t").partition("\t")[0]),
        answer=sys.intern(answer.strip()) or None,
    )
    reason = find_problem(example)
    return Fault(where, last, reason) if reason else example


def split_question(text: str) -> Sentence:
    """The words of a question; its gap is one of them, even where it was glued to a neighbour."""
    found = split_words(text)
    return found if GAP in found else split_words(text.replace(GAP, f" {GAP} "))


def split_candidates(listed: str) -> tuple[str, ...]:
    """`a|b||c` -> a, b, an empty one, c. Two empty ones in a row are the single candidate `|`, as in `a|||b`."""
    found: list[str] = []
    for piece in listed.split("|") if listed.strip() else ():
        if not piece and found and not found[-1]:
            found[-1] = "|"
        else:
            found.append(sys.intern(piece.strip()))
    return tuple(found)


def format_example(example: Example) -> str:
    """One question as CBT text with the blank line behind it; InputError if reading it would not give it back."""
    texts = [" ".join(sentence) for sentence in (*example.document, example.question)]
    numbered = [f"{number} {text}" for number, text in enumerate(texts, 1)]
    numbered[-1] += f"\t{example.answer or ''}\t\t{'|'.join(example.candidates)}".rstrip("\t")
    back = _parsed("", 1, "\n".join(numbered).split("\n"), example.id, split_words)
    if back != example:
        reason = back.reason if isinstance(back, Fault) else _changed(example, back)
        raise InputError(f"question {example.id!r} cannot be written as CBT: {reason}; write JSONL")
    return "\n".join([*numbered, "", ""])


def _changed(example: Example, back: Example) -> str:
    if replace(back, candidates=example.candidates) == example:
        return f"its candidates {list(example.candidates)} cannot be told apart in text"
    return "its words, answer or candidates hold white space that separates fields"
