from __future__ import annotations

import lzma
import tarfile
from pathlib import Path

import pytest

from asreader.data.dataset import ReadReport, read_examples
from asreader.data.example import Example

QUERIES = """\
1 ||| 小 猫 睡 着 。
2 ||| XXXXX 醒 着 。
<qid_0> ||| XXXXX 醒 着 。
1 ||| 天 黑 了 。
<qid_1> ||| XXXXX 黑 了 。
"""
ANSWERS = "<qid_0> ||| 小\n<qid_1> ||| 天\n"
EXPECTED = [
    Example(
        "cloze.train:1",
        (("小", "猫", "睡", "着", "。"), ("XXXXX", "醒", "着", "。")),
        ("XXXXX", "醒", "着", "。"),
        (),
        "小",
    ),
    Example("cloze.train:2", (("天", "黑", "了", "。"),), ("XXXXX", "黑", "了", "。"), (), "天"),
]


def write(folder: Path, queries: str, answers: str | None) -> Path:
    folder.mkdir()
    (folder / "cloze.train.doc_query").write_text(queries, encoding="utf-8")
    if answers is not None:
        (folder / "cloze.train.answer.xz").write_bytes(lzma.compress(answers.encode()))
    return folder


def test_answers_come_from_the_sibling_file(tmp_path: Path) -> None:
    folder = write(tmp_path / "f", QUERIES, ANSWERS)
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        archive.add(folder, "cmrc")
    for path in (folder, folder / "cloze.train.doc_query", tmp_path / "a.tgz"):
        report = ReadReport()
        assert [example for _, example in read_examples(path, report=report)] == EXPECTED
        assert report.format_lines() == []


def test_without_an_answer_file_questions_are_unlabelled(tmp_path: Path) -> None:
    folder = write(tmp_path / "f", QUERIES, None)
    assert [example.answer for _, example in read_examples(folder)] == [None, None]


@pytest.mark.parametrize(
    ("queries", "answers", "line", "reason"),
    [
        (QUERIES, "<qid_1> ||| 天\n", 1, "no answer to <qid_0>"),
        (QUERIES.replace("2 |||", "3 |||"), ANSWERS, 1, "expected a line `2 ||| words`"),
        (QUERIES.replace("<qid_0> ||| XXXXX", "<qid_0> ||| 小"), ANSWERS, 1, "no XXXXX"),
        (QUERIES.replace("<qid_0>", "3"), ANSWERS, 1, "without a question line"),
    ],
)
def test_faults(tmp_path: Path, queries: str, answers: str, line: int, reason: str) -> None:
    report = ReadReport()
    found = list(read_examples(write(tmp_path / "f", queries, answers), skip_bad=True, report=report))
    assert [example.answer for _, example in found] == ["天"]
    (fault,) = report.first_faults
    assert fault.line == line and reason in fault.reason
