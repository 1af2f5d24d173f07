"""metrics.jsonl is read by one parser, which skips lines that were cut short or are not rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from asreader.runs.folder import Run
from asreader.runs.metrics_log import MetricsRow, ValidationRow, parse_row, read_metrics, read_validations
from asreader.settings import Config
from asreader.training.journal import Journal


def test_rows_of_a_journal_are_read_back(tmp_path: Path) -> None:
    run = Run(tmp_path)
    settings = Config()
    with Journal(run, settings, 0) as journal:
        journal.validation(7, 1, accuracy=0.5, loss=1.25, best=True)
        journal.validation(14, 2, accuracy=0.25, loss=1.5, best=False)
    assert read_metrics(run.metrics) == (
        MetricsRow(7, 1, "valid", 1.25, 0.5, best=True),
        MetricsRow(14, 2, "valid", 1.5, 0.25, best=False),
    )
    assert read_validations(run.metrics) == [ValidationRow(1, 0.5, best=True), ValidationRow(2, 0.25, best=False)]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        "\x00",
        '{"kind": "train"}',
        '{"step": 1, "kind": "test"}',
        '{"step": "x", "kind": "train"}',
        '{"step": 1, "kind": "valid", "accuracy": []}',
        '{"step": 1e999, "kind": "train"}',
        "[" * 9999,
    ],
)
def test_lines_that_are_not_rows_are_skipped(line: str, tmp_path: Path) -> None:
    assert parse_row(line) is None
    path = tmp_path / "metrics.jsonl"
    path.write_text(line + '\n{"step": 3, "epoch": 1, "kind": "train", "loss": 2}\n')
    assert read_metrics(path) == (MetricsRow(3, 1, "train", 2.0),)
    assert read_validations(path) == []


def test_a_missing_log_has_no_rows(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "metrics.jsonl") == ()
