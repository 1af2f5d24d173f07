"""Specification of a figure: its table, plots and caption, independent of how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from asreader.evaluation.breakdowns.breakdown_table import Table


class PlotShape(StrEnum):
    """The kinds of plots."""

    CURVE = "curve"  # line with markers, interval as a band
    POINTS = "points"  # marker with an error bar for each group
    BARS = "bars"  # bar for each group
    HISTOGRAM = "histogram"  # outline of a distribution
    MATRIX = "matrix"  # shaded square for each pair


@dataclass(frozen=True, slots=True)
class PlotAxis:
    """A column of the table and the label of its axis; `percent` columns are fractions, shown in per cent."""

    column: str
    label: str
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """One pair of axes. `end_column` has the ends of histogram bins, `value` the cells of a matrix."""

    shape: PlotShape
    x: PlotAxis
    y: PlotAxis
    title: str = ""
    interval: tuple[str, str] | None = None
    end_column: str = ""
    value: PlotAxis | None = None
    diagonal: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A table, its plots and a caption; a figure without plots is only a table.

    The first column of the table names the series. `order` lists all series, so that each has the same style in every
    figure.
    """

    name: str
    title: str
    caption: str
    table: Table
    plots: tuple[Plot, ...] = ()
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingFigure:
    """A figure that the systems and their data do not allow, and the reason."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: left out, because {self.reason}"
