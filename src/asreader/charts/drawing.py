"""Figure -> Picture: PNG and SVG in print quality, the same on every machine.

Text is drawn verbatim: no character of a name is interpreted as markup.
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

from asreader.charts.figure_spec import Figure, PlotShape
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
"""Number of series in one pair of axes; more series are drawn as small multiples."""
COLUMNS = 4
"""Number of columns of small multiples."""

# Lengths in inches.
WIDTH = 4.6  # of a picture with one pair of axes
WIDE = 7.2  # of a picture with several
HEIGHT = 3.0
SQUARE = 3.7  # width and height of a square picture
SMALL = 1.45  # height of a small multiple
TOP_MARGIN = 0.48  # around small multiples
BOTTOM_MARGIN = 0.46
LEFT_MARGIN = 0.62
SLANTED_MARGIN = 0.4  # added to the bottom margin for slanted names

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
    "axes.titley": 1.0,  # automatic placement of titles takes a third of the time
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
    """A figure as SVG and as PNG."""

    svg: str
    png: bytes


def render_picture(figure: Figure) -> Picture:
    """The figure as SVG and PNG; it is drawn once."""
    canvas = draw_figure(figure)
    return Picture(_save_svg(canvas, figure.title), _save_png(canvas, DPI))


def render_png(figure: Figure, dpi: int = DPI) -> bytes:
    """The figure as PNG."""
    return _save_png(draw_figure(figure), dpi)


def render_svg(figure: Figure) -> str:
    """The figure as SVG with text as text; the output is deterministic."""
    return _save_svg(draw_figure(figure), figure.title)


def _save_png(canvas: Canvas, dpi: int) -> bytes:
    FigureCanvasAgg(canvas)
    return _save_canvas(canvas, "png", {"Software": None}, dpi)


def _save_svg(canvas: Canvas, title: str) -> str:
    FigureCanvasSVG(canvas)
    return _save_canvas(
        canvas, "svg", {"Date": None, "Creator": "asreader", "Title": shorten_label(title)}, DPI
    ).decode()


def _save_canvas(canvas: Canvas, format: str, metadata: dict[str, str | None], dpi: int) -> bytes:
    buffer = io.BytesIO()
    with _use_style():
        canvas.savefig(buffer, format=format, metadata=metadata, dpi=dpi)
    return buffer.getvalue()


@contextmanager
def _use_style() -> Iterator[None]:
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # ignore the user's matplotlibrc
        matplotlib.rcParams.update(_STYLE)  # type: ignore[arg-type]
        yield


def draw_figure(figure: Figure) -> Canvas:
    """The figure as a matplotlib figure; ValueError if it has no plots."""
    if not figure.plots:
        raise ValueError(f"{figure.name} is a table; there is nothing to draw")
    drawn = dict.fromkeys(str(name) for name in figure.table.column(figure.table.header[0]))
    order = figure.order or tuple(drawn)
    names = [name for name in order if name in drawn]
    with _use_style():
        if figure.plots[0].shape is PlotShape.MATRIX:
            return _draw_matrices(figure, names)
        if len(names) > MAX_OVERLAID:
            return _draw_small_multiples(figure, names)
        return _draw_overlaid(figure, {name: SERIES_STYLES[order.index(name) % len(SERIES_STYLES)] for name in names})


def _draw_overlaid(figure: Figure, styles: Mapping[str, SeriesStyle]) -> Canvas:
    """All series in the same axes, plots side by side, one legend above."""
    plots = figure.plots
    size = (WIDE, HEIGHT) if len(plots) > 1 else (SQUARE, SQUARE) if plots[0].diagonal else (WIDTH, HEIGHT)
    canvas = Canvas(figsize=size, layout="constrained")
    shares_y = len({plot.y.label for plot in plots}) == 1
    for plot, axes in zip(plots, canvas.subplots(1, len(plots), squeeze=False, sharey=shares_y)[0], strict=True):
        panel = prepare_panel(axes, plot, figure.table)
        for index, (name, style) in enumerate(styles.items()):
            series = Series(shorten_label(name), style, index, len(styles))
            panel.draw_series(_select_rows(figure.table, name), series)
        axes.set(title=plot.title, xlabel=plot.x.label, ylabel=plot.y.label)
    handles, labels = canvas.axes[0].get_legend_handles_labels()
    canvas.legend(
        handles, labels, loc="outside upper left", ncols=_count_legend_columns(labels, size[0]), borderpad=0.1
    )
    return canvas


def _count_legend_columns(labels: Sequence[str], width: float) -> int:
    """Number of legend columns that fit the width, with rows of about equal length."""
    fitting = max(1, int(width / (0.55 + 0.068 * max(map(len, labels)))))
    return -(-len(labels) // -(-len(labels) // fitting))


def _draw_small_multiples(figure: Figure, names: Sequence[str]) -> Canvas:
    """Small axes for each series with all series in grey behind it; each plot starts a new row.

    The layout is computed here, because the constrained layout of matplotlib takes seconds for so many axes.
    """
    columns = min(COLUMNS, math.ceil(math.sqrt(len(names))))
    rows = -(-len(names) // columns)
    below = BOTTOM_MARGIN + (
        SLANTED_MARGIN if any(has_slanted_names(plot, figure.table) for plot in figure.plots) else 0
    )
    block = rows * SMALL + TOP_MARGIN + below
    height = block * len(figure.plots)
    canvas = Canvas(figsize=(WIDE, height))
    for plot_index, plot in enumerate(figure.plots):
        top = height - plot_index * block
        cells = canvas.add_gridspec(
            rows,
            columns,
            left=LEFT_MARGIN / WIDE,
            right=1 - 0.12 / WIDE,
            top=(top - TOP_MARGIN) / height,
            bottom=(top - block + below) / height,
            wspace=0.12,
            hspace=0.36,
        )
        grid = list(cells.subplots(sharex=True, sharey=True, squeeze=False).flat)
        for index, (name, axes) in enumerate(zip(names, grid, strict=False)):
            panel = prepare_panel(axes, plot, figure.table, small=True, shared=index > 0)
            panel.draw_background([_select_rows(figure.table, other) for other in names])
            panel.draw_series(_select_rows(figure.table, name), Series("", SERIES_STYLES[0]))
            axes.set_title(shorten_label(name, 24), size=7.5)
            axes.tick_params(axis="x", labelbottom=index + columns >= len(names))
        for axes in grid[len(names) :]:
            axes.set_axis_off()
        canvas.text(0.5, (top - block + 0.13) / height, plot.x.label, ha="center", va="center")
        canvas.text(0.14 / WIDE, (top - block / 2) / height, plot.y.label, ha="center", va="center", rotation=90)
        canvas.text(LEFT_MARGIN / WIDE, (top - 0.14) / height, plot.title, va="center")
    return canvas


def _draw_matrices(figure: Figure, names: Sequence[str]) -> Canvas:
    """A matrix for each system."""
    (plot,) = figure.plots
    assert plot.value is not None
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    runs = max(len(set(_select_rows(figure.table, name).column(plot.x.column))) for name in names)
    side = max(SQUARE, 1.2 + 0.14 * runs)
    canvas = Canvas(figsize=(side * columns, side * rows), layout="constrained")
    grid = list(canvas.subplots(rows, columns, squeeze=False).flat)
    for name, axes in zip(names, grid, strict=False):
        prepare_panel(axes, plot, figure.table).draw_series(
            _select_rows(figure.table, name), Series("", SERIES_STYLES[0])
        )
        axes.set_title(f"{shorten_label(name)}: {plot.value.label}")
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    return canvas


def _select_rows(table: Table, name: str) -> Table:
    return table.select_rows(table.header[0], name)
