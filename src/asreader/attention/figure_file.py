"""Answer -> SVG or PNG file: the attention figure, in the style of the two figures of the paper."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from asreader.attention.figure import PAPER, WIDTH, Box, Drawing, Label, lay_out_figure
from asreader.errors import InputError
from asreader.inference.answer import Answer
from asreader.system import atomic_files
from asreader.system.markup import Markup, element

if TYPE_CHECKING:
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import Patch

FONTS = "Helvetica, Arial, 'Liberation Sans', sans-serif"
DOTS_PER_UNIT = 3
"""Resolution of a PNG: 640 units are 1,920 pixels."""
_UNITS_PER_INCH = 72
_FAMILIES = ("Helvetica", "Arial", "Liberation Sans", "DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "SimHei")


def write_figure(answer: Answer, path: Path) -> None:
    """Write the figure as SVG or PNG, as the suffix of the path says."""
    if path.suffix.lower() not in (".svg", ".png"):
        raise InputError(f"{path}: a picture is written as .svg or .png; choose such a name")
    drawing = lay_out_figure(answer)
    if path.suffix.lower() == ".svg":
        atomic_files.write_text(path, render_drawing_svg(drawing))
    else:
        with atomic_files.atomic_write(path) as scratch:
            write_drawing_png(drawing, scratch)


def render_drawing_svg(drawing: Drawing) -> str:
    """The drawing as SVG. Each label is stretched to its width, so that the layout is the same with any font."""
    height = _format_number(drawing.height)
    background = element("rect", width=WIDTH, height=height, fill=PAPER)
    labels = element("g", *map(_build_text, drawing.labels), font_family=FONTS)
    body = [element("title", drawing.title), background, *map(_build_rectangle, drawing.boxes), labels]
    size = {"width": WIDTH, "height": height, "viewBox": f"0 0 {WIDTH} {height}"}
    return f"{element('svg', *body, xmlns='http://www.w3.org/2000/svg', role='img', **size)}\n"


def _format_number(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _build_rectangle(box: Box) -> Markup:
    geometry = {name: _format_number(getattr(box, name)) for name in ("x", "y", "width", "height")}
    dash = "2 2" if box.dashed else None
    stroke = None if box.stroke == "none" else box.stroke
    return element("rect", **geometry, fill=box.fill, stroke=stroke, stroke_dasharray=dash)


def _build_text(label: Label) -> Markup:
    fitted = {"textLength": _format_number(label.width), "lengthAdjust": "spacingAndGlyphs"} if label.width >= 1 else {}
    return element(
        "text",
        label.text,
        x=_format_number(label.x),
        y=_format_number(label.y),
        font_size=_format_number(label.size),
        fill=label.colour,
        font_weight="bold" if label.bold else None,
        text_anchor=None if label.anchor == "start" else label.anchor,
        **fitted,
    )


def write_drawing_png(drawing: Drawing, path: Path) -> None:
    """Write the drawing as PNG with matplotlib and its fonts, in the same layout."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    figure = Figure(figsize=(WIDTH / _UNITS_PER_INCH, drawing.height / _UNITS_PER_INCH), facecolor=PAPER)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0, WIDTH), ylim=(drawing.height, 0))
    axes.set_axis_off()
    for box in drawing.boxes:
        rectangle = Rectangle(
            (box.x, box.y),
            box.width,
            box.height,
            facecolor=box.fill,
            edgecolor=box.stroke,
            linestyle=(0, (2, 2)) if box.dashed else "solid",
            linewidth=0 if box.stroke == "none" else 1,
        )
        axes.add_patch(rectangle)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # characters without a glyph are drawn as boxes
        for label in drawing.labels:
            axes.add_patch(_outline_label(label))
        figure.savefig(path, format="png", dpi=DOTS_PER_UNIT * _UNITS_PER_INCH)


def _outline_label(label: Label) -> Patch:
    """The glyphs of a label as one path, scaled to exactly the width of the label."""
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath, text_to_path
    from matplotlib.transforms import Affine2D

    font = _find_font(label.bold)
    font.set_size(label.size)
    width, _, _ = text_to_path.get_text_width_height_descent(label.text, font, ismath=False)
    left = {"start": label.x, "middle": label.x - label.width / 2, "end": label.x - label.width}[label.anchor]
    transform = Affine2D().scale(label.width / width if width else 1.0, -1).translate(left, label.y)
    path = TextPath((0, 0), label.text, prop=font, usetex=False)
    return PathPatch(transform.transform_path(path), facecolor=label.colour, edgecolor="none")


def _find_font(bold: bool) -> FontProperties:
    """The installed fonts among the preferred ones, in this order; the last ones cover Chinese."""
    from matplotlib.font_manager import FontProperties, fontManager

    installed = set(fontManager.get_font_names())
    families = [name for name in _FAMILIES if name in installed]
    return FontProperties(family=families, weight="bold" if bold else "normal")
