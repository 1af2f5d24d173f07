"""ReportData -> figures section: the figures of `asreader analyse` with their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from asreader.charts.catalogue import build_figures
from asreader.charts.figure_spec import Figure
from asreader.evaluation.breakdowns import systems
from asreader.evaluation.breakdowns.breakdown_table import Cell, Table, flatten_text
from asreader.pages.page import build_details, build_table
from asreader.pages.report_data import ReportData
from asreader.system.markup import Markup, element, embed_svg, isolate_word, join_content

MAX_ROWS = 60
"""Number of rows of a table that are shown."""


def build_analysis_figures(report: ReportData) -> Markup:
    """All figures that the runs and their validation data allow; the others are listed with the reason."""
    from asreader.charts import drawing

    settings = report.best_run.settings.data
    source = systems.SystemSource(report.path, report.data_path, report.name)
    loaded = systems.load_systems([source], split="valid", format=settings.format or None, skip_bad=settings.skip_bad)
    left_out: list[str] = []
    figures = []
    for figure in build_figures(loaded, left_out.append):
        alternative = f"{figure.title}. The numbers are in the table below."
        drawn = [drawing.render_svg(replace(figure, plots=(plot,))) for plot in figure.plots]
        figures.append(_build_figure(figure, [embed_svg(svg, alternative) for svg in drawn]))
    note = None
    if left_out:
        note = build_details("figures left out", element("ul", *(element("li", line) for line in left_out)))
    return join_content([element("div", *figures, class_="figures"), note])


def _build_figure(figure: Figure, images: Sequence[Markup]) -> Markup:
    """A figure with its caption and numbers; several images are placed side by side if the page is wide enough."""
    title = element("h3", figure.title)
    caption = element("figcaption", figure.caption)
    numbers = _build_number_table(figure.table)
    if not images:
        return element("figure", title, caption, numbers, class_="wide")
    is_wide = len(images) > 1
    body = element("div", *images, class_="figures") if is_wide else images[0]
    details = build_details("the numbers", numbers)
    return element("figure", title, body, caption, details, class_="wide" if is_wide else None)


def _build_number_table(table: Table) -> Markup:
    """The table of a figure; a constant first column is left out."""
    start = 1 if len(set(table.column(table.header[0]))) == 1 < len(table.header) else 0
    header = table.header[start:]
    rows = [[_format_cell(cell) for cell in row[start:]] for row in table.rows[:MAX_ROWS]]
    numbers = [index for index, name in enumerate(header) if index and _is_numeric(table.column(name))]
    omitted = len(table.rows) - len(rows)
    note = element("p", f"and {omitted:,} rows that `asreader analyse` writes", class_="quiet") if omitted else None
    return join_content([build_table(header, rows, numbers=numbers), note])


def _is_numeric(cells: Sequence[Cell]) -> bool:
    return all(not isinstance(cell, str) for cell in cells)


def _format_cell(cell: Cell) -> Markup:
    if isinstance(cell, str):
        return isolate_word(flatten_text(cell, 60))
    return isolate_word("" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else f"{cell:,}")
