"""rows of a Table -> marks in matplotlib axes: curves, points, bars, outlines, squares.

The colours are the colour-blind safe palette of Okabe and Ito; markers, line styles and hatches differ too, so that
figures can be read in greyscale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from asreader.charts.figure_spec import Plot, PlotAxis, PlotShape
from asreader.evaluation.breakdowns.breakdown_table import Cell, Table, flatten_text

FONT = "DejaVu Sans"
"""Bundled with matplotlib, so that pictures are the same on every machine."""
MAX_NUMBERED_RUNS = 10
"""Number of runs up to which the cells of a matrix show their values."""
MAX_NAME_LENGTH = 40
"""Number of characters of a name in a picture."""
AXIS_CHARACTERS = 56
SMALL_AXIS_CHARACTERS = 22
"""Number of characters that fit below the x axis, and below that of a small multiple."""
GROUP_WIDTH = 0.78
"""Total width of the bars of one group; groups are 1 apart."""
INK = "#1a1a1a"
QUIET = "#6b6b6b"
RULE = "#e3e3e3"
FAINT = "#c4c4c4"


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """The style of one series, the same in every figure."""

    colour: str
    marker: str
    line: str | tuple[int, tuple[float, ...]]
    hatch: str


SERIES_STYLES = (
    SeriesStyle("#0072B2", "o", "-", ""),
    SeriesStyle("#D55E00", "s", (0, (5, 1.6)), "////"),
    SeriesStyle("#009E73", "^", (0, (1.2, 1.2)), "...."),
    SeriesStyle("#CC79A7", "D", (0, (5, 1.4, 1.2, 1.4)), "\\\\\\\\"),
    SeriesStyle("#56B4E9", "v", (0, (2.6, 1.2)), "xxxx"),
)
_DOTTED = (0, (1, 2))
_BREAK = (float("nan"), float("nan"))


@dataclass(frozen=True, slots=True)
class Series:
    """Label and style of one series, its index and the number of series in the same axes."""

    label: str
    style: SeriesStyle
    index: int = 0
    count: int = 1

    @property
    def offset(self) -> float:
        """Position among the series of a group, from -0.5 to 0.5."""
        return (self.index + 0.5) / self.count - 0.5


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes and the groups along its x axis, if it has any."""

    axes: Axes
    plot: Plot
    groups: tuple[Cell, ...]
    marker_size: float

    @property
    def has_numeric_groups(self) -> bool:
        """Whether the groups are numbers, so that they may be connected by a line."""
        return all(isinstance(group, int) for group in self.groups)

    def locate_groups(self, rows: Table) -> list[float]:
        """The x coordinates of the groups of the rows."""
        return [float(self.groups.index(group)) for group in rows.column(self.plot.x.column)]

    def draw_series(self, rows: Table, series: Series) -> None:
        """Draw the rows of one series."""
        _SHAPE_DRAWERS[self.plot.shape](self, rows, series)

    def draw_background(self, tables: Sequence[Table]) -> None:
        """Draw all series as thin grey lines; one line with breaks is faster than many lines."""
        points = [point for rows in tables for point in (*_trace_outline(self, rows), _BREAK)]
        self.axes.plot(*zip(*points, strict=True), color=FAINT, linewidth=0.6, zorder=1)


def prepare_panel(axes: Axes, plot: Plot, table: Table, small: bool = False, shared: bool = False) -> Panel:
    """Set up grid, ticks and groups of the axes; `shared` axes take the ticks of the axes they share with."""
    groups = _list_groups(plot, table)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    if groups:
        axes.tick_params(axis="x", length=0)
    if not shared:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(nbins=5 if small else 6, steps=[1, 2, 2.5, 5, 10]))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    if groups and (not shared or has_slanted_names(plot, table)):  # rotation is not shared
        _label_groups(axes, plot, table, SMALL_AXIS_CHARACTERS if small else AXIS_CHARACTERS)
    if plot.diagonal:
        axes.plot((0, 100), (0, 100), color=QUIET, linewidth=0.8, linestyle=_DOTTED, zorder=1)
        axes.set(xlim=(-3, 103), ylim=(-3, 103), aspect="auto" if small else "equal")
    return Panel(axes, plot, groups, marker_size=2.5 if small else 4.0)


def _list_groups(plot: Plot, table: Table) -> tuple[Cell, ...]:
    """The groups along the x axis; none if it is continuous."""
    is_grouped = plot.shape in (PlotShape.POINTS, PlotShape.BARS)
    return tuple(dict.fromkeys(table.column(plot.x.column))) if is_grouped else ()


def has_slanted_names(plot: Plot, table: Table, max_characters: int = SMALL_AXIS_CHARACTERS) -> bool:
    """Whether the groups are words that do not fit side by side below the x axis."""
    groups = _list_groups(plot, table)
    return (
        any(isinstance(group, str) for group in groups)
        and sum(len(str(group)) + 1 for group in groups) > max_characters
    )


def _label_groups(axes: Axes, plot: Plot, table: Table, max_characters: int) -> None:
    """Label the groups: as many numbers as fit, or all words, rotated if they do not fit."""
    labels = [shorten_label(str(group)) for group in _list_groups(plot, table)]
    has_words = any(isinstance(group, str) for group in _list_groups(plot, table))
    step = 1 if has_words else -(-sum(len(name) + 1 for name in labels) // max_characters)
    rotated: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(
        range(0, len(labels), step),
        labels[::step],
        **(rotated if has_slanted_names(plot, table, max_characters) else {}),
    )
    axes.set_xlim(-0.6, len(labels) - 0.4)


def _draw_curve(panel: Panel, rows: Table, series: Series) -> None:
    plot, style = panel.plot, series.style
    x, y = _list_values(rows, plot.x), _list_values(rows, plot.y)
    if plot.interval:
        low, high = (_list_values(rows, PlotAxis(column, "", plot.y.percent)) for column in plot.interval)
        panel.axes.fill_between(x, low, high, color=style.colour, alpha=0.16, linewidth=0, zorder=1)
    panel.axes.plot(
        x,
        y,
        color=style.colour,
        marker=style.marker,
        linestyle=style.line,
        label=series.label,
        markersize=panel.marker_size,
        markevery=max(1, round(len(x) / 10)),
        linewidth=1.3,
        zorder=3,
    )


def _draw_points(panel: Panel, rows: Table, series: Series) -> None:
    plot, style = panel.plot, series.style
    width = min(0.5, 0.13 * series.count)
    x = [x + width * series.offset for x in panel.locate_groups(rows)]
    if plot.interval:
        low, high = (_list_values(rows, PlotAxis(column, "", plot.y.percent)) for column in plot.interval)
        panel.axes.vlines(x, low, high, color=style.colour, linewidth=1.1, alpha=0.8, zorder=2)
    panel.axes.plot(
        x,
        _list_values(rows, plot.y),
        color=style.colour,
        marker=style.marker,
        markersize=panel.marker_size + 0.5,
        linewidth=0.9,
        linestyle=style.line if panel.has_numeric_groups else "none",
        label=series.label,
        zorder=3,
    )


def _draw_bars(panel: Panel, rows: Table, series: Series) -> None:
    style = series.style
    x = [x + GROUP_WIDTH * series.offset for x in panel.locate_groups(rows)]
    panel.axes.bar(
        x,
        _list_values(rows, panel.plot.y),
        GROUP_WIDTH / series.count,
        label=series.label,
        edgecolor=style.colour,
        color=_lighten_colour(style.colour) if style.hatch else style.colour,
        hatch=style.hatch,
        linewidth=0.7,
        zorder=2,
    )


def _draw_histogram(panel: Panel, rows: Table, series: Series) -> None:
    axes, style = panel.axes, series.style
    edges = _compute_edges(_list_values(rows, panel.plot.x))
    heights = _list_values(rows, panel.plot.y)
    if series.count == 1:
        axes.stairs(heights, edges, color=style.colour, fill=True, alpha=0.25, linewidth=0, zorder=2)
    axes.stairs(heights, edges, color=style.colour, linestyle=style.line, linewidth=1.3, label=series.label, zorder=3)
    if series.index == 0 and rows.column(panel.plot.end_column)[-1] is None:
        axes.axvline(edges[-2], color=QUIET, linewidth=0.6, linestyle=_DOTTED, zorder=1)
        axes.annotate(
            f"≥ {edges[-2]:,.6g} ",
            (edges[-2], 1),
            xycoords=("data", "axes fraction"),
            ha="right",
            va="top",
            size=7,
            color=QUIET,
        )


def _compute_edges(starts: list[float]) -> list[float]:
    """The edges of bins of equal width; the last bin is drawn as wide as the others even if it is open."""
    return [*starts, 2 * starts[-1] - starts[-2] if len(starts) > 1 else starts[-1] + 1]


def _trace_outline(panel: Panel, rows: Table) -> Iterator[tuple[float, float]]:
    """The points of a thin line that represents one series."""
    x = panel.locate_groups(rows) if panel.groups else _list_values(rows, panel.plot.x)
    y = _list_values(rows, panel.plot.y)
    if panel.plot.shape is PlotShape.HISTOGRAM:
        edges = _compute_edges(x)
        for start, stop, height in zip(edges, edges[1:], y, strict=False):
            yield from ((start, height), (stop, height))
    elif panel.groups and not panel.has_numeric_groups:
        for centre, height in zip(x, y, strict=True):
            yield from ((centre - 0.2, height), (centre + 0.2, height), _BREAK)
    else:
        yield from zip(x, y, strict=True)


def _draw_matrix(panel: Panel, rows: Table, series: Series) -> None:
    """Squares shaded by value, without the diagonal; few squares show their values, many have a colour bar."""
    axes, plot = panel.axes, panel.plot
    assert plot.value is not None
    names = tuple(dict.fromkeys(rows.column(plot.x.column)))
    values = np.array(_list_values(rows, plot.value)).reshape(len(names), len(names))
    np.fill_diagonal(values, np.nan)
    low, high = np.nanmin(values), np.nanmax(values)
    middle = (high + low) / 2
    half_range = max(5.0, (high - low) / 2)  # small differences must not look large
    mesh = axes.pcolormesh(values, cmap="Blues", vmin=middle - half_range, vmax=middle + half_range)
    mesh.set_edgecolor("white")
    centres = np.arange(len(names)) + 0.5
    labels = [shorten_label(str(name), 16) for name in names]
    axes.set_xticks(centres, labels, rotation=90 if max(map(len, labels)) > 3 else 0)
    axes.set_yticks(centres, labels)
    axes.tick_params(length=0, labelsize=8 if len(names) <= MAX_NUMBERED_RUNS else 6)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    if len(names) > MAX_NUMBERED_RUNS:
        bar = axes.figure.colorbar(mesh, ax=axes, shrink=0.7, aspect=18, label=plot.value.label)
        bar.outline.set_visible(False)
        if bar.solids is not None:
            bar.solids.set_rasterized(False)
        return
    for row, column in zip(*np.nonzero(~np.isnan(values)), strict=True):
        value = values[row, column]
        ink = "white" if value > middle + 0.1 * half_range else INK
        axes.text(column + 0.5, row + 0.5, f"{value:.1f}", ha="center", va="center", size=7, color=ink)


_SHAPE_DRAWERS: Mapping[PlotShape, Callable[[Panel, Table, Series], None]] = {
    PlotShape.CURVE: _draw_curve,
    PlotShape.POINTS: _draw_points,
    PlotShape.BARS: _draw_bars,
    PlotShape.HISTOGRAM: _draw_histogram,
    PlotShape.MATRIX: _draw_matrix,
}


def _list_values(rows: Table, axis: PlotAxis) -> list[float]:
    """A column as numbers, fractions in per cent; missing values are NaN."""
    return [float("nan" if cell is None else cell) * (100 if axis.percent else 1) for cell in rows.column(axis.column)]


def _lighten_colour(colour: str) -> str:
    """A lighter colour, on which a hatch in the original colour is visible."""
    return "#" + "".join(f"{round(255 - 0.25 * (255 - int(colour[start : start + 2], 16))):02x}" for start in (1, 3, 5))


def shorten_label(text: str, max_length: int = MAX_NAME_LENGTH) -> str:
    """A name of limited length; characters that the font lacks are replaced."""
    short = flatten_text(text, max_length)
    short = short if len(short) <= max_length else short[: max_length - 1] + "…"
    return "".join(letter if ord(letter) in _list_glyphs() else "\N{REPLACEMENT CHARACTER}" for letter in short)


@cache
def _list_glyphs() -> frozenset[int]:
    return frozenset(font_manager.get_font(font_manager.findfont(FONT)).get_charmap())
