"""Children's Book Test text -> Examples: numbered sentences, then a question with XXXXX, its answer and candidates.

A record is `1 sentence`, `2 sentence`, ... and a last line `21 question<TAB>answer<TAB><TAB>candidate|candidate|...`;
one or more blank lines separate records; where they are missing, a line numbered 1 starts the next record.
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
"""Size of the cache of split sentences: a window over a book shares all but one sentence with the previous window."""

_QUESTION = re.compile(rf"^\d+ (?!\|\|\| )[^\t\n]*(?:{GAP}|\t[^\t\n]*\t\t[^\t\n]*\|)", re.MULTILINE)
_KIND = re.compile(r"(?<![A-Za-z])(NE|CN|V|P)(?![A-Za-z])")


def detect(name: str, head: str) -> bool:
    """A numbered line with a gap or with candidates (lines of CMRC have ||| after the number)."""
    return bool(_QUESTION.search(head))


def detect_group(name: str) -> str:
    """The kind of word that is missing: NE, CN, V or P."""
    matches = (_KIND.search(part) for part in reversed(PurePosixPath(name).parts))
    return next((match[1] for match in matches if match), "")


def read(file: SourceFile) -> Iterator[Example | Fault]:
    """The questions of one file; after a bad one, reading continues at the next blank line or line numbered 1."""
    split_cached = lru_cache(CACHED_SENTENCES)(split_words)
    stem, number = file.stem, 0
    for first, lines in split_records(file.read_lines(), _starts_record):
        if lines := [line for line in lines if line and not line.isspace()]:
            number += 1
            yield _parse_record(file.where, first, lines, f"{stem}:{number}", split_cached)


def _starts_record(line: str, record: list[str]) -> bool:
    return line.startswith("1 ") or not record[-1] or record[-1].isspace()


def split_words(text: str) -> Sentence:
    """Words as the file separates them; interned, because they recur in thousands of questions."""
    return tuple(map(sys.intern, text.split()))


def _parse_record(
    where: str, first: int, lines: list[str], example_id: str, split: Callable[[str], Sentence]
) -> Example | Fault:
    texts, last = [], first + len(lines) - 1
    for expected, line in enumerate(lines, 1):
        number, _, text = line.partition(" ")
        if number != str(expected):
            return Fault(where, first + expected - 1, f"expected a line numbered {expected}, found {line[:40]!r}")
        if "\t" in text and expected < len(lines):
            return Fault(where, first + expected - 1, "a question in the middle of a document")
        texts.append(text)
    question, tab, rest = texts.pop().partition("\t")
    if GAP not in question:
        return Fault(where, last, f"the question has no {GAP}" if tab else "the document ends without a question")
    answer, _, listed = rest.partition("\t")
    example = Example(
        id=example_id,
        document=tuple(map(split, texts)),
        question=split_question(question),
        candidates=split_candidates(listed.strip("\t").partition("\t")[0]),
        answer=sys.intern(answer.strip()) or None,
    )
    reason = find_problem(example)
    return Fault(where, last, reason) if reason else example


def split_question(text: str) -> Sentence:
    """The words of a question; the gap becomes a word of its own even if it is attached to another word."""
    words = split_words(text)
    return words if GAP in words else split_words(text.replace(GAP, f" {GAP} "))


def split_candidates(listed: str) -> tuple[str, ...]:
    """`a|b||c` -> a, b, an empty one, c. Two empty ones in a row are the single candidate `|`, as in `a|||b`."""
    candidates: list[str] = []
    for piece in listed.split("|") if listed.strip() else ():
        if not piece and candidates and not candidates[-1]:
            candidates[-1] = "|"
        else:
            candidates.append(sys.intern(piece.strip()))
    return tuple(candidates)


def format_example(example: Example) -> str:
    """One question as CBT text and a blank line; InputError if reading the text would not give the same question."""
    texts = [" ".join(sentence) for sentence in (*example.document, example.question)]
    numbered = [f"{number} {text}" for number, text in enumerate(texts, 1)]
    numbered[-1] += f"\t{example.answer or ''}\t\t{'|'.join(example.candidates)}".rstrip("\t")
    read_back = _parse_record("", 1, "\n".join(numbered).split("\n"), example.id, split_words)
    if read_back != example:
        reason = read_back.reason if isinstance(read_back, Fault) else _explain_change(example, read_back)
        raise InputError(f"question {example.id!r} cannot be written as CBT: {reason}; write JSONL")
    return "\n".join([*numbered, "", ""])


def _explain_change(example: Example, read_back: Example) -> str:
    if replace(read_back, candidates=example.candidates) == example:
        return f"its candidates {list(example.candidates)} are ambiguous in text"
    return "its words, answer or candidates contain white space that separates fields"
