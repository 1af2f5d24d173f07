"""JSON lines -> Examples, and back: one object a line with document, question and perhaps id, candidates, answer.

`document` is a text, a list of words, or a list of sentences that are lists of words; `question` a text or a list of
words; `entities` may name anonymous words, {"@entity0": "Anna Berg"}. Texts are cut into words, and so are the
candidates and the answer of a text ("Ana's" is the words Ana and 's); beside given words they are taken as they are,
with single spaces.
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


class _Wrong(ValueError):
    """Why a line is no question."""


def detect(name: str, head: str) -> bool:
    """Objects with a document or a question; rows of Hugging Face's CBT have sentences and no document."""
    if not (head.lstrip().startswith("{") or name.endswith((".jsonl", ".ndjson"))):
        return False
    keys = set(_KEY.findall(head))
    return "document" in keys or ("question" in keys and "sentences" not in keys)


def read(member: SourceFile) -> Iterator[Example | Fault]:
    """The questions of one file; one without an id gets the file's name and its line."""
    used: set[int] = set()
    for number, line in enumerate(member.read_lines(), 1):
        if not line.strip():
            continue
        try:
            example = _example(parse_object(line), f"{member.stem}:{number}")
            if hash(example.id) in used:
                raise _Wrong(f"the id {example.id!r} is used twice")
        except ValueError as error:
            yield member.make_fault(number, str(error))
        else:
            used.add(hash(example.id))
            yield example


def format_example(example: Example) -> str:
    """One question as a line; reading it gives the same Example."""
    row: dict[str, object] = {"id": example.id, "document": example.document, "question": example.question}
    if example.candidates:
        row["candidates"] = example.candidates
    if example.answer is not None:
        row["answer"] = example.answer
    if example.names:
        row["entities"] = dict(example.names)
    return json.dumps(row, ensure_ascii=False) + "\n"


def parse_object(line: str) -> dict[str, Any]:
    """One line as an object; ValueError says why it is none."""
    try:
        row = json.loads(line)
    except RecursionError:
        raise _Wrong("not JSON that can be read: nested too deeply") from None
    except ValueError as error:
        raise _Wrong(f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise _Wrong('not an object with "document" and "question"')
    if "\\ud" in line.lower() and re.search(r"[\ud800-\udfff]", json.dumps(row, ensure_ascii=False)):
        raise _Wrong("a \\ud... escape without its other half")
    return row


def _example(row: dict[str, Any], name: str) -> Example:
    from asreader.data.text import tokenizer

    surface = tokenizer.tokenize if isinstance(row.get("document"), str) else str.split
    example = Example(
        id=_id(row.get("id")) or name,
        document=_document(row),
        question=_question(row),
        candidates=_candidates(row.get("candidates"), surface),
        answer=_answer(row.get("answer"), surface),
        names=_names(row.get("entities")),
    )
    if reason := find_problem(example):
        raise _Wrong(reason)
    return example


def _id(value: object) -> str:
    if value is None or isinstance(value, str):
        return " ".join((value or "").split())
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise _Wrong('"id" is neither a text nor a whole number')


def _document(row: dict[str, Any]) -> tuple[Sentence, ...]:
    from asreader.data.text import tokenizer

    value = _needed(row, "document")
    if isinstance(value, str):
        return tokenizer.tokenize_sentences(value)
    if isinstance(value, list) and value and all(isinstance(sentence, list) for sentence in value):
        return tuple(_words(sentence, "document") for sentence in value)
    return (_words(value, "document"),)


def _question(row: dict[str, Any]) -> Sentence:
    from asreader.data.text import tokenizer

    value = _needed(row, "question")
    if isinstance(value, str):
        return tokenizer.tokenize_question(value)
    found = _words(value, "question")
    return found if GAP in found else tuple(GAP if _GAP.fullmatch(word) else word for word in found)


def _needed(row: dict[str, Any], key: str) -> object:
    if row.get(key) is None:
        raise _Wrong(f'no "{key}"')
    return row[key]


def _words(value: object, key: str) -> Sentence:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise _Wrong(f'"{key}" is neither a text nor a list of words' + " or of sentences" * (key == "document"))
    if " ".join(value).split() != value:
        bad = next(word for word in value if word.split() != [word])
        raise _Wrong(f'"{key}" has the word {bad!r}, which is empty or holds white space')
    return tuple(value)


def _candidates(value: object, surface: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(candidate, str) for candidate in value):
        raise _Wrong('"candidates" is not a list of texts')
    return tuple(" ".join(surface(candidate)) for candidate in value)


def _names(value: object) -> dict[str, str]:
    """Names that are not texts are nobody's loss: they are for showing alone."""
    if not isinstance(value, dict):
        return {}
    return {label: name for label, name in value.items() if isinstance(name, str) and name.strip()}


def _answer(value: object, surface: Callable[[str], Iterable[str]]) -> str | None:
    if value is None or isinstance(value, str):
        return " ".join(surface(value or "")) or None
    raise _Wrong('"answer" is not a text')
