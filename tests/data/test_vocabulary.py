from __future__ import annotations

from pathlib import Path

import pytest

from asreader.data.example import GAP, Example
from asreader.data.store import encode_examples
from asreader.data.vocabulary import ENTITY, GAP_ROW, UNKNOWN, Vocabulary, build_vocabulary, load_vocabulary
from asreader.errors import InputError


def test_rows_are_line_numbers_of_the_file(tmp_path: Path) -> None:
    words = build_vocabulary({"the": 5, "cat": 2, "rare": 1, "@entity3": 9, GAP: 4}, min_count=2, unknown=3)
    words.save(tmp_path / "vocabulary.txt")
    lines = (tmp_path / "vocabulary.txt").read_text().splitlines()
    assert len(lines) == words.size
    assert [lines[row] for row in words.rows(["the", "cat"])] == ["the", "cat"]
    assert load_vocabulary(tmp_path / "vocabulary.txt") == words


def test_words_are_sorted_by_frequency_then_alphabetically() -> None:
    assert build_vocabulary({"b": 2, "a": 2, "c": 7}, min_count=1, unknown=1).words == ("c", "a", "b")


def test_words_without_a_row_are_unknown_or_entities() -> None:
    words = build_vocabulary({"the": 5, "rare": 1, "@entity3": 1}, min_count=2, unknown=3)
    assert list(words.rows(["rare", "@entity9", GAP, "never"])) == [UNKNOWN, ENTITY, GAP_ROW, UNKNOWN]


@pytest.mark.parametrize("entities", [0, 2])
def test_the_row_of_a_single_word_equals_its_row_among_many(entities: int) -> None:
    vocabulary = Vocabulary(("the", "cat"), unknown=3, entities=entities)
    words = ["cat", "rare", "@entity9", GAP, "the"]
    assert [vocabulary.row(word) for word in words] == list(vocabulary.rows(words))


def test_entities_are_unknown_words_if_the_training_data_have_none() -> None:
    assert list(build_vocabulary({"the": 5}, min_count=1, unknown=3).rows(["@entity1"])) == [UNKNOWN]


def test_evaluation_words_are_added_only_as_extra_words() -> None:
    counts = {"the": 5}
    assert "new" not in build_vocabulary(counts, min_count=1, unknown=1).words
    assert build_vocabulary(counts, min_count=3, unknown=1, extra=["new", "the"]).words == ("the", "new")


def test_windows_of_one_book_count_a_word_once() -> None:
    sentences = [("once", "upon"), ("a", "time")]
    questions = [Example(str(n), tuple(sentences), ("a", GAP)) for n in range(20)]
    counts = encode_examples(questions).count_words()
    assert counts["once"] == 1
    assert counts["a"] == 20  # written once, but asked twenty times


@pytest.mark.parametrize("text", ["", "the\ncat\n", "<the padding>\n<the gap>\n<the separator>\n<unknown 0>\na\na\n"])
def test_an_invalid_vocabulary_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "vocabulary.txt").write_text(text)
    with pytest.raises(InputError, match="vocabulary"):
        load_vocabulary(tmp_path / "vocabulary.txt")


def test_rows_of_unknown_words_entities_and_words_do_not_overlap() -> None:
    words = Vocabulary(("a",), unknown=4, entities=5)
    rows = [*words.unknown_rows, *words.entity_rows, *words.rows(["a"])]
    assert len(set(rows)) == 10
    assert max(rows) == words.size - 1
