"""rows of a Table -> marks in a pair of matplotlib's axes: curves, points, bars, outlines, squares.

Colours are those of Okabe and Ito, which colour-blind people tell apart; markers, lines and hatches differ too, so that
nothing is lost in grey.
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

from asreader.charts.catalogue import Plot, PlotAxis, PlotShape
from asreader.evaluation.breakdowns.breakdown_table import Cell, Table, plain

FONT = "DejaVu Sans"
"""Comes with matplotlib, so that pictures are the same everywhere."""
MAX_NUMBERED_RUNS = 10
"""Runs up to which the squares of a matrix bear their numbers."""
MAX_NAME_LENGTH = 40
"""Characters of a name in a picture."""
ROOM, ROOM_SMALL = 56, 22
"""Characters under the x axis."""
BREADTH = 0.78
"""Of all bars over one name."""
INK, QUIET, RULE, FAINT = "#1a1a1a", "#6b6b6b", "#e3e3e3", "#c4c4c4"


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """How one system is drawn, in every figure."""

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
_DOTS = (0, (1, 2))
_GAP = (float("nan"), float("nan"))


@dataclass(frozen=True, slots=True)
class Series:
    """What one system's marks look like, and which of how many neighbours over the same name they are."""

    label: str
    look: SeriesStyle
    place: int = 0
    neighbours: int = 1

    @property
    def shift(self) -> float:
        """From -0.5 to 0.5: where it stands among its neighbours."""
        return (self.place + 0.5) / self.neighbours - 0.5


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes and the names along its x axis, if there are any."""

    axes: Axes
    plot: Plot
    groups: tuple[Cell, ...]
    marker: float

    @property
    def ordered(self) -> bool:
        """Whether the names along the x axis are numbers, through which a line makes sense."""
        return all(isinstance(group, int) for group in self.groups)

    def places(self, rows: Table) -> list[float]:
        """Where the rows stand along the x axis."""
        return [float(self.groups.index(group)) for group in rows.column(self.plot.x.column)]

    def paint(self, rows: Table, mark: Series) -> None:
        """Draw the rows of one system."""
        _PAINTERS[self.plot.shape](self, rows, mark)

    def paint_behind(self, tables: Sequence[Table]) -> None:
        """All systems as thin grey lines, drawn as one line with gaps."""
        ends = [end for rows in tables for end in (*_outline(self, rows), _GAP)]
        self.axes.plot(*zip(*ends, strict=True), color=FAINT, linewidth=0.6, zorder=1)


def prepare_panel(axes: Axes, plot: Plot, table: Table, small: bool = False, shared: bool = False) -> Panel:
    """Axes with what they have before anything is drawn; `shared` ones have the ticks of those they share with."""
    groups = _groups(plot, table)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    if groups:
        axes.tick_params(axis="x", length=0)
    if not shared:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(nbins=5 if small else 6, steps=[1, 2, 2.5, 5, 10]))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    if groups and (not shared or has_slanted_names(plot, table)):  # a slant is not shared
        _name_groups(axes, plot, table, ROOM_SMALL if small else ROOM)
    if plot.diagonal:
        axes.plot((0, 100), (0, 100), color=QUIET, linewidth=0.8, linestyle=_DOTS, zorder=1)
        axes.set(xlim=(-3, 103), ylim=(-3, 103), aspect="auto" if small else "equal")
    return Panel(axes, plot, groups, marker=2.5 if small else 4.0)


def _groups(plot: Plot, table: Table) -> tuple[Cell, ...]:
    """The names along the x axis, where it has any."""
    named = plot.shape in (PlotShape.POINTS, PlotShape.BARS)
    return tuple(dict.fromkeys(table.column(plot.x.column))) if named else ()


def has_slanted_names(plot: Plot, table: Table, room: int = ROOM_SMALL) -> bool:
    """Whether the names along the x axis are words that have no room side by side."""
    groups = _groups(plot, table)
    return any(isinstance(group, str) for group in groups) and sum(len(str(group)) + 1 for group in groups) > room


def _name_groups(axes: Axes, plot: Plot, table: Table, room: int) -> None:
    """Names under the x axis: of numbers only as many as there is room for, of words all, aslant if need be."""
    labels = [shorten_label(str(group)) for group in _groups(plot, table)]
    words = any(isinstance(group, str) for group in _groups(plot, table))
    step = 1 if words else -(-sum(len(name) + 1 for name in labels) // room)
    turned: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(
        range(0, len(labels), step), labels[::step], **(turned if has_slanted_names(plot, table, room) else {})
    )
    axes.set_xlim(-0.6, len(labels) - 0.4)


def _curve(panel: Panel, rows: Table, mark: Series) -> None:
    plot, look = panel.plot, mark.look
    x, y = _values(rows, plot.x), _values(rows, plot.y)
    if plot.interval:
        low, high = (_values(rows, PlotAxis(column, "", plot.y.percent)) for column in plot.interval)
        panel.axes.fill_between(x, low, high, color=look.colour, alpha=0.16, linewidth=0, zorder=1)
    panel.axes.plot(
        x, y, color=look.colour, marker=look.marker, linestyle=look.line, label=mark.label, markersize=panel.marker,
        markevery=max(1, round(len(x) / 10)), linewidth=1.3, zorder=3,
    )  # fmt: skip


def _points(panel: Panel, rows: Table, mark: Series) -> None:
    plot, look = panel.plot, mark.look
    spread = min(0.5, 0.13 * mark.neighbours)
    x = [at + spread * mark.shift for at in panel.places(rows)]
    if plot.interval:
        low, high = (_values(rows, PlotAxis(column, "", plot.y.percent)) for column in plot.interval)
        panel.axes.vlines(x, low, high, color=look.colour, linewidth=1.1, alpha=0.8, zorder=2)
    panel.axes.plot(
        x, _values(rows, plot.y), color=look.colour, marker=look.marker, markersize=panel.marker + 0.5, linewidth=0.9,
        linestyle=look.line if panel.ordered else "none", label=mark.label, zorder=3,
    )  # fmt: skip


def _bars(panel: Panel, rows: Table, mark: Series) -> None:
    look = mark.look
    x = [at + BREADTH * mark.shift for at in panel.places(rows)]
    panel.axes.bar(
        x, _values(rows, panel.plot.y), BREADTH / mark.neighbours, label=mark.label, edgecolor=look.colour,
        color=_tint(look.colour) if look.hatch else look.colour, hatch=look.hatch, linewidth=0.7, zorder=2,
    )  # fmt: skip


def _histogram(panel: Panel, rows: Table, mark: Series) -> None:
    axes, look = panel.axes, mark.look
    edges, shares = _edges(_values(rows, panel.plot.x)), _values(rows, panel.plot.y)
    if mark.neighbours == 1:
        axes.stairs(shares, edges, color=look.colour, fill=True, alpha=0.25, linewidth=0, zorder=2)
    axes.stairs(shares, edges, color=look.colour, linestyle=look.line, linewidth=1.3, label=mark.label, zorder=3)
    if mark.place == 0 and rows.column(panel.plot.until)[-1] is None:
        axes.axvline(edges[-2], color=QUIET, linewidth=0.6, linestyle=_DOTS, zorder=1)
        axes.annotate(f"≥ {edges[-2]:,.6g} ", (edges[-2], 1), xycoords=("data", "axes fraction"), ha="right", va="top",
                      size=7, color=QUIET)  # fmt: skip


def _edges(starts: list[float]) -> list[float]:
    """The edges of bins of equal width; the last is drawn as wide as the others, however far it reaches."""
    return [*starts, 2 * starts[-1] - starts[-2] if len(starts) > 1 else starts[-1] + 1]


def _outline(panel: Panel, rows: Table) -> Iterator[tuple[float, float]]:
    """The ends of the strokes of one thin line that stands for a system."""
    x, y = _values(rows, panel.plot.x) if not panel.groups else panel.places(rows), _values(rows, panel.plot.y)
    if panel.plot.shape is PlotShape.HISTOGRAM:
        edges = _edges(x)
        for start, stop, share in zip(edges, edges[1:], y, strict=False):
            yield from ((start, share), (stop, share))
    elif panel.groups and not panel.ordered:
        for at, height in zip(x, y, strict=True):
            yield from ((at - 0.2, height), (at + 0.2, height), _GAP)
    else:
        yield from zip(x, y, strict=True)


def _matrix(panel: Panel, rows: Table, mark: Series) -> None:
    """Squares shaded by values off the diagonal, which says nothing; a few bear their numbers, many have a scale."""
    axes, plot = panel.axes, panel.plot
    assert plot.shade is not None
    names = tuple(dict.fromkeys(rows.column(plot.x.column)))
    values = np.array(_values(rows, plot.shade)).reshape(len(names), len(names))
    np.fill_diagonal(values, np.nan)
    middle, span = (np.nanmax(values) + np.nanmin(values)) / 2, np.nanmax(values) - np.nanmin(values)
    reach = max(5.0, span / 2)  # a difference of a point or two shall not look like more
    mesh = axes.pcolormesh(values, cmap="Blues", vmin=middle - reach, vmax=middle + reach)
    mesh.set_edgecolor("white")
    places, labels = np.arange(len(names)) + 0.5, [shorten_label(str(name), 16) for name in names]
    axes.set_xticks(places, labels, rotation=90 if max(map(len, labels)) > 3 else 0)
    axes.set_yticks(places, labels)
    axes.tick_params(length=0, labelsize=8 if len(names) <= MAX_NUMBERED_RUNS else 6)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    if len(names) > MAX_NUMBERED_RUNS:
        bar = axes.figure.colorbar(mesh, ax=axes, shrink=0.7, aspect=18, label=plot.shade.label)
        bar.outline.set_visible(False)
        if bar.solids is not None:
            bar.solids.set_rasterized(False)
        return
    for row, column in zip(*np.nonzero(~np.isnan(values)), strict=True):
        value, ink = values[row, column], "white" if values[row, column] > middle + 0.1 * reach else INK
        axes.text(column + 0.5, row + 0.5, f"{value:.1f}", ha="center", va="center", size=7, color=ink)


_PAINTERS: Mapping[PlotShape, Callable[[Panel, Table, Series], None]] = {
    PlotShape.CURVE: _curve,
    PlotShape.POINTS: _points,
    PlotShape.BARS: _bars,
    PlotShape.HISTOGRAM: _histogram,
    PlotShape.MATRIX: _matrix,
}


def _values(rows: Table, axis: PlotAxis) -> list[float]:
    """A column as numbers, shares in per cent; a missing one is a gap."""
    return [float("nan" if cell is None else cell) * (100 if axis.percent else 1) for cell in rows.column(axis.column)]


def _tint(colour: str) -> str:
    """A light shade, on which a hatch of the colour itself is seen."""
    return "#" + "".join(f"{round(255 - 0.25 * (255 - int(colour[at : at + 2], 16))):02x}" for at in (1, 3, 5))


def shorten_label(text: str, longest: int = MAX_NAME_LENGTH) -> str:
    """A name of bearable length in letters that the font has."""
    shown = plain(text, longest)
    shown = shown if len(shown) <= longest else shown[: longest - 1] + "…"
    return "".join(letter if ord(letter) in _letters() else "\N{REPLACEMENT CHARACTER}" for letter in shown)


@cache
def _letters() -> frozenset[int]:
    return frozenset(font_manager.get_font(font_manager.findfont(FONT)).get_charmap())
