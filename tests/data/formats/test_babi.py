from __future__ import annotations

from asreader.data.example import Example
from asreader.data.formats import babi
from asreader.data.source_file import make_memory_file
from asreader.errors import Fault

STORY = """\
1 Anna went to the north-west wing.
2 Ben's here.
3 Where is Anna? \twing\t1
4 Ben took the milk.
5 What has Ben?\tmilk,ball\t4
1 Cy slept.
2 Who slept?\tCy\t1
"""


def items(text: str) -> list[Example | Fault]:
    data = text.encode()
    return list(babi.read(make_memory_file("f", "qa8.txt", data)))


def test_a_document_is_all_statements_so_far() -> None:
    first = ("Anna", "went", "to", "the", "north-west", "wing", ".")
    second, third = ("Ben's", "here", "."), ("Ben", "took", "the", "milk", ".")
    assert items(STORY) == [
        Example("qa8:1", (first, second), ("Where", "is", "Anna", "?"), (), "wing"),
        Example("qa8:2", (first, second, third), ("What", "has", "Ben", "?"), (), "milk,ball"),
        Example("qa8:3", (("Cy", "slept", "."),), ("Who", "slept", "?"), (), "Cy"),
    ]


def test_an_answer_may_be_missing() -> None:
    (found,) = items("1 Cy slept.\n2 Who slept?\t\n")
    assert isinstance(found, Example) and found.answer is None


def test_questions_after_a_broken_line_are_faults() -> None:
    found = items(STORY.replace("4 Ben", "Ben"))
    assert [(item.line, item.reason) for item in found if isinstance(item, Fault)] == [
        (4, "expected a line numbered 4, found 'Ben took the milk.'"),
        (5, "its text is broken at line 4"),
    ]
    assert [item.answer for item in found if isinstance(item, Example)] == ["wing", "Cy"]
    (empty,) = items("1 Who slept?\tCy\t1\n")
    assert isinstance(empty, Fault) and empty.reason == "the document is empty"


def test_group() -> None:
    assert [babi.detect_group(f"en/qa{number}_train.txt") for number in (1, 20)] == ["qa1", "qa20"]
    assert babi.detect_group("qa1_basic-fact_train.txt") == "qa1"
    assert babi.detect_group("stories.txt") == ""


def test_detect() -> None:
    assert babi.detect("x", STORY)
    assert not babi.detect("x", "1 A list\n2 of things\n")
    assert not babi.detect("x", "1 Anna slept .\n2 XXXXX slept ?\tAnna\t\tAnna|Ben\n")


def test_plurals_of_task_15_are_read_as_the_singular() -> None:
    (found,) = items("1 Wolves are afraid of mice.\n2 Rex is a wolf.\n3 What is Rex afraid of?\tmouse\t1 2\n")
    assert isinstance(found, Example)
    assert found.document[0] == ("wolf", "are", "afraid", "of", "mouse", ".")
    assert found.answer == "mouse"
