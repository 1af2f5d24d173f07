"""Answer -> SVG or PNG: the attention over a text and below it, as in the paper's two figures, to put into a paper."""

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
"""Of a PNG: 640 units across are 1,920 dots."""
_UNITS_PER_INCH = 72
_FAMILIES = ("Helvetica", "Arial", "Liberation Sans", "DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "SimHei")


def write_figure(answer: Answer, path: Path) -> None:
    """The picture as a file, SVG or PNG as its name says."""
    if path.suffix.lower() not in (".svg", ".png"):
        raise InputError(f"{path}: a picture is written as .svg or .png; choose such a name")
    sheet = lay_out_figure(answer)
    if path.suffix.lower() == ".svg":
        atomic_files.write_text(path, svg(sheet))
    else:
        with atomic_files.replacing(path) as scratch:
            png(sheet, scratch)


def svg(sheet: Drawing) -> str:
    """The sheet as SVG; every word is stretched to its place, so that any font gives the same lines."""
    shapes = [element("rect", width=WIDTH, height=_short(sheet.height), fill=PAPER)]
    words = element("g", *map(_text, sheet.labels), font_family=FONTS)
    body = [element("title", sheet.title), *shapes, *map(_rectangle, sheet.boxes), words]
    size = {"width": WIDTH, "height": _short(sheet.height), "viewBox": f"0 0 {WIDTH} {_short(sheet.height)}"}
    return f"{element('svg', *body, xmlns='http://www.w3.org/2000/svg', role='img', **size)}\n"


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _rectangle(box: Box) -> Markup:
    place = {name: _short(getattr(box, name)) for name in ("x", "y", "width", "height")}
    dash = "2 2" if box.dashed else None
    stroke = None if box.stroke == "none" else box.stroke
    return element("rect", **place, fill=box.fill, stroke=stroke, stroke_dasharray=dash)


def _text(label: Label) -> Markup:
    anchor = None if label.anchor == "start" else label.anchor
    fitted = {"textLength": _short(label.width), "lengthAdjust": "spacingAndGlyphs"} if label.width >= 1 else {}
    weight = "bold" if label.bold else None
    return element(
        "text", label.text, x=_short(label.x), y=_short(label.y), font_size=_short(label.size), fill=label.colour,
        font_weight=weight, text_anchor=anchor, **fitted,
    )  # fmt: skip


def png(sheet: Drawing, path: Path) -> None:
    """The sheet as PNG, the same lines drawn with matplotlib's own fonts."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    figure = Figure(figsize=(WIDTH / _UNITS_PER_INCH, sheet.height / _UNITS_PER_INCH), facecolor=PAPER)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0, WIDTH), ylim=(sheet.height, 0))
    axes.set_axis_off()
    for box in sheet.boxes:
        style = (0, (2, 2)) if box.dashed else "solid"
        axes.add_patch(
            Rectangle((box.x, box.y), box.width, box.height, facecolor=box.fill, edgecolor=box.stroke, linestyle=style,
                      linewidth=0 if box.stroke == "none" else 1)
        )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that no font here has becomes a box
        for label in sheet.labels:
            axes.add_patch(_outline(label))
        figure.savefig(path, format="png", dpi=DOTS_PER_UNIT * _UNITS_PER_INCH)


def _outline(label: Label) -> Patch:
    """The letters of a label as one shape that is exactly as wide as its place."""
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath, text_to_path
    from matplotlib.transforms import Affine2D

    font = _font(label.bold)
    font.set_size(label.size)
    wide, _, _ = text_to_path.get_text_width_height_descent(label.text, font, ismath=False)
    left = {"start": label.x, "middle": label.x - label.width / 2, "end": label.x - label.width}[label.anchor]
    moved = Affine2D().scale(label.width / wide if wide else 1.0, -1).translate(left, label.y)
    path = TextPath((0, 0), label.text, prop=font, usetex=False)
    return PathPatch(moved.transform_path(path), facecolor=label.colour, edgecolor="none")


def _font(bold: bool) -> FontProperties:
    """The first of the wanted fonts that is here, then matplotlib's own, then any that has Chinese."""
    from matplotlib.font_manager import FontProperties, fontManager

    here = set(fontManager.get_font_names())
    families = [name for name in _FAMILIES if name in here]
    return FontProperties(family=families, weight="bold" if bold else "normal")
