from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from asreader.data.dataset import Part, ReadReport, read_examples
from asreader.data.example import Example
from asreader.data.formats import huggingface_cbt
from asreader.errors import InputError

arrow, parquet_files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

ROW: dict[str, object] = {
    "sentences": ["Anna slept .", "Ben woke ."],
    "question": "XXXXX woke .",
    "options": ["Anna", "Ben"],
    "answer": "Ben",
}


def example(name: str) -> Example:
    return Example(name, (("Anna", "slept", "."), ("Ben", "woke", ".")), ("XXXXX", "woke", "."), ("Anna", "Ben"), "Ben")


def parquet(path: Path, rows: list[dict[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet_files.write_table(arrow.Table.from_pylist(rows), path)
    return path


def test_a_clone_of_the_repository(tmp_path: Path) -> None:
    parquet(tmp_path / "NE" / "train-00000-of-00001.parquet", [ROW] * 2500)
    parquet(tmp_path / "CN" / "validation-00000-of-00001.parquet", [ROW])
    parquet(tmp_path / "raw" / "train-00000-of-00001.parquet", [{"title": "a", "content": "b"}])
    report = ReadReport()
    found = list(read_examples(tmp_path, report=report))
    assert found[:2] == [
        (Part("CN", "valid"), example("validation-00000-of-00001:1")),
        (Part("NE", "train"), example("train-00000-of-00001:1")),
    ]
    assert len(found) == 2501 and report.ignored == 1


@pytest.mark.parametrize("rows", [json.dumps([ROW, ROW]), json.dumps([ROW, ROW], indent=2), f"{json.dumps(ROW)}\n" * 2])
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_json(tmp_path: Path, rows: str, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_text(rows)
    assert [found for _, found in read_examples(path)] == [example("a:1"), example("a:2")]


def test_split_candidates_and_line_numbers_are_repaired(tmp_path: Path) -> None:
    cut = {**ROW, "options": ["Anna", "", "", "Ben"]}
    numbered = {**ROW, "sentences": ["1 Anna slept .", "2 Ben woke ."], "question": "3 XXXXX woke ."}
    path = parquet(tmp_path / "a.parquet", [cut, numbered, {**ROW, "answer": None, "options": []}])
    first, second, third = (found for _, found in read_examples(path))
    assert first.candidates == ("Anna", "|", "Ben")
    assert second == example("a:2")
    assert (third.candidates, third.answer) == ((), None)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**ROW, "sentences": "text"}, "not a list of texts"),
        ({**ROW, "options": [1]}, "not a list of texts"),
        ({**ROW, "question": None}, "not a text"),
        ({**ROW, "answer": 3}, "not a text"),
        ({**ROW, "question": "Ben woke ."}, "no XXXXX"),
        ({**ROW, "answer": "Cy"}, "not among"),
        ({**ROW, "sentences": []}, "document is empty"),
        ("text", "not an object"),
    ],
)
def test_faults_name_the_row(tmp_path: Path, row: object, reason: str) -> None:
    for text in (json.dumps([ROW, row]), json.dumps(ROW) + "\n" + json.dumps(row)):
        (tmp_path / "a.json").write_text(text)
        report = ReadReport()
        assert len(list(read_examples(tmp_path / "a.json", skip_bad=True, report=report))) == 1
        (fault,) = report.first_faults
        assert fault.line == 2 and reason in fault.reason


def test_invalid_parquet_files_and_other_columns_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no table")
    with pytest.raises(InputError, match=r"a\.parquet: damaged"):
        list(read_examples(tmp_path / "a.parquet"))
    with pytest.raises(InputError, match="no column 'sentences'"):
        list(read_examples(parquet(tmp_path / "b.parquet", [{"title": "a"}])))


def test_a_compressed_parquet_file_is_read_from_memory(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", [ROW])
    (tmp_path / "a.parquet.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert [found for _, found in read_examples(tmp_path / "a.parquet.gz")] == [example("a:1")]


def test_detect() -> None:
    assert huggingface_cbt.detect("NE/train.parquet", "")
    assert not huggingface_cbt.detect("raw/train.parquet", "")
    assert not huggingface_cbt.detect("a.jsonl", '{"document": ["a"], "question": ["XXXXX"], "sentences": 1}')
