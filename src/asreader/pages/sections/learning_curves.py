"""Records -> learning curves: loss and accuracy against steps as inline SVG that takes any width."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from asreader.pages.run_records import RunRecord
from asreader.system.markup import Markup, element, joined

LEFT, RIGHT = 11, 97
"""Where the drawing begins and ends, in per cent of the width."""
TOP, BOTTOM, HEIGHT = 14, 176, 204
KEPT = 240
"""Points of a curve that are drawn; of more, every second, third..."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Steps and values; `best` is drawn to be seen, `training` dashed."""

    points: tuple[tuple[int, float], ...]
    best: bool = True
    training: bool = False


def build_learning_curves(records: Sequence[RunRecord]) -> Markup | None:
    """Loss, and validation accuracy where it was measured; None where nothing was."""
    best = max(records, key=lambda record: record.accuracy)
    losses = [Curve(_values(record, "valid", "loss"), record is best) for record in records]
    losses.append(Curve(_values(best, "train", "loss"), training=True))
    accuracies = [Curve(_values(record, "valid", "accuracy"), record is best) for record in records]
    others = "" if len(records) == 1 else f"; thick: {best.name}, the best of {len(records)} runs"
    charts = [
        draw_chart("Loss", f"Dashed: training; solid: validation{others}.", losses, percent=False),
        draw_chart("Validation accuracy", f"After each validation{others}.", accuracies, percent=True),
    ]
    drawn = [one for one in charts if one is not None]
    return element("div", *drawn, class_="figures") if drawn else None


def _values(record: RunRecord, kind: str, what: str) -> tuple[tuple[int, float], ...]:
    found = [(point.step, getattr(point, what)) for point in record.points if point.kind == kind]
    finite = [(step, float(value)) for step, value in found if value is not None and math.isfinite(value)]
    return tuple(finite[:: -(-len(finite) // KEPT)] if len(finite) > KEPT else finite)


def draw_chart(title: str, caption: str, curves: Sequence[Curve], *, percent: bool) -> Markup | None:
    """One pair of axes with curves; the best point of the best curve is told."""
    drawn = [curve for curve in curves if curve.points]
    if not drawn:
        return None
    last = max(step for curve in drawn for step, _ in curve.points) or 1
    values = [value for curve in drawn for _, value in curve.points]
    marks = choose_ticks(min(values), max(values))
    low, high = marks[0], marks[-1]

    def up(value: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low), 1)

    digits = max(len(f"{round(100 * value if percent else value, 9):g}".partition(".")[2]) for value in marks)
    lines = [_tick(value, up(value), percent, digits) for value in marks]
    inner = [_polyline(curve, last, low, high) for curve in sorted(drawn, key=lambda curve: curve.best)]
    area = element(
        "svg", *inner, x=f"{LEFT}%", y=TOP, width=f"{RIGHT - LEFT}%", height=BOTTOM - TOP, viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
    )  # fmt: skip
    told, dot = _told(drawn, last, up, percent)
    ends = [("0", LEFT, "start"), (f"step {last:,}", RIGHT, "end")]
    labels = [element("text", text, x=f"{x}%", y=HEIGHT - 8, text_anchor=anchor) for text, x, anchor in ends]
    picture = element(
        "svg", element("title", f"{title}. {told}"), *lines, area, *dot, *labels, width="100%", height=HEIGHT,
        role="img", aria_label=f"{title}. {told}",
    )  # fmt: skip
    return element("figure", element("h3", title), picture, element("figcaption", f"{caption} {told}"))


def _told(drawn: Sequence[Curve], last: int, up: Callable[[float], float], percent: bool) -> tuple[str, list[Markup]]:
    """The best point of the best curve in words and as a dot."""
    chosen = [curve for curve in drawn if curve.best and not curve.training] or list(drawn)
    pick = max if percent else min
    step, value = pick(chosen[0].points, key=lambda point: point[1])
    x = LEFT + (RIGHT - LEFT) * step / last
    dot = element("circle", cx=f"{x:.2f}%", cy=up(value), r=4, class_="dot")
    return f"{'Highest' if percent else 'Lowest'}: {_number(value, percent)} at step {step:,}.", [dot]


def _tick(value: float, y: float, percent: bool, digits: int) -> Markup:
    """A line with its number, of which so many digits behind the point are shown that no two are the same."""
    line = element("line", x1=f"{LEFT}%", x2=f"{RIGHT}%", y1=y, y2=y, class_="axis")
    number = f"{value:.{digits}%}" if percent else f"{value:.{digits}f}"
    return joined([line, element("text", number, x=f"{LEFT - 1.5}%", y=y + 4, text_anchor="end")])


def _number(value: float, percent: bool) -> str:
    return f"{value:.1%}" if percent else f"{value:.4f}"


def _polyline(curve: Curve, last: int, low: float, high: float) -> Markup:
    places = [f"{1000 * step / last:.0f},{1000 * (high - value) / (high - low):.0f}" for step, value in curve.points]
    kind = "curve" + " best" * curve.best + " training" * curve.training
    return element("polyline", points=" ".join(places), class_=kind, vector_effect="non-scaling-stroke")


def choose_ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round numbers from at most `low` to at least `high`, about `wanted` apart."""
    span = max(high - low, 1e-6 * max(abs(low), abs(high)), 1e-9)
    rough = span / wanted
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(place * step, 12) for place in range(first, max(last, first + 1) + 1)]
