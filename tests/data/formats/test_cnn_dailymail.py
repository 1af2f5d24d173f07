from __future__ import annotations

import pytest

from asreader.data.example import Example
from asreader.data.formats import cnn_dailymail
from asreader.data.source_file import make_memory_file
from asreader.errors import Fault

QUESTION = """\
http://news.example/1

( @entity0 ) @entity3 met @entity1 . " hello ! " she said .

http://more.example/

and so it ended

@placeholder met @entity1 of @entity7

@entity3

@entity0:CNN
@entity1:Ben
@entity3:Anna
@entity7:Rome
"""


def items(text: str, name: str = "0a1b.question") -> list[Example | Fault]:
    data = text.encode()
    return list(cnn_dailymail.read(make_memory_file("f", name, data)))


def test_a_question() -> None:
    assert items(QUESTION) == [
        Example(
            id="0a1b",
            document=(
                ("(", "@entity0", ")", "@entity3", "met", "@entity1", ".", '"'),
                ("hello", "!", '"'),
                ("she", "said", "."),
                ("http://more.example/",),
                ("and", "so", "it", "ended"),
            ),
            question=("XXXXX", "met", "@entity1", "of", "@entity7"),
            candidates=("@entity0", "@entity3", "@entity1"),
            answer="@entity3",
        )
    ]


def test_an_answer_that_is_not_in_the_document_is_kept() -> None:
    (found,) = items(QUESTION.replace("\n@entity3\n", "\n@entity7\n"))
    assert isinstance(found, Example)
    assert (found.answer, found.candidates[-1]) == ("@entity7", "@entity7")
    (found,) = items(QUESTION.replace("@entity3 met", "she met"))
    assert isinstance(found, Example)
    assert found.candidates == ("@entity0", "@entity1", "@entity3")


@pytest.mark.parametrize("between", ["", "\n", "\n\n\n"])
def test_many_in_one_file(between: str) -> None:
    found = items(QUESTION + between + QUESTION + between + QUESTION, "all.txt")
    assert [item.id for item in found if isinstance(item, Example)] == ["all:1", "all:2", "all:3"]
    assert {(item.document, item.question) for item in found if isinstance(item, Example)} == {
        (item.document, item.question) for item in items(QUESTION) if isinstance(item, Example)
    }


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", None, ""),
        ("http://news.example/1\n\nwords\n", 1, "not an address"),
        (QUESTION.replace("@placeholder", "nobody"), 1, "no @placeholder"),
        (QUESTION.partition("@entity0:")[0] + "\n" + QUESTION, 1, "two questions without a separator"),
    ],
)
def test_faults(text: str, line: int | None, reason: str) -> None:
    found = items(text + "\n" + QUESTION if line and "@entity0:" in text else text)
    assert [item.line for item in found if isinstance(item, Fault)] == ([line] if line else [])
    assert all(reason in item.reason for item in found if isinstance(item, Fault))
    assert len(found) == (2 if line and "@entity0:" in text else 1 if line else 0)


def test_group() -> None:
    assert cnn_dailymail.detect_group("cnn/questions/test/a.question") == "cnn"
    assert cnn_dailymail.detect_group("dailymail/questions/test/a.question") == "dailymail"
    assert cnn_dailymail.detect_group("cnn") == ""
