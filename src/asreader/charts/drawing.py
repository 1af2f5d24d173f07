"""Figure -> picture: PNG and SVG good enough for a paper, the same on every machine.

Text is written as it is: no character of a name means anything to the drawing.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas

from asreader.charts.catalogue import Figure, PlotShape
from asreader.charts.marks import (
    FONT,
    INK,
    QUIET,
    SERIES_STYLES,
    Series,
    SeriesStyle,
    has_slanted_names,
    prepare_panel,
    shorten_label,
)
from asreader.evaluation.breakdowns.breakdown_table import Table

DPI = 200
MAX_OVERLAID = 5
"""Lines in one pair of axes; with more, each gets its own small one, the others in grey behind it."""
COLUMNS = 4
WIDTH, WIDE, HEIGHT, SQUARE, SMALL = 4.6, 7.2, 3.0, 3.7, 1.45
"""Inches: breadth of one pair of axes and of a page, height of a picture, of a square one, of a small multiple."""
ABOVE, BELOW, BESIDE, ASLANT = 0.48, 0.46, 0.62, 0.4
"""Inches around small multiples, for the words there; more below them where names stand aslant."""

_STYLE: Mapping[str, object] = {
    "font.family": [FONT],
    "font.size": 8.5,
    "text.parse_math": False,
    "text.usetex": False,
    "axes.unicode_minus": True,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # looking for a place for every title takes a third of the time
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "asreader",
    "savefig.dpi": DPI,
    "figure.dpi": 100,
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as both kinds of file."""

    svg: str
    png: bytes


def render_picture(figure: Figure) -> Picture:
    """Both kinds from one drawing, which is quicker."""
    canvas = draw_figure(figure)
    return Picture(_svg(canvas, figure.title), _png(canvas, DPI))


def render_png(figure: Figure, dpi: int = DPI) -> bytes:
    """The picture as PNG."""
    return _png(draw_figure(figure), dpi)


def render_svg(figure: Figure) -> str:
    """The picture as SVG: text is text, and the same numbers always give the same bytes."""
    return _svg(draw_figure(figure), figure.title)


def _png(canvas: Canvas, dpi: int) -> bytes:
    FigureCanvasAgg(canvas)
    return _saved(canvas, "png", {"Software": None}, dpi)


def _svg(canvas: Canvas, title: str) -> str:
    FigureCanvasSVG(canvas)
    return _saved(canvas, "svg", {"Date": None, "Creator": "asreader", "Title": shorten_label(title)}, DPI).decode()


def _saved(canvas: Canvas, kind: str, about: dict[str, str | None], dpi: int) -> bytes:
    written = io.BytesIO()
    with _style():
        canvas.savefig(written, format=kind, metadata=about, dpi=dpi)
    return written.getvalue()


@contextmanager
def _style() -> Iterator[None]:
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever a person's own settings are
        matplotlib.rcParams.update(_STYLE)  # type: ignore[arg-type]
        yield


def draw_figure(figure: Figure) -> Canvas:
    """The picture as matplotlib has it; ValueError for a figure that is a table alone."""
    if not figure.plots:
        raise ValueError(f"{figure.name} is a table; there is nothing to draw")
    drawn = dict.fromkeys(str(name) for name in figure.table.column(figure.table.header[0]))
    order = figure.order or tuple(drawn)
    names = [name for name in order if name in drawn]
    with _style():
        if figure.plots[0].shape is PlotShape.MATRIX:
            return _squares(figure, names)
        if len(names) > MAX_OVERLAID:
            return _small_multiples(figure, names)
        return _overlaid(figure, {name: SERIES_STYLES[order.index(name) % len(SERIES_STYLES)] for name in names})


def _overlaid(figure: Figure, looks: Mapping[str, SeriesStyle]) -> Canvas:
    """All lines in the same axes, plots side by side, one legend above."""
    plots = figure.plots
    size = (WIDE, HEIGHT) if len(plots) > 1 else (SQUARE, SQUARE) if plots[0].diagonal else (WIDTH, HEIGHT)
    canvas = Canvas(figsize=size, layout="constrained")
    alike = len({plot.y.label for plot in plots}) == 1
    for plot, axes in zip(plots, canvas.subplots(1, len(plots), squeeze=False, sharey=alike)[0], strict=True):
        panel = prepare_panel(axes, plot, figure.table)
        for place, (name, look) in enumerate(looks.items()):
            panel.paint(_rows(figure.table, name), Series(shorten_label(name), look, place, len(looks)))
        axes.set(title=plot.title, xlabel=plot.x.label, ylabel=plot.y.label)
    handles, labels = canvas.axes[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside upper left", ncols=_columns(labels, size[0]), borderpad=0.1)
    return canvas


def _columns(labels: Sequence[str], width: float) -> int:
    """Columns of a legend that is no wider than the picture, its rows about equally full."""
    fitting = max(1, int(width / (0.55 + 0.068 * max(map(len, labels)))))
    return -(-len(labels) // -(-len(labels) // fitting))


def _small_multiples(figure: Figure, names: Sequence[str]) -> Canvas:
    """Small axes for each line, all lines in grey behind it; each plot begins a row of its own.

    Places are computed here: matplotlib's own layout takes seconds for so many axes.
    """
    columns = min(COLUMNS, math.ceil(math.sqrt(len(names))))
    rows = -(-len(names) // columns)
    below = BELOW + (ASLANT if any(has_slanted_names(plot, figure.table) for plot in figure.plots) else 0)
    block = rows * SMALL + ABOVE + below
    height = block * len(figure.plots)
    canvas = Canvas(figsize=(WIDE, height))
    for place, plot in enumerate(figure.plots):
        top = height - place * block
        spots = canvas.add_gridspec(
            rows, columns, left=BESIDE / WIDE, right=1 - 0.12 / WIDE, top=(top - ABOVE) / height,
            bottom=(top - block + below) / height, wspace=0.12, hspace=0.36,
        )  # fmt: skip
        grid = list(spots.subplots(sharex=True, sharey=True, squeeze=False).flat)
        for number, (name, axes) in enumerate(zip(names, grid, strict=False)):
            panel = prepare_panel(axes, plot, figure.table, small=True, shared=number > 0)
            panel.paint_behind([_rows(figure.table, other) for other in names])
            panel.paint(_rows(figure.table, name), Series("", SERIES_STYLES[0]))
            axes.set_title(shorten_label(name, 24), size=7.5)
            axes.tick_params(axis="x", labelbottom=number + columns >= len(names))
        for axes in grid[len(names) :]:
            axes.set_axis_off()
        canvas.text(0.5, (top - block + 0.13) / height, plot.x.label, ha="center", va="center")
        canvas.text(0.14 / WIDE, (top - block / 2) / height, plot.y.label, ha="center", va="center", rotation=90)
        canvas.text(BESIDE / WIDE, (top - 0.14) / height, plot.title, va="center")
    return canvas


def _squares(figure: Figure, names: Sequence[str]) -> Canvas:
    """A matrix for each system."""
    (plot,) = figure.plots
    assert plot.shade is not None
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    runs = max(len(set(_rows(figure.table, name).column(plot.x.column))) for name in names)
    side = max(SQUARE, 1.2 + 0.14 * runs)
    canvas = Canvas(figsize=(side * columns, side * rows), layout="constrained")
    grid = list(canvas.subplots(rows, columns, squeeze=False).flat)
    for name, axes in zip(names, grid, strict=False):
        prepare_panel(axes, plot, figure.table).paint(_rows(figure.table, name), Series("", SERIES_STYLES[0]))
        axes.set_title(f"{shorten_label(name)}: {plot.shade.label}")
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    return canvas


def _rows(table: Table, name: str) -> Table:
    return table.where(table.header[0], name)
