"""CNN / Daily Mail text -> Examples: `.question` files with @entity words and a @placeholder, or many in one file.

A record is blocks of lines separated by blank lines: an address, the document (one block or several), the question, the
answer and the names of the entities, `@entity0:Name`. In a file of many, the next address starts the next record.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import chain, groupby
from pathlib import PurePosixPath

from asreader.data.example import GAP, Example, Sentence, find_problem
from asreader.data.source_file import SourceFile, split_records
from asreader.data.text.sentence_splitter import split_sentences
from asreader.errors import Fault

PLACEHOLDER = "@placeholder"
_ADDRESS = re.compile(r"\s*https?://\S+\s*\n")
_NAMED = re.compile(r"@entity\d+:")
_ENTITY = re.compile(r"@entity\d+")


def detect(name: str, head: str) -> bool:
    """The suffix, or an address in the first line and a placeholder below."""
    return name.endswith(".question") or bool(_ADDRESS.match(head) and PLACEHOLDER in head)


def detect_group(name: str) -> str:
    """Cnn or dailymail, if a folder has that name."""
    return next((part for part in PurePosixPath(name).parts[:-1] if part in ("cnn", "dailymail")), "")


def read(file: SourceFile) -> Iterator[Example | Fault]:
    """The id of a `.question` file is its name, a hash; the questions of a file of many are numbered."""
    is_single = file.name.endswith(".question")
    for number, (first, lines) in enumerate(split_records(file.read_lines(), _starts_record), 1):
        try:
            example_id = file.stem if is_single and number == 1 else f"{file.stem}:{number}"
            item: Example | Fault = _parse_record(lines, example_id)
        except ValueError as error:
            item = file.make_fault(first, str(error))
        yield item


def _starts_record(line: str, record: list[str]) -> bool:
    """An address starts a record only after the entity names of the previous one: documents cite addresses too."""
    if not line.startswith(("http://", "https://")):
        return False
    return bool(_NAMED.match(next((previous for previous in reversed(record) if previous.strip()), "")))


def _parse_record(lines: list[str], example_id: str) -> Example:
    """The Example; ValueError says why there is none."""
    blocks = [list(block) for is_text, block in groupby(lines, lambda line: bool(line.strip())) if is_text]
    if len(blocks) < 5 or not _NAMED.match(blocks[-1][0]):
        raise ValueError("not an address, document, question, answer and entity names, separated by blank lines")
    _, *document_blocks, question_text, answer = (" ".join(block) for block in blocks[:-1])
    if PLACEHOLDER not in question_text:
        raise ValueError(f"the question has no {PLACEHOLDER}")
    if any(PLACEHOLDER in block for block in document_blocks):
        raise ValueError("two questions without a separator")
    document = tuple(sentence for block in document_blocks for sentence in split_sentences(_split_words(block)))
    distinct = dict.fromkeys(chain.from_iterable(document))
    entities = dict.fromkeys(word for word in distinct if _ENTITY.fullmatch(word))
    question = _split_words(question_text.replace(PLACEHOLDER, f" {GAP} "))
    # The paper's candidates are the entities of the document; any other answer is added and counts as missed.
    candidates = tuple({**entities, answer.strip(): None}) if entities else ()
    example = Example(example_id, document, question, candidates, answer.strip(), _parse_names(blocks[-1]))
    if reason := find_problem(example):
        raise ValueError(reason)
    return example


def _parse_names(lines: list[str]) -> dict[str, str]:
    """The real names of the entities."""
    pairs = (line.partition(":") for line in lines if _NAMED.match(line))
    return {label: name.strip() for label, _, name in pairs if name.strip()}


def _split_words(text: str) -> Sentence:
    return tuple(map(sys.intern, text.split()))
