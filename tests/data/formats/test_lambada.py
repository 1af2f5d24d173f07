from __future__ import annotations

from asreader.data.example import Example
from asreader.data.formats import lambada
from asreader.data.source_file import make_memory_file
from asreader.errors import Fault


def items(text: str) -> list[Example | Fault]:
    data = text.encode()
    return list(lambada.read(make_memory_file("f", "lambada.txt", data)))


def test_the_answer_is_the_last_word_of_the_last_sentence() -> None:
    assert items("anna had a cat . `` whose ? '' ben liked anna\n\n") == [
        Example(
            "lambada:1",
            (("anna", "had", "a", "cat", "."), ("``", "whose", "?", "''")),
            ("ben", "liked", "XXXXX"),
            (),
            "anna",
        )
    ]


def test_a_passage_of_one_sentence_is_its_own_document() -> None:
    assert items("ben liked anna") == [Example("lambada:1", (("ben", "liked"),), ("ben", "liked", "XXXXX"), (), "anna")]


def test_a_last_sentence_of_one_word_is_a_gap_alone() -> None:
    assert items("ben left . anna") == [Example("lambada:1", (("ben", "left", "."),), ("XXXXX",), (), "anna")]


def test_a_single_word_is_a_fault() -> None:
    assert items("\nanna\n") == [Fault("f", 2, "the document is empty")]


def test_only_the_file_name_decides() -> None:
    passage = "anna had a cat . ben liked anna\n"
    assert lambada.detect("d/lambada_test_plain_text.txt", passage)
    assert not lambada.detect("lambada/novels.txt", passage)
    assert not lambada.detect("lambada-vocab-2.txt", "the\nof\n")
    assert not lambada.detect("lambada.jsonl", '{"document": "a b c d e f"}')
