"""ReportData -> examples section: surprising, wrong and right answers of the best run with its attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.inference.reader import Reader
from asreader.pages.filter_options import AnswerSelection
from asreader.pages.gallery_page import build_entries
from asreader.pages.page import build_missing_note
from asreader.pages.question_filter import AnsweredQuestion, QuestionFilter, match_predictions, select_questions
from asreader.pages.report_data import ReportData
from asreader.runs.file_names import name_predictions
from asreader.runs.folder import Run
from asreader.system.markup import Markup, element, join_content

QUESTIONS_PER_GROUP = 4


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """Questions under one title; `name` starts their ids."""

    name: str
    title: str
    questions: list[AnsweredQuestion]


def build_example_answers(report: ReportData) -> Markup:
    """Groups of questions, each with the attention of the best run."""
    if not report.scored_runs:
        raise InputError(f"{name_predictions('valid')} is missing")
    reader = Reader.load(report.best_run.folder, "cpu")
    predicted = predictions.read_predictions(Run(report.best_run.folder).predictions("valid"))
    parts = [element("p", "Press j and k to go from one to the next.", class_="quiet")]
    for group in _select_groups(match_predictions(report.questions, predicted)):
        entries = build_entries(reader, group.questions, id_prefix=group.name, heading="h4")
        body = entries if group.questions else build_missing_note("There is none.")
        parts.append(join_content([element("h3", group.title), body]))
    return join_content(parts)


def _select_groups(answered: Sequence[AnsweredQuestion]) -> Iterator[QuestionGroup]:
    """Select the questions of each group; no question is in two groups."""
    used: set[str] = set()
    for selection, title in (
        (AnswerSelection.surprising, "Least probable right answers"),
        (AnswerSelection.wrong, "Confident and wrong"),
        (AnswerSelection.right, "Confident and right"),
    ):
        unused = [question for question in answered if question.example.id not in used]
        selected = select_questions(unused, QuestionFilter(selection, max_questions=QUESTIONS_PER_GROUP))
        used |= {question.example.id for question in selected}
        yield QuestionGroup(selection.value, title, selected)
