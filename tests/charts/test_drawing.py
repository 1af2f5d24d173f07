"""Pictures: beside stored ones, the same bytes every time, and whole whatever the names are.

    python tests/charts/test_drawing.py

draws the stored pictures anew; look at each before you keep it.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as xml
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import matplotlib
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from asreader.charts import drawing
from asreader.charts.catalogue import FIGURE_BUILDERS, build_figures
from asreader.charts.figure_spec import Figure, PlotShape
from asreader.data.example import Example
from asreader.data.vocabulary import Vocabulary
from asreader.evaluation import ensembles, predictions
from asreader.evaluation.breakdowns import slices
from asreader.evaluation.breakdowns.breakdown_table import Cell, Table
from asreader.evaluation.breakdowns.systems import System
from asreader.evaluation.ensembles import Aligned
from asreader.evaluation.predictions import Prediction

PICTURES = Path(__file__).parent / "pictures"
DPI, COLOURS = 50, 128
REACH, UNLIKE = 2, 0.25
"""A pixel's like is looked for so many pixels around; colours are alike that differ by less, of 1."""
LIMIT = {PlotShape.MATRIX: 300}
"""Pixels without their like in a picture that is still the same; a matrix is all edges of coloured squares."""
FEW = 8

NAMES = ("Ada", "Bruno", "Clara", "Dario", "Edda", "Falk", "lamp", "well", "mill", "1907", "Old Tom")
KNOWN = Vocabulary(NAMES[:7], unknown=2)


def system(name: str, data: str, runs: int, skill: float, count: int = 300) -> System:
    """A reader that is drawn at random, with more skill where the answer is frequent and the document short."""
    random = Random(data)
    examples = []
    for number in range(count):
        candidates = NAMES[:8] if data == "books" else tuple(random.sample(NAMES, random.randint(3, 11)))
        words = [random.choice((*candidates, *candidates[:2], "and", "the")) for _ in range(random.randint(40, 240))]
        examples.append(Example(f"q{number}", (tuple(words),), ("XXXXX",), candidates, random.choice(candidates)))
    asked = asked_of.setdefault(data, slices.questions(data, examples))
    random = Random(name)
    said = []
    for _ in range(runs):
        rows = []
        for example in examples:
            hint = skill + example.words.count(example.answer or "") / 10 - len(example.words) / 200
            logits = [random.gauss(0, 1) + hint * (word == example.answer) for word in example.candidates]
            shares = np.exp(np.array(logits) * 1.5)
            rows.append(Prediction(example.id, example.answer, example.candidates, shares / shares.sum()))
        said.append(tuple(rows))
    return System(name, tuple(f"seed-{run + 1}" for run in range(runs)), aligned(said), asked, KNOWN)


def aligned(runs: Sequence[Sequence[Prediction]]) -> Aligned:
    """As if read from files."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jsonl" for number in range(len(runs))]
        for path, said in zip(paths, runs, strict=True):
            predictions.write(path, said)
        return ensembles.aligned(paths)


asked_of: dict[str, slices.Questions] = {}


def drawn() -> dict[str, Figure]:
    """Every figure of three systems on two data sets, and small multiples of six systems on six."""
    few = [system("three seeds", "books", 3, 1.5), system("plain", "books", 1, 0.6), system("news", "news", 1, 1.0)]
    many = [system(f"reader {number}", f"data {number}", 1, 0.4 * number, 120) for number in range(6)]
    found = {figure.name: figure for figure in build_figures(few, str) if figure.plots}
    wanted = ("accuracy-by-length", "accuracy-by-answer-type", "answer-ranks", "lengths")
    return found | {f"many-{figure.name}": figure for figure in build_figures(many, str) if figure.name in wanted}


FIGURES = drawn()


def pixels(png: bytes) -> NDArray[np.float64]:
    """Only the colours: letters, which every version of a font library smooths in its own way, are grey."""
    whole = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=np.float64) / 255
    return whole - whole.min(axis=2, keepdims=True)


def strange(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """The most pixels, of either picture, that have none of like colour near their place in the other."""
    if one.shape != two.shape:
        return float("inf")
    return max(_unmatched(one, two), _unmatched(two, one))


def _unmatched(one: NDArray[np.float64], two: NDArray[np.float64]) -> int:
    height, width, _ = one.shape
    padded = np.pad(two, ((REACH, REACH), (REACH, REACH), (0, 0)), mode="edge")
    nearest = np.full((height, width), np.inf)
    for down, right in np.ndindex(2 * REACH + 1, 2 * REACH + 1):
        near = padded[down : down + height, right : right + width]
        nearest = np.minimum(nearest, np.abs(near - one).max(axis=2))
    return int((nearest > UNLIKE).sum())


def looks_stored(name: str, figure: Figure) -> bool:
    stored = pixels((PICTURES / f"{name}.png").read_bytes())
    return strange(pixels(drawing.render_png(figure, DPI)), stored) <= LIMIT.get(figure.plots[0].shape, FEW)


def test_every_figure_has_a_stored_picture() -> None:
    assert {path.stem for path in PICTURES.glob("*.png")} == FIGURES.keys()
    assert {name for name in FIGURE_BUILDERS if name != "confident-mistakes"} <= FIGURES.keys()
    assert all(path.stat().st_size < 15_000 for path in PICTURES.glob("*.png"))


@pytest.mark.parametrize("name", FIGURES)
def test_pictures_look_like_the_stored_ones(name: str) -> None:
    assert looks_stored(name, FIGURES[name])


@pytest.mark.parametrize("name", ["accuracy-by-length", "accuracy-by-answer-rank", "lengths", "runs-alike"])
def test_another_smoothing_is_the_same_picture(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other shapes of letters, which also move the axes by a pixel or so."""
    monkeypatch.setattr(drawing, "_STYLE", {**drawing._STYLE, "text.hinting": "none", "text.antialiased": False})
    assert looks_stored(name, FIGURES[name])


@pytest.mark.parametrize("name", FIGURES)
def test_one_other_number_is_another_picture(name: str) -> None:
    figure = FIGURES[name]
    plot = figure.plots[0]
    column = figure.table.header.index((plot.value or plot.y).column)
    numbers = [(float(row[column]), place) for place, row in enumerate(figure.table.rows) if row[column] is not None]
    _, place = sorted(numbers)[len(numbers) // 2]
    changed = Table(
        figure.table.header, tuple(_halved(row, column, at == place) for at, row in enumerate(figure.table.rows))
    )
    assert not looks_stored(name, replace(figure, table=changed))


def _halved(row: tuple[Cell, ...], column: int, wanted: bool) -> tuple[Cell, ...]:
    return tuple(float(cell or 0) / 2 if wanted and at == column else cell for at, cell in enumerate(row))


def test_another_order_of_systems_is_another_picture() -> None:
    figure = FIGURES["accuracy-by-length"]
    assert not looks_stored("accuracy-by-length", replace(figure, order=figure.order[::-1]))


def texts(svg: str) -> list[str]:
    return ["".join(found.itertext()) for found in xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("name", FIGURES)
def test_svg_is_the_same_every_time_and_its_text_is_text(name: str) -> None:
    figure = FIGURES[name]
    svg = drawing.render_svg(figure)
    assert svg == drawing.render_svg(figure)
    found = texts(svg)
    for plot in figure.plots:
        assert set(filter(None, (plot.x.label, plot.y.label, plot.title))) <= set(found)
    for system in map(str, figure.table.column(figure.table.header[0])):
        assert any(text.startswith(system) for text in found)
    assert "<image" not in svg and "dc:date" not in svg
    assert not re.findall(r'(?:href|src)="([^#][^"]*)', svg)  # nothing from elsewhere


def test_a_persons_own_settings_change_nothing(tmp_path: Path) -> None:
    figure = FIGURES["answer-ranks"]
    before = drawing.render_svg(figure)
    with matplotlib.rc_context(
        {"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path", "text.usetex": False}
    ):
        assert drawing.render_svg(figure) == before
        assert matplotlib.rcParams["font.size"] == 30


def test_a_table_is_not_drawn() -> None:
    with pytest.raises(ValueError, match="table"):
        drawing.draw_figure(replace(FIGURES["lengths"], plots=()))


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name, one in FIGURES.items():
        whole = Image.open(io.BytesIO(drawing.render_png(one, DPI))).convert("RGB")
        whole.quantize(COLOURS).save(PICTURES / f"{name}.png", optimize=True)
