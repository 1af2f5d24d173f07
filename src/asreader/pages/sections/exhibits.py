"""Subject -> what a report shows: statistics of the data, the figures of `analyse`, questions and where it looked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from asreader.charts.catalogue import Figure, figures
from asreader.data.statistics import TABLE_ROWS, Statistics, compute_statistics
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.breakdowns import systems
from asreader.evaluation.breakdowns.breakdown_table import Cell, Table, flatten_text
from asreader.inference.reader import Reader
from asreader.pages import cases, gallery
from asreader.pages.cases import Case, Wish, choose
from asreader.pages.page import folded, missing, table
from asreader.pages.showing import Show
from asreader.pages.subject import Subject
from asreader.runs.folder import Run
from asreader.settings import DataSettings
from asreader.system.markup import Markup, element, embed_svg, isolate_word, join_content, shorten_word

SHOWN = 4
"""Questions of each kind in the gallery."""
COUNTED = 20 << 20
"""Bytes of training data up to which they are counted for a report."""
ROWS = 60
"""Of a table of numbers; the rest is what `asreader analyse` writes."""


def data(subject: Subject) -> Markup:
    """Table 1 of the paper for these data."""
    parts = {"valid": compute_statistics(subject.questions)}
    try:
        parts = {"train": _training(subject.best.settings.data), **parts}
        note = None
    except InputError as error:
        note = missing(f"{error}.")
    rows = [[name, *(cell(part) for part in parts.values())] for name, cell in TABLE_ROWS.items()]
    return join_content([table(["", *parts], rows, numbers=range(1, len(parts) + 1)), note])


def _training(settings: DataSettings) -> Statistics:
    path = Path(settings.train)
    if not settings.train or not path.exists():
        where = shorten_word(settings.train) or "nowhere"
        raise InputError(f"The training data are not where config.toml says: {where}")
    if (size := _size(path)) > COUNTED:
        raise InputError(f"The training data ({size / 1e6:,.0f} MB) are not counted here; `asreader stats` does")
    format = settings.format or None
    found = compute_statistics(cases.questions(path, split="train", format=format, skip_bad=settings.skip_bad))
    if not found.questions:
        raise InputError(f"{shorten_word(settings.train)} holds no training questions")
    return found


def _size(path: Path) -> int:
    return (
        path.stat().st_size
        if path.is_file()
        else sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    )


def drawings(subject: Subject) -> Markup:
    """All figures of `asreader analyse`, each with its numbers."""
    from asreader.charts import draw

    settings, left_out = subject.best.settings.data, list[str]()
    source = systems.SystemSource(subject.path, subject.data, subject.name)
    format = settings.format or None
    found = figures(
        systems.load_systems([source], split="valid", format=format, skip_bad=settings.skip_bad), left_out.append
    )
    shown = []
    for figure in found:
        drawn = [draw.svg(replace(figure, plots=(plot,))) for plot in figure.plots]
        shown.append(_figure(figure, [embed_svg(one, _alternative(figure)) for one in drawn]))
    absent = (
        folded("figures left out", element("ul", *(element("li", line) for line in left_out))) if left_out else None
    )
    return join_content([element("div", *shown, class_="figures"), absent])


def _alternative(figure: Figure) -> str:
    return f"{figure.title}. The numbers are in the table below."


def _figure(figure: Figure, drawn: Sequence[Markup]) -> Markup:
    """A figure with its caption; several drawings stand side by side where there is room."""
    title, caption = element("h3", figure.title), element("figcaption", figure.caption)
    if not drawn:
        return element("figure", title, caption, _numbers(figure.table), class_="wide")
    images = drawn[0] if len(drawn) == 1 else element("div", *drawn, class_="figures")
    wide = "wide" if len(drawn) > 1 else None
    return element("figure", title, images, caption, folded("the numbers", _numbers(figure.table)), class_=wide)


def _numbers(numbers: Table) -> Markup:
    """A figure's table; a first column that says the same everywhere is left out."""
    start = 1 if len(set(numbers.column(numbers.header[0]))) == 1 < len(numbers.header) else 0
    header = numbers.header[start:]
    rows = [[_shown(cell) for cell in row[start:]] for row in numbers.rows[:ROWS]]
    right = [place for place, name in enumerate(header) if place and _numeric(numbers.column(name))]
    more = len(numbers.rows) - len(rows)
    rest = element("p", f"and {more:,} rows that `asreader analyse` writes", class_="quiet") if more else None
    return join_content([table(header, rows, numbers=right), rest])


def _numeric(cells: Sequence[Cell]) -> bool:
    return all(not isinstance(cell, str) for cell in cells)


def _shown(cell: Cell) -> Markup:
    if isinstance(cell, str):
        return isolate_word(flatten_text(cell, 60))
    return isolate_word("" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else f"{cell:,}")


def examples(subject: Subject) -> Markup:
    """Questions with where the best run looked."""
    if not subject.answered:
        raise InputError("without predictions/valid.jsonl nobody knows what was right")
    reader = Reader.load(subject.best.folder, "cpu")
    known = cases.paired(subject.questions, predictions.read_predictions(Run(subject.best.folder).predictions("valid")))
    parts = [element("p", "Press j and k to go from one to the next.", class_="quiet")]
    for kind, title, chosen in _kinds(known):
        body = gallery.entries(reader, chosen, key=kind, heading="h4")
        parts.append(join_content([element("h3", title), body if chosen else missing("There is none.")]))
    return join_content(parts)


def _kinds(known: Sequence[Case]) -> Iterator[tuple[str, str, list[Case]]]:
    """No question twice."""
    used: set[str] = set()
    for show, title in (
        (Show.surprising, "The right answer got least"),
        (Show.wrong, "Wrong and sure of it"),
        (Show.right, "Right and sure of it"),
    ):
        free = [case for case in known if case.example.id not in used]
        chosen = choose(free, Wish(show, top=SHOWN))
        used |= {case.example.id for case in chosen}
        yield show.value, title, chosen
