"""RunRecords -> learning curve section: loss and accuracy over training steps as inline SVG of any width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from asreader.errors import InputError
from asreader.pages.run_records import RunRecord
from asreader.runs.file_names import METRICS_FILE
from asreader.runs.metrics_log import TRAIN, VALID
from asreader.system.markup import Markup, element, join_content

LEFT, RIGHT = 11, 97
"""Left and right edge of the plot area, in per cent of the width."""
TOP, BOTTOM, HEIGHT = 14, 176, 204
"""Top and bottom edge of the plot area and height of the picture, in pixels."""
MAX_POINTS = 240
"""Number of points of a curve; longer curves are thinned out."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A value at a training step."""

    step: int
    value: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a chart; the curve of the best run is thick, training curves are dashed."""

    points: tuple[CurvePoint, ...]
    is_best: bool = True
    is_training: bool = False


@dataclass(frozen=True, slots=True)
class ChartScale:
    """Steps from 0 to `last_step` and values from the first to the last tick."""

    last_step: int
    ticks: list[float]
    is_percent: bool

    def place_step(self, step: int) -> float:
        """x of a step, in per cent of the width."""
        return LEFT + (RIGHT - LEFT) * step / self.last_step

    def place_value(self, value: float) -> float:
        """y of a value, in pixels."""
        low, high = self.ticks[0], self.ticks[-1]
        return round(BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low), 1)


def build_learning_curves(records: Sequence[RunRecord]) -> Markup:
    """Charts of the loss and of the validation accuracy, as far as they were measured."""
    best = max(records, key=lambda record: record.accuracy)
    losses = [Curve(_select_points(record, VALID, "loss"), record is best) for record in records]
    losses.append(Curve(_select_points(best, TRAIN, "loss"), is_training=True))
    accuracies = [Curve(_select_points(record, VALID, "accuracy"), record is best) for record in records]
    legend = "" if len(records) == 1 else f"; thick: {best.name}, the best of {len(records)} runs"
    charts = [
        draw_chart("Loss", f"Dashed: training; solid: validation{legend}.", losses, is_percent=False),
        draw_chart("Validation accuracy", f"After each validation{legend}.", accuracies, is_percent=True),
    ]
    drawn = [chart for chart in charts if chart is not None]
    if not drawn:
        raise InputError(f"{METRICS_FILE} has no row yet")
    return element("div", *drawn, class_="figures")


def _select_points(record: RunRecord, kind: str, name: str) -> tuple[CurvePoint, ...]:
    """The finite values of a column of the metrics, thinned out to at most MAX_POINTS."""
    points = []
    for row in record.metrics:
        value: float | None = getattr(row, name)
        if row.kind == kind and value is not None and math.isfinite(value):
            points.append(CurvePoint(row.step, float(value)))
    return tuple(points[:: max(1, -(-len(points) // MAX_POINTS))])


def draw_chart(title: str, caption: str, curves: Sequence[Curve], *, is_percent: bool) -> Markup | None:
    """A chart of the curves that marks the best value of the best curve; None if no curve has points."""
    drawn = [curve for curve in curves if curve.points]
    if not drawn:
        return None
    points = [point for curve in drawn for point in curve.points]
    values = [point.value for point in points]
    last_step = max(point.step for point in points) or 1
    scale = ChartScale(last_step, choose_ticks(min(values), max(values)), is_percent)
    lines = [_draw_polyline(curve, scale) for curve in sorted(drawn, key=lambda curve: curve.is_best)]
    area = element(
        "svg",
        *lines,
        x=f"{LEFT}%",
        y=TOP,
        width=f"{RIGHT - LEFT}%",
        height=BOTTOM - TOP,
        viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
    )
    best = _find_best_point(drawn, is_percent)
    dot = element(
        "circle", cx=f"{scale.place_step(best.step):.2f}%", cy=scale.place_value(best.value), r=4, class_="dot"
    )
    number = f"{best.value:.1%}" if is_percent else f"{best.value:.4f}"
    summary = f"{'Highest' if is_percent else 'Lowest'}: {number} at step {best.step:,}."
    ends = [("0", LEFT, "start"), (f"step {last_step:,}", RIGHT, "end")]
    labels = [element("text", text, x=f"{x}%", y=HEIGHT - 8, text_anchor=anchor) for text, x, anchor in ends]
    shapes = [element("title", f"{title}. {summary}"), *_draw_ticks(scale), area, dot, *labels]
    svg = element("svg", *shapes, width="100%", height=HEIGHT, role="img", aria_label=f"{title}. {summary}")
    return element("figure", element("h3", title), svg, element("figcaption", f"{caption} {summary}"))


def _find_best_point(curves: Sequence[Curve], is_percent: bool) -> CurvePoint:
    """The highest accuracy or lowest loss of the best run's validation curve, or of the first curve there is."""
    preferred = [curve for curve in curves if curve.is_best and not curve.is_training] or list(curves)
    select = max if is_percent else min
    return select(preferred[0].points, key=lambda point: point.value)


def _draw_ticks(scale: ChartScale) -> list[Markup]:
    """Grid lines with their numbers, with as many decimals as the ticks need."""
    values = [round(100 * tick if scale.is_percent else tick, 9) for tick in scale.ticks]
    decimals = max(len(f"{value:g}".partition(".")[2]) for value in values)
    lines = []
    for tick in scale.ticks:
        y = scale.place_value(tick)
        line = element("line", x1=f"{LEFT}%", x2=f"{RIGHT}%", y1=y, y2=y, class_="axis")
        number = f"{tick:.{decimals}%}" if scale.is_percent else f"{tick:.{decimals}f}"
        lines.append(join_content([line, element("text", number, x=f"{LEFT - 1.5}%", y=y + 4, text_anchor="end")]))
    return lines


def _draw_polyline(curve: Curve, scale: ChartScale) -> Markup:
    low, high = scale.ticks[0], scale.ticks[-1]
    points = [
        f"{1000 * point.step / scale.last_step:.0f},{1000 * (high - point.value) / (high - low):.0f}"
        for point in curve.points
    ]
    classes = "curve" + " best" * curve.is_best + " training" * curve.is_training
    return element("polyline", points=" ".join(points), class_=classes, vector_effect="non-scaling-stroke")


def choose_ticks(low: float, high: float, intervals: int = 4) -> list[float]:
    """Round numbers from at most `low` to at least `high`, with about `intervals` steps between them."""
    span = max(high - low, 1e-6 * max(abs(low), abs(high)), 1e-9)
    rough = span / intervals
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(magnitude * factor for factor in (1, 2, 2.5, 5, 10) if magnitude * factor >= rough * 0.999)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(index * step, 12) for index in range(first, max(last, first + 1) + 1)]
