"""JSON lines -> Examples, and back: one object per line with document, question and optional id, candidates, answer.

`document` is a text, a list of words, or a list of sentences that are lists of words; `question` a text or a list of
words; `entities` may name anonymous words, {"@entity0": "Anna Berg"}. Texts are tokenised, and so are the candidates
and the answer of a text ("Ana's" is the words Ana and 's); if the document is a list of words they are kept as they
are, with single spaces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from asreader.data.example import GAP, Example, Sentence, find_problem
from asreader.data.source_file import SourceFile
from asreader.errors import Fault

_KEY = re.compile(r'"(\w+)"\s*:')
_GAP = re.compile(r"@placeholder|_{3,}")


class _BadLine(ValueError):
    """Why a line is not a valid question."""


def detect(name: str, head: str) -> bool:
    """Objects with a document or a question; rows of the Hugging Face CBT have sentences and no document."""
    if not (head.lstrip().startswith("{") or name.endswith((".jsonl", ".ndjson"))):
        return False
    keys = set(_KEY.findall(head))
    return "document" in keys or ("question" in keys and "sentences" not in keys)


def read(file: SourceFile) -> Iterator[Example | Fault]:
    """The questions of one file; one without an id gets the file name and its line number."""
    id_hashes: set[int] = set()
    for number, line in enumerate(file.read_lines(), 1):
        if not line.strip():
            continue
        try:
            example = _parse_example(parse_object(line), f"{file.stem}:{number}")
            if hash(example.id) in id_hashes:
                raise _BadLine(f"the id {example.id!r} is used twice")
        except ValueError as error:
            yield file.make_fault(number, str(error))
        else:
            id_hashes.add(hash(example.id))
            yield example


def format_example(example: Example) -> str:
    """One question as a line; reading the line gives the same Example."""
    row: dict[str, object] = {"id": example.id, "document": example.document, "question": example.question}
    if example.candidates:
        row["candidates"] = example.candidates
    if example.answer is not None:
        row["answer"] = example.answer
    if example.names:
        row["entities"] = dict(example.names)
    return json.dumps(row, ensure_ascii=False) + "\n"


def parse_object(line: str) -> dict[str, Any]:
    """One line as an object; ValueError says why it is not one."""
    try:
        row = json.loads(line)
    except RecursionError:
        raise _BadLine("not readable JSON: nested too deeply") from None
    except ValueError as error:
        raise _BadLine(f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise _BadLine('not an object with "document" and "question"')
    if "\\ud" in line.lower() and re.search(r"[\ud800-\udfff]", json.dumps(row, ensure_ascii=False)):
        raise _BadLine("a \\ud... escape without its other half")
    return row


def _parse_example(row: dict[str, Any], default_id: str) -> Example:
    from asreader.data.text import tokenizer

    split = tokenizer.tokenize if isinstance(row.get("document"), str) else str.split
    example = Example(
        id=_parse_id(row.get("id")) or default_id,
        document=_parse_document(row),
        question=_parse_question(row),
        candidates=_parse_candidates(row.get("candidates"), split),
        answer=_parse_answer(row.get("answer"), split),
        names=_parse_names(row.get("entities")),
    )
    if reason := find_problem(example):
        raise _BadLine(reason)
    return example


def _parse_id(value: object) -> str:
    if value is None or isinstance(value, str):
        return " ".join((value or "").split())
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise _BadLine('"id" is neither a text nor a whole number')


def _parse_document(row: dict[str, Any]) -> tuple[Sentence, ...]:
    from asreader.data.text import tokenizer

    value = _require_value(row, "document")
    if isinstance(value, str):
        return tokenizer.tokenize_sentences(value)
    if isinstance(value, list) and value and all(isinstance(sentence, list) for sentence in value):
        return tuple(_check_words(sentence, "document") for sentence in value)
    return (_check_words(value, "document"),)


def _parse_question(row: dict[str, Any]) -> Sentence:
    from asreader.data.text import tokenizer

    value = _require_value(row, "question")
    if isinstance(value, str):
        return tokenizer.tokenize_question(value)
    words = _check_words(value, "question")
    return words if GAP in words else tuple(GAP if _GAP.fullmatch(word) else word for word in words)


def _require_value(row: dict[str, Any], key: str) -> object:
    if row.get(key) is None:
        raise _BadLine(f'no "{key}"')
    return row[key]


def _check_words(value: object, key: str) -> Sentence:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise _BadLine(f'"{key}" is neither a text nor a list of words' + " or of sentences" * (key == "document"))
    if " ".join(value).split() != value:
        bad = next(word for word in value if word.split() != [word])
        raise _BadLine(f'"{key}" has the word {bad!r}, which is empty or contains white space')
    return tuple(value)


def _parse_candidates(value: object, split: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(candidate, str) for candidate in value):
        raise _BadLine('"candidates" is not a list of texts')
    return tuple(" ".join(split(candidate)) for candidate in value)


def _parse_names(value: object) -> dict[str, str]:
    """Real names of entities. They are for display only, so invalid ones are ignored."""
    if not isinstance(value, dict):
        return {}
    return {label: name for label, name in value.items() if isinstance(name, str) and name.strip()}


def _parse_answer(value: object, split: Callable[[str], Iterable[str]]) -> str | None:
    if value is None or isinstance(value, str):
        return " ".join(split(value or "")) or None
    raise _BadLine('"answer" is not a text')
