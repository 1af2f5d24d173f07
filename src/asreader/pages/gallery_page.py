"""Cases -> a gallery: chosen questions, right, wrong or surprising, each with where the reader looked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from asreader.attention import html_view
from asreader.data.example import Example
from asreader.data.store import encode
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.inference.answer import Answer
from asreader.inference.reader import Reader
from asreader.pages.page import PageSection, render_page
from asreader.pages.question_filter import AnsweredQuestion, QuestionFilter, match_predictions, select_questions
from asreader.system import atomic_files
from asreader.system.markup import Markup, element, isolated, joined, shortened
from asreader.system.progress import watched

EXCERPT_WORDS = 120
"""Words of a document that are shown at once."""


def answer_questions(reader: Reader, asked: Iterable[Example], said: Path | None = None) -> list[AnsweredQuestion]:
    """Questions beside what a reader says of them, or has said in a prediction file."""
    everything = list(asked)
    known = reader.evaluate(encode(everything)).predictions if said is None else predictions.read(said)
    found = match_predictions(everything, known)
    if not found:
        raise InputError("no question of the data has been answered; are the predictions of these data?")
    return found


def build_entries(reader: Reader, chosen: Sequence[AnsweredQuestion], key: str = "q", heading: str = "h3") -> Markup:
    """Each question with where the reader looked, one below the other; the links lead from one to the next."""
    shown = []
    for number, case in enumerate(watched(chosen, "drawing", len(chosen)), 1):
        answer = reader.explain(case.example)
        shown.append(_entry(case, answer, number, len(chosen), key, heading))
    return joined(shown)


def _entry(case: AnsweredQuestion, answer: Answer, number: int, count: int, key: str, heading: str) -> Markup:
    kind = {True: "right", False: "wrong", None: "unknown"}[case.right]
    title = [f"{number}. ", isolated(shortened(case.example.id, 60))]
    steps = [("previous", number - 1), ("next", number + 1)]
    links = [element("a", text, href=f"#{key}{other}") for text, other in steps if 1 <= other <= count]
    return element(
        "article",
        element(heading, *title, id=f"{key}{number}-title"),
        html_view.render_view(answer, f"{key}{number}", EXCERPT_WORDS),
        element("nav", joined(links, " · "), aria_label=f"Question {number}") if links else None,
        class_="case", id=f"{key}{number}", tabindex=-1, aria_labelledby=f"{key}{number}-title", data_place=number,
        data_verdict=kind, data_confidence=f"{case.confidence:.6f}", data_support=f"{case.support or 0.0:.6f}",
    )  # fmt: skip


def build_toolbar() -> Markup:
    """Filter and order within the page; its script shows them."""
    verdicts = [element("option", text, value=kind) for text, kind in _VERDICTS]
    orders = [element("option", text, value=kind) for text, kind in _ORDERS]
    return element(
        "div",
        element("label", "with the words ", element("input", type="search")),
        element("label", "show ", element("select", *verdicts)),
        element("label", "order ", element("select", *orders)),
        element("output", "", aria_live="polite"),
        element("span", joined((joined([element("kbd", key), f" {what}"]) for key, what in _KEYS), ", ")),
        class_="tools", hidden=True,
    )  # fmt: skip


_KEYS = (("j", "next"), ("k", "previous"), ("/", "search"))
_VERDICTS = (("all", "all"), ("right answers", "right"), ("wrong answers", "wrong"))
_ORDERS = (
    ("as chosen", "place"),
    ("surest first", "confidence"),
    ("least sure first", "doubt"),
    ("most surprising first", "support"),
)


def write_gallery(
    out: Path, reader: Reader, title: str, known: Sequence[AnsweredQuestion], wish: QuestionFilter
) -> int:
    """One self-contained page with the wanted questions; returns how many there are."""
    chosen = select_questions(known, wish)
    if not chosen:
        raise InputError(f"no question fits ({wish}); widen the filters")
    right = sum(case.right is True for case in known)
    lead = f"{len(chosen):,} of {len(known):,} questions, of which {right:,} were answered right: {wish}."
    body = joined([build_toolbar(), element("div", build_entries(reader, chosen))])
    atomic_files.write_text(out, render_page(title, lead, [PageSection("questions", "Questions", body)]))
    return len(chosen)
