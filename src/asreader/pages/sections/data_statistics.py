"""ReportData -> data section: statistics of the training and validation data, as in table 1 of the paper."""

from __future__ import annotations

from pathlib import Path

from asreader.data.statistics import TABLE_ROWS, Statistics, compute_statistics
from asreader.errors import InputError
from asreader.pages.page import build_missing_note, build_table
from asreader.pages.question_filter import read_questions
from asreader.pages.report_data import ReportData
from asreader.settings import DataSettings
from asreader.system.markup import Markup, join_content, shorten_word

MAX_TRAINING_BYTES = 20 << 20
"""Larger training data are not counted for a report."""


def build_data_statistics(report: ReportData) -> Markup:
    """Table of statistics; a note if the training data cannot be counted."""
    columns = {"valid": compute_statistics(report.questions)}
    note = None
    try:
        columns = {"train": _count_training_data(report.best_run.settings.data), **columns}
    except InputError as error:
        note = build_missing_note(f"{error}.")
    rows = [[name, *(format_cell(column) for column in columns.values())] for name, format_cell in TABLE_ROWS.items()]
    return join_content([build_table(["", *columns], rows, numbers=range(1, len(columns) + 1)), note])


def _count_training_data(settings: DataSettings) -> Statistics:
    path = Path(settings.train)
    if not settings.train or not path.exists():
        where = shorten_word(settings.train) or "nowhere"
        raise InputError(f"The training data are not where config.toml says: {where}")
    if (size := _measure_size(path)) > MAX_TRAINING_BYTES:
        raise InputError(f"The training data ({size / 1e6:,.0f} MB) are not counted here; `asreader stats` does")
    questions = read_questions(path, split="train", format=settings.format or None, skip_bad=settings.skip_bad)
    counted = compute_statistics(questions)
    if not counted.questions:
        raise InputError(f"{shorten_word(settings.train)} holds no training questions")
    return counted


def _measure_size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
