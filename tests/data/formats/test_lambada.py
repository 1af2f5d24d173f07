from __future__ import annotations

import io

from asreader.data.example import Example
from asreader.data.formats import lambada
from asreader.data.source_file import SourceFile
from asreader.errors import Fault


def items(text: str) -> list[Example | Fault]:
    data = text.encode()
    return list(
        lambada.read(SourceFile("f", "lambada.txt", lambda: io.BufferedReader(io.BytesIO(data)), lambda name: None))
    )


def test_the_last_sentence_asks_for_its_last_word() -> None:
    assert items("anna had a cat . `` whose ? '' ben liked anna\n\n") == [
        Example(
            "lambada:1",
            (("anna", "had", "a", "cat", "."), ("``", "whose", "?", "''")),
            ("ben", "liked", "XXXXX"),
            (),
            "anna",
        )
    ]


def test_one_sentence_is_its_own_document() -> None:
    assert items("ben liked anna") == [Example("lambada:1", (("ben", "liked"),), ("ben", "liked", "XXXXX"), (), "anna")]


def test_a_last_word_alone_is_asked_for_alone() -> None:
    assert items("ben left . anna") == [Example("lambada:1", (("ben", "left", "."),), ("XXXXX",), (), "anna")]


def test_one_word_is_no_passage() -> None:
    assert items("\nanna\n") == [Fault("f", 2, "the document is empty")]


def test_only_the_name_tells() -> None:
    passage = "anna had a cat . ben liked anna\n"
    assert lambada.detect("d/lambada_test_plain_text.txt", passage)
    assert not lambada.detect("lambada/novels.txt", passage)
    assert not lambada.detect("lambada-vocab-2.txt", "the\nof\n")
    assert not lambada.detect("lambada.jsonl", '{"document": "a b c d e f"}')
