"""Subject -> what a report shows: statistics of the data, the figures of `analyse`, questions and where it looked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from asreader.charts.catalogue import Figure, build_figures
from asreader.data.statistics import TABLE_ROWS, Statistics, statistics
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.breakdowns import systems
from asreader.evaluation.breakdowns.breakdown_table import Cell, Table, plain
from asreader.inference.reader import Reader
from asreader.pages import gallery_page, question_filter
from asreader.pages.filter_options import AnswerSelection
from asreader.pages.page import build_details, build_missing_note, build_table
from asreader.pages.question_filter import AnsweredQuestion, QuestionFilter, select_questions
from asreader.pages.report_data import ReportData
from asreader.runs.folder import Run
from asreader.settings import DataSettings
from asreader.system.markup import Markup, element, isolated, joined, picture, shortened

SHOWN = 4
"""Questions of each kind in the gallery."""
COUNTED = 20 << 20
"""Bytes of training data up to which they are counted for a report."""
ROWS = 60
"""Of a table of numbers; the rest is what `asreader analyse` writes."""


def data(subject: ReportData) -> Markup:
    """Table 1 of the paper for these data."""
    parts = {"valid": statistics(subject.questions)}
    try:
        parts = {"train": _training(subject.best.settings.data), **parts}
        note = None
    except InputError as error:
        note = build_missing_note(f"{error}.")
    rows = [[name, *(cell(part) for part in parts.values())] for name, cell in TABLE_ROWS.items()]
    return joined([build_table(["", *parts], rows, numbers=range(1, len(parts) + 1)), note])


def _training(settings: DataSettings) -> Statistics:
    path = Path(settings.train)
    if not settings.train or not path.exists():
        where = shortened(settings.train) or "nowhere"
        raise InputError(f"The training data are not where config.toml says: {where}")
    if (size := _size(path)) > COUNTED:
        raise InputError(f"The training data ({size / 1e6:,.0f} MB) are not counted here; `asreader stats` does")
    format = settings.format or None
    found = statistics(question_filter.read_questions(path, split="train", format=format, skip_bad=settings.skip_bad))
    if not found.questions:
        raise InputError(f"{shortened(settings.train)} holds no training questions")
    return found


def _size(path: Path) -> int:
    return (
        path.stat().st_size
        if path.is_file()
        else sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    )


def drawings(subject: ReportData) -> Markup:
    """All figures of `asreader analyse`, each with its numbers."""
    from asreader.charts import drawing

    settings, left_out = subject.best.settings.data, list[str]()
    source = systems.Source(subject.path, subject.data, subject.name)
    format = settings.format or None
    found = build_figures(
        systems.load([source], split="valid", format=format, skip_bad=settings.skip_bad), left_out.append
    )
    shown = []
    for figure in found:
        drawn = [drawing.render_svg(replace(figure, plots=(plot,))) for plot in figure.plots]
        shown.append(_figure(figure, [picture(one, _alternative(figure)) for one in drawn]))
    absent = (
        build_details("figures left out", element("ul", *(element("li", line) for line in left_out)))
        if left_out
        else None
    )
    return joined([element("div", *shown, class_="figures"), absent])


def _alternative(figure: Figure) -> str:
    return f"{figure.title}. The numbers are in the table below."


def _figure(figure: Figure, drawn: Sequence[Markup]) -> Markup:
    """A figure with its caption; several drawings stand side by side where there is room."""
    title, caption = element("h3", figure.title), element("figcaption", figure.caption)
    if not drawn:
        return element("figure", title, caption, _numbers(figure.table), class_="wide")
    images = drawn[0] if len(drawn) == 1 else element("div", *drawn, class_="figures")
    wide = "wide" if len(drawn) > 1 else None
    return element("figure", title, images, caption, build_details("the numbers", _numbers(figure.table)), class_=wide)


def _numbers(numbers: Table) -> Markup:
    """A figure's table; a first column that says the same everywhere is left out."""
    start = 1 if len(set(numbers.column(numbers.header[0]))) == 1 < len(numbers.header) else 0
    header = numbers.header[start:]
    rows = [[_shown(cell) for cell in row[start:]] for row in numbers.rows[:ROWS]]
    right = [place for place, name in enumerate(header) if place and _numeric(numbers.column(name))]
    more = len(numbers.rows) - len(rows)
    rest = element("p", f"and {more:,} rows that `asreader analyse` writes", class_="quiet") if more else None
    return joined([build_table(header, rows, numbers=right), rest])


def _numeric(cells: Sequence[Cell]) -> bool:
    return all(not isinstance(cell, str) for cell in cells)


def _shown(cell: Cell) -> Markup:
    if isinstance(cell, str):
        return isolated(plain(cell, 60))
    return isolated("" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else f"{cell:,}")


def examples(subject: ReportData) -> Markup:
    """Questions with where the best run looked."""
    if not subject.answered:
        raise InputError("without predictions/valid.jsonl nobody knows what was right")
    reader = Reader.load(subject.best.folder, "cpu")
    known = question_filter.match_predictions(
        subject.questions, predictions.read(Run(subject.best.folder).predictions("valid"))
    )
    parts = [element("p", "Press j and k to go from one to the next.", class_="quiet")]
    for kind, title, chosen in _kinds(known):
        body = gallery_page.build_entries(reader, chosen, key=kind, heading="h4")
        parts.append(joined([element("h3", title), body if chosen else build_missing_note("There is none.")]))
    return joined(parts)


def _kinds(known: Sequence[AnsweredQuestion]) -> Iterator[tuple[str, str, list[AnsweredQuestion]]]:
    """No question twice."""
    used: set[str] = set()
    for show, title in (
        (AnswerSelection.surprising, "The right answer got least"),
        (AnswerSelection.wrong, "Wrong and sure of it"),
        (AnswerSelection.right, "Right and sure of it"),
    ):
        free = [case for case in known if case.example.id not in used]
        chosen = select_questions(free, QuestionFilter(show, top=SHOWN))
        used |= {case.example.id for case in chosen}
        yield show.value, title, chosen
