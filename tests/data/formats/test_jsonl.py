from __future__ import annotations

import json

import pytest

from asreader.data.example import Example
from asreader.data.formats import jsonl
from asreader.data.source_file import make_memory_file
from asreader.errors import Fault

ROW = {
    "document": [["Anna", "slept"]],
    "question": ["XXXXX", "slept"],
    "candidates": ["Anna", "New York"],
    "answer": "Anna",
}


def items(*lines: object) -> list[Example | Fault]:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    data = "\n".join(texts).encode()
    return list(jsonl.read(make_memory_file("f", "q.jsonl", data)))


def test_lists_of_words_are_not_tokenised() -> None:
    expected = Example("q:1", (("Anna", "slept"),), ("XXXXX", "slept"), ("Anna", "New York"), "Anna")
    assert (
        items(ROW) == items({**ROW, "document": ["Anna", "slept"], "candidates": [" Anna", "New York "]}) == [expected]
    )


def test_texts_are_tokenised() -> None:
    (found,) = items({"id": "a", "document": "Anna slept. Ben didn't.", "question": "___ slept."})
    assert found == Example(
        "a", (("Anna", "slept", "."), ("Ben", "did", "n't", ".")), ("XXXXX", "slept", "."), (), None
    )


def test_every_gap_mark_becomes_the_gap() -> None:
    for blank in ("XXXXX", "@placeholder", "___", "________"):
        for question in ([blank, "slept"], f"{blank} slept"):
            (found,) = items({**ROW, "question": question})
            assert isinstance(found, Example) and found.question == ("XXXXX", "slept")
    (found,) = items({**ROW, "question": ["XXXXX", "___"]})
    assert isinstance(found, Example) and found.question == ("XXXXX", "___")


def test_optional_fields_may_be_missing() -> None:
    (found,) = items({"document": ["a"], "question": ["XXXXX"], "answer": None, "candidates": None, "id": None})
    assert found == Example("q:1", (("a",),), ("XXXXX",))
    found, other = items({**ROW, "id": 7}, "", {**ROW, "answer": ""})[:2]
    assert isinstance(found, Example) and isinstance(other, Example)
    assert (found.id, other.id, other.answer) == ("7", "q:3", None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"id": ' + "9" * 5000 + "}", "not JSON"),
        ("[1, 2]", "not an object"),
        ("null", "not an object"),
        ({"question": ["XXXXX"]}, 'no "document"'),
        ({"document": ["a"]}, 'no "question"'),
        ({**ROW, "document": 3}, '"document" is neither a text nor a list of words or of sentences'),
        ({**ROW, "document": [["a"], "b"]}, '"document" is neither'),
        ({**ROW, "document": [["a", 1]]}, '"document" is neither'),
        ({**ROW, "document": []}, "the document is empty"),
        ({**ROW, "document": " "}, "the document is empty"),
        ({**ROW, "document": ["a b"]}, "'a b', which is empty or contains white space"),
        ({**ROW, "document": [["a", ""]]}, "'', which is empty"),
        ({**ROW, "question": {"a": 1}}, '"question" is neither a text nor a list of words'),
        ({**ROW, "question": ["a\u2003b"]}, "contains white space"),
        ({**ROW, "candidates": "a|b"}, '"candidates" is not a list of texts'),
        ({**ROW, "candidates": [1]}, '"candidates" is not a list of texts'),
        ({**ROW, "answer": 5}, '"answer" is not a text'),
        ({**ROW, "answer": "Ben"}, "'Ben' is not among the candidates"),
        ({**ROW, "id": [1]}, '"id" is neither'),
        ({**ROW, "id": True}, '"id" is neither'),
        ('{"document": ["\\ud83d"], "question": ["XXXXX"]}', "without its other half"),
    ],
)
def test_faults_name_the_line(line: object, reason: str) -> None:
    good, bad = items({**ROW, "id": "good"}, line)
    assert isinstance(good, Example) and isinstance(bad, Fault)
    assert bad.line == 2 and reason in bad.reason and "\n" not in str(bad)


def test_an_id_used_twice_is_a_fault() -> None:
    found = items({**ROW, "id": "a"}, {**ROW, "id": "b"}, {**ROW, "id": "a"}, {**ROW, "id": "q:5"}, ROW)
    assert [(item.line, item.reason) for item in found if isinstance(item, Fault)] == [
        (3, "the id 'a' is used twice"),
        (5, "the id 'q:5' is used twice"),
    ]


def test_detect() -> None:
    assert jsonl.detect("q.jsonl", json.dumps(ROW)) and jsonl.detect("q.txt", json.dumps(ROW))
    assert jsonl.detect("q.jsonl", "garbage\n" + json.dumps(ROW))
    assert jsonl.detect("q.jsonl", '{"document": "cut sho')
    assert not jsonl.detect("q.jsonl", '{"sentences": ["a"], "question": "XXXXX", "options": ["a"]}')
    assert not jsonl.detect("predictions.jsonl", '{"id": "a", "answer": "b", "probabilities": [1]}')
    assert not jsonl.detect("a.txt", 'He wrote "document": nothing else.')


def test_a_formatted_example_is_read_back() -> None:
    example = Example("größe", (("a", "\u00a7"), ()), ("XXXXX", "?"), ("a", "", "|"), None)
    assert jsonl.format_example(example).count("\n") == 1
    assert items(jsonl.format_example(example).rstrip("\n")) == [example]
