"""AnsweredQuestions -> gallery page: selected questions, each with the attention of the reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from asreader.attention import html_view
from asreader.data.example import Example
from asreader.data.store import encode_examples
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.inference.answer import Answer
from asreader.inference.reader import Reader
from asreader.pages.page import PageSection, render_page
from asreader.pages.question_filter import AnsweredQuestion, QuestionFilter, match_predictions, select_questions
from asreader.system import atomic_files
from asreader.system.markup import Markup, element, isolate_word, join_content, shorten_word
from asreader.system.progress import track_progress

EXCERPT_WORDS = 120
"""Number of words of a document that are shown without unfolding it."""


def answer_questions(
    reader: Reader, questions: Iterable[Example], prediction_file: Path | None = None
) -> list[AnsweredQuestion]:
    """Questions with the reader's predictions, or with those of a prediction file."""
    examples = list(questions)
    if prediction_file is None:
        predicted = reader.evaluate(encode_examples(examples)).predictions
    else:
        predicted = predictions.read_predictions(prediction_file)
    answered = match_predictions(examples, predicted)
    if not answered:
        raise InputError("no question of the data has a prediction; check that the predictions are of these data")
    return answered


def build_entries(
    reader: Reader, questions: Sequence[AnsweredQuestion], id_prefix: str = "q", heading: str = "h3"
) -> Markup:
    """One article per question with the reader's attention, and links to the previous and the next one."""
    entries = []
    for number, question in enumerate(track_progress(questions, "drawing", len(questions)), 1):
        answer = reader.explain(question.example)
        entries.append(_build_entry(question, answer, number, len(questions), id_prefix, heading))
    return join_content(entries)


def _build_entry(
    question: AnsweredQuestion, answer: Answer, number: int, count: int, id_prefix: str, heading: str
) -> Markup:
    entry_id = f"{id_prefix}{number}"
    title = [f"{number}. ", isolate_word(shorten_word(question.example.id, 60))]
    neighbours = [("previous", number - 1), ("next", number + 1)]
    links = [element("a", text, href=f"#{id_prefix}{other}") for text, other in neighbours if 1 <= other <= count]
    return element(
        "article",
        element(heading, *title, id=f"{entry_id}-title"),
        html_view.render_view(answer, entry_id, EXCERPT_WORDS),
        element("nav", join_content(links, " · "), aria_label=f"Question {number}") if links else None,
        class_="case",
        id=entry_id,
        tabindex=-1,
        aria_labelledby=f"{entry_id}-title",
        data_place=number,
        data_verdict={True: "right", False: "wrong", None: "unknown"}[question.is_right],
        data_confidence=f"{question.confidence:.6f}",
        data_support=f"{question.right_probability or 0.0:.6f}",
    )


def build_toolbar() -> Markup:
    """Controls to filter and sort the entries; hidden until the script of the page runs."""
    verdicts = [element("option", text, value=value) for text, value in _VERDICTS]
    orders = [element("option", text, value=value) for text, value in _ORDERS]
    shortcuts = join_content((join_content([element("kbd", key), f" {action}"]) for key, action in _SHORTCUTS), ", ")
    return element(
        "div",
        element("label", "with the words ", element("input", type="search")),
        element("label", "show ", element("select", *verdicts)),
        element("label", "order ", element("select", *orders)),
        element("output", "", aria_live="polite"),
        element("span", shortcuts),
        class_="tools",
        hidden=True,
    )


_SHORTCUTS = (("j", "next"), ("k", "previous"), ("/", "search"))
_VERDICTS = (("all", "all"), ("right answers", "right"), ("wrong answers", "wrong"))
_ORDERS = (
    ("as selected", "place"),
    ("most confident first", "confidence"),
    ("least confident first", "doubt"),
    ("most surprising first", "support"),
)


def write_gallery(
    out: Path, reader: Reader, title: str, answered: Sequence[AnsweredQuestion], question_filter: QuestionFilter
) -> int:
    """Write one self-contained page with the matching questions; returns their number."""
    selected = select_questions(answered, question_filter)
    if not selected:
        raise InputError(f"no question fits ({question_filter}); widen the filters")
    right = sum(question.is_right is True for question in answered)
    lead = (
        f"{len(selected):,} of {len(answered):,} questions, of which {right:,} were answered right: {question_filter}."
    )
    body = join_content([build_toolbar(), element("div", build_entries(reader, selected))])
    atomic_files.write_text(out, render_page(title, lead, [PageSection("questions", "Questions", body)]))
    return len(selected)
