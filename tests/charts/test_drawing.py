"""Pictures: compared with stored ones, deterministic, and complete for any names.

    python tests/charts/test_drawing.py

redraws the stored pictures; look at each one before you commit it.
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
from asreader.evaluation.ensembles import AlignedPredictions
from asreader.evaluation.predictions import Prediction

PICTURES = Path(__file__).parent / "pictures"
DPI, COLOURS = 50, 128
SEARCH_RADIUS = 2
"""A pixel may match any pixel of the other picture that is at most this many pixels away in x and y."""
COLOUR_TOLERANCE = 0.25
"""Colours match if they differ by at most this much, from 0 to 1."""
MAX_UNMATCHED = 8
MAX_UNMATCHED_MATRIX = 300
"""Number of unmatched pixels in pictures that count as equal; a matrix consists of edges of coloured squares."""

NAMES = ("Ada", "Bruno", "Clara", "Dario", "Edda", "Falk", "lamp", "well", "mill", "1907", "Old Tom")
KNOWN = Vocabulary(NAMES[:7], unknown=2)


def make_system(name: str, data: str, runs: int, skill: float, count: int = 300) -> System:
    """Random predictions that are better if the answer is frequent and the document is short."""
    random = Random(data)
    examples = []
    for number in range(count):
        candidates = NAMES[:8] if data == "books" else tuple(random.sample(NAMES, random.randint(3, 11)))
        words = [random.choice((*candidates, *candidates[:2], "and", "the")) for _ in range(random.randint(40, 240))]
        examples.append(Example(f"q{number}", (tuple(words),), ("XXXXX",), candidates, random.choice(candidates)))
    questions = questions_by_data.setdefault(data, slices.describe_questions(data, examples))
    random = Random(name)
    run_predictions = []
    for _ in range(runs):
        rows = []
        for example in examples:
            hint = skill + example.words.count(example.answer or "") / 10 - len(example.words) / 200
            logits = [random.gauss(0, 1) + hint * (word == example.answer) for word in example.candidates]
            weights = np.exp(np.array(logits) * 1.5)
            rows.append(Prediction(example.id, example.answer, example.candidates, weights / weights.sum()))
        run_predictions.append(tuple(rows))
    return System(name, tuple(f"seed-{run + 1}" for run in range(runs)), align(run_predictions), questions, KNOWN)


def align(runs: Sequence[Sequence[Prediction]]) -> AlignedPredictions:
    """Write predictions to files and read them aligned."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jsonl" for number in range(len(runs))]
        for path, predicted in zip(paths, runs, strict=True):
            predictions.write_predictions(path, predicted)
        return ensembles.align_predictions(paths)


questions_by_data: dict[str, slices.QuestionFacts] = {}


def build_all_figures() -> dict[str, Figure]:
    """Every figure of three systems on two data sets, and small multiples of six systems on six."""
    few = [
        make_system("three seeds", "books", 3, 1.5),
        make_system("plain", "books", 1, 0.6),
        make_system("news", "news", 1, 1.0),
    ]
    many = [make_system(f"reader {number}", f"data {number}", 1, 0.4 * number, 120) for number in range(6)]
    figures = {figure.name: figure for figure in build_figures(few, str) if figure.plots}
    names = ("accuracy-by-length", "accuracy-by-answer-type", "answer-ranks", "lengths")
    return figures | {f"many-{figure.name}": figure for figure in build_figures(many, str) if figure.name in names}


FIGURES = build_all_figures()


def read_colours(png: bytes) -> NDArray[np.float64]:
    """The colour of each pixel without its grey part, because font libraries smooth grey letters differently."""
    whole = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=np.float64) / 255
    return whole - whole.min(axis=2, keepdims=True)


def count_differences(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """Number of pixels without a match in the other picture, the larger of both directions."""
    if one.shape != two.shape:
        return float("inf")
    return max(_count_unmatched(one, two), _count_unmatched(two, one))


def _count_unmatched(one: NDArray[np.float64], two: NDArray[np.float64]) -> int:
    height, width, _ = one.shape
    padded = np.pad(two, ((SEARCH_RADIUS, SEARCH_RADIUS), (SEARCH_RADIUS, SEARCH_RADIUS), (0, 0)), mode="edge")
    nearest = np.full((height, width), np.inf)
    for down, right in np.ndindex(2 * SEARCH_RADIUS + 1, 2 * SEARCH_RADIUS + 1):
        near = padded[down : down + height, right : right + width]
        nearest = np.minimum(nearest, np.abs(near - one).max(axis=2))
    return int((nearest > COLOUR_TOLERANCE).sum())


def is_like_stored(name: str, figure: Figure) -> bool:
    """Whether the picture of a figure matches the stored one."""
    limit = MAX_UNMATCHED_MATRIX if figure.plots[0].shape is PlotShape.MATRIX else MAX_UNMATCHED
    stored = read_colours((PICTURES / f"{name}.png").read_bytes())
    return count_differences(read_colours(drawing.render_png(figure, DPI)), stored) <= limit


def test_every_figure_has_a_stored_picture() -> None:
    assert {path.stem for path in PICTURES.glob("*.png")} == FIGURES.keys()
    assert {name for name in FIGURE_BUILDERS if name != "confident-mistakes"} <= FIGURES.keys()
    assert all(path.stat().st_size < 15_000 for path in PICTURES.glob("*.png"))


@pytest.mark.parametrize("name", FIGURES)
def test_pictures_match_the_stored_ones(name: str) -> None:
    assert is_like_stored(name, FIGURES[name])


@pytest.mark.parametrize("name", ["accuracy-by-length", "accuracy-by-answer-rank", "lengths", "runs-alike"])
def test_pictures_match_with_other_font_smoothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other letter shapes, which also move the axes by about one pixel."""
    monkeypatch.setattr(drawing, "_STYLE", {**drawing._STYLE, "text.hinting": "none", "text.antialiased": False})
    assert is_like_stored(name, FIGURES[name])


@pytest.mark.parametrize("name", FIGURES)
def test_one_changed_number_changes_the_picture(name: str) -> None:
    figure = FIGURES[name]
    plot = figure.plots[0]
    column = figure.table.header.index((plot.value or plot.y).column)
    numbers = [(float(row[column]), index) for index, row in enumerate(figure.table.rows) if row[column] is not None]
    _, changed_index = sorted(numbers)[len(numbers) // 2]
    changed = Table(
        figure.table.header,
        tuple(_halve_cell(row, column, index == changed_index) for index, row in enumerate(figure.table.rows)),
    )
    assert not is_like_stored(name, replace(figure, table=changed))


def _halve_cell(row: tuple[Cell, ...], column: int, is_changed: bool) -> tuple[Cell, ...]:
    return tuple(float(cell or 0) / 2 if is_changed and index == column else cell for index, cell in enumerate(row))


def test_order_of_systems_changes_the_picture() -> None:
    figure = FIGURES["accuracy-by-length"]
    assert not is_like_stored("accuracy-by-length", replace(figure, order=figure.order[::-1]))


def list_texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("name", FIGURES)
def test_svg_is_deterministic_and_contains_text(name: str) -> None:
    figure = FIGURES[name]
    svg = drawing.render_svg(figure)
    assert svg == drawing.render_svg(figure)
    texts = list_texts(svg)
    for plot in figure.plots:
        assert set(filter(None, (plot.x.label, plot.y.label, plot.title))) <= set(texts)
    for system in map(str, figure.table.column(figure.table.header[0])):
        assert any(text.startswith(system) for text in texts)
    assert "<image" not in svg and "dc:date" not in svg
    assert not re.findall(r'(?:href|src)="([^#][^"]*)', svg)  # no external resource


def test_matplotlib_settings_of_the_user_are_ignored(tmp_path: Path) -> None:
    figure = FIGURES["answer-ranks"]
    before = drawing.render_svg(figure)
    with matplotlib.rc_context(
        {"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path", "text.usetex": False}
    ):
        assert drawing.render_svg(figure) == before
        assert matplotlib.rcParams["font.size"] == 30


def test_figure_without_plots_is_not_drawn() -> None:
    with pytest.raises(ValueError, match="table"):
        drawing.draw_figure(replace(FIGURES["lengths"], plots=()))


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name, one in FIGURES.items():
        whole = Image.open(io.BytesIO(drawing.render_png(one, DPI))).convert("RGB")
        whole.quantize(COLOURS).save(PICTURES / f"{name}.png", optimize=True)
