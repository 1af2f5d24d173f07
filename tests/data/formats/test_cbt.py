from __future__ import annotations

import pytest

from asreader.data.example import Example
from asreader.data.formats import cbt
from asreader.data.source_file import make_memory_file
from asreader.errors import Fault, InputError

FIRST = "1 Anna had a cat .\n2 Ben had none .\n3 XXXXX fed it .\tAnna\t\tAnna|Ben|cat"
SECOND = "1 Ben ran .\n2 Then XXXXX fell .\tBen\t\tBen|Anna"


def items(text: str) -> list[Example | Fault]:
    return list(cbt.read(make_memory_file("f", "q.txt", text.encode())))


def faults(text: str) -> list[tuple[int, str]]:
    return [(item.line, item.reason) for item in items(text) if isinstance(item, Fault)]


def test_a_question() -> None:
    assert items(FIRST) == [
        Example(
            id="q:1",
            document=(("Anna", "had", "a", "cat", "."), ("Ben", "had", "none", ".")),
            question=("XXXXX", "fed", "it", "."),
            candidates=("Anna", "Ben", "cat"),
            answer="Anna",
        )
    ]


@pytest.mark.parametrize("between", ["\n\n", "\n\n\n\n", "\n \n", "\r\n\r\n", "\n"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_any_number_of_blank_lines_separates_questions(between: str, end: str) -> None:
    text = f"\n{FIRST}{between}{SECOND}{end}"
    found = items(text.replace("\n", "\r\n") if "\r" in between else text)
    assert [item.id for item in found if isinstance(item, Example)] == ["q:1", "q:2"]
    assert [len(item.document) for item in found if isinstance(item, Example)] == [2, 1]


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("a|b", ("a", "b")),
        ("a||b", ("a", "", "b")),
        ("a|||b", ("a", "|", "b")),
        ("||b", ("|", "b")),
        ("a||", ("a", "|")),
        ("a|||||b", ("a", "|", "|", "b")),
        (" a | New York ", ("a", "New York")),
        ("a", ("a",)),
        ("", ()),
    ],
)
def test_candidates(listed: str, expected: tuple[str, ...]) -> None:
    assert cbt.split_candidates(listed) == expected


@pytest.mark.parametrize(
    ("last", "candidates", "answer"),
    [
        ("2 XXXXX ran .", (), None),
        ("2 XXXXX ran .\t", (), None),
        ("2 XXXXX ran .\tBen", (), "Ben"),
        ("2 XXXXX ran .\tBen\t\t", (), "Ben"),
        ("2 XXXXX ran .\t\t\tBen|Anna", ("Ben", "Anna"), None),
        ("2 XXXXX ran .\tBen\tBen|Anna", ("Ben", "Anna"), "Ben"),
        ("2 XXXXX ran .\tBen\t\tBen|Anna\t\t", ("Ben", "Anna"), "Ben"),
        ("2 XXXXX ran .\tBen\t\tBen||Anna", ("Ben", "", "Anna"), "Ben"),
    ],
)
def test_optional_fields_may_be_missing(last: str, candidates: tuple[str, ...], answer: str | None) -> None:
    (found,) = items(f"1 Ben ran .\n{last}\n")
    assert isinstance(found, Example)
    assert (found.candidates, found.answer) == (candidates, answer)


def test_a_gap_attached_to_a_word_is_split_off() -> None:
    (found,) = items("1 Ben ran .\n2 `XXXXX's ran .\tBen\t\tBen|Anna")
    assert isinstance(found, Example) and found.question == ("`", "XXXXX", "'s", "ran", ".")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("1 Ben ran .\n2 Anna ran .\tBen\t\tBen|Anna", 2, "no XXXXX"),
        ("1 Ben ran .\nAnna ran .\n3 XXXXX ran .\tBen\t\tBen", 2, "numbered 2, found 'Anna ran .'"),
        ("1 Ben ran .\n3 XXXXX ran .\tBen\t\tBen", 2, "expected a line numbered 2"),
        ("1 Ben ran .\n2 Anna ran .", 2, "ends without a question"),
        ("1 Ben ran .\n2 XXXXX ran .\tCy\t\tBen|Anna", 2, "'Cy' is not among the candidates"),
        ("1 Ben ran .\n2 XXXXX ran .\t|\t\tBen||Anna", 2, "not among"),
        ("1 XXXXX ran .\tBen\t\tBen|Anna", 1, "document is empty"),
        ("1 Ben ran .\n2 XXXXX ran .\tBen\t\tBen\n3 Anna ran .", 2, "in the middle"),
    ],
)
def test_a_bad_question_is_one_fault_and_the_next_is_read(text: str, line: int, reason: str) -> None:
    for between in ("\n\n", "\n"):
        found = faults(text + between + FIRST)
        assert len(found) == 1 and found[0][0] == line and reason in found[0][1]
        assert [item.id for item in items(text + between + FIRST) if isinstance(item, Example)] == ["q:2"]


def test_windows_of_one_book_share_sentence_objects() -> None:
    first, second = items(FIRST + "\n\n" + FIRST.replace("1 Anna", "1 Carla"))
    assert isinstance(first, Example) and isinstance(second, Example)
    assert first.document[1] is second.document[1] and first.document[0][1] is second.document[0][1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CBTest/data/cbtest_NE_train.txt", "NE"),
        ("cbtest_CN_valid_2000ex.txt", "CN"),
        ("cbtest_V_test_2500ex.txt", "V"),
        ("cbtest_P_train.txt", "P"),
        ("NE/train-00000-of-00001.parquet", "NE"),
        ("Verbs/PROSE.txt", ""),
    ],
)
def test_group(name: str, expected: str) -> None:
    assert cbt.detect_group(name) == expected


def test_detect_requires_a_numbered_line_with_a_gap() -> None:
    assert cbt.detect("any", FIRST) and cbt.detect("any", "\n\nno number\n" + FIRST)
    assert not cbt.detect("cbt_train.txt", "_BOOK_TITLE_ : One\nAnna had a cat .\n")
    assert not cbt.detect("any", "1 ||| XXXXX a\n<qid_0> ||| XXXXX a\n")
    assert not cbt.detect("any", "1/O Anna/PERSON\n2/O XXXXX/O\n")


def test_format_example() -> None:
    (example,) = items(FIRST)
    assert isinstance(example, Example)
    assert cbt.format_example(example) == FIRST + "\n\n"


@pytest.mark.parametrize(
    ("example", "reason"),
    [
        (Example("x", (("a",),), ("XXXXX",), ("a|b", "c"), "c"), "candidates"),
        (Example("x", (("a",),), ("XXXXX",), ("a", "", ""), "a"), "candidates"),
        (Example("x", (("a",),), ("where", "?"), (), "a"), "no XXXXX"),
        (Example("x", (("a",),), ("XXXXX",), ("a\tb",), None), "white space|candidates"),
        (Example("x", (("a",),), ("XXXXX",), (), "a\n2"), "."),
    ],
)
def test_an_example_that_cbt_cannot_represent_is_refused(example: Example, reason: str) -> None:
    with pytest.raises(InputError, match=f"'x' cannot be written as CBT: .*({reason}).*JSONL"):
        cbt.format_example(example)
