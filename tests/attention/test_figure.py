"""The attention figure: layout, SVG and PNG."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.attention import figure, figure_file, shades
from asreader.attention.figure import MARGIN, WIDTH, Drawing, lay_out_figure
from asreader.data.example import GAP
from asreader.errors import InputError
from asreader.inference.answer import Answer, Choice
from asreader.system.markup import escape_controls

ROOT = Path(__file__).parent.parent.parent
PICTURES = ROOT / "docs" / "pictures"
HOSTILE = (
    "<script>alert(1)</script>",
    "\u202eevil",
    "\x00\x1b[0m",
    "😀" * 50,
    "x" * 100_000,
    "שלום",
    "$\\frac{a}{b}$",
    "猫",
)


def make_answer(document: tuple[tuple[str, ...], ...], attention: tuple[float, ...], *candidates: str) -> Answer:
    words = [word for sentence in document for word in sentence]
    positions = {name: tuple(n for n, word in enumerate(words) if word == name) for name in candidates}
    sums = {name: sum(attention[n] for n in positions[name]) for name in candidates}
    choices = tuple(Choice(name, sums[name], positions[name]) for name in sorted(candidates, key=lambda n: -sums[n]))
    return Answer(candidates[0], sums[candidates[0]], choices, ("Who", GAP, "?"), document, attention)


SMALL = make_answer((("Ana", "met", "Bo", "."), ("Bo", "slept", ".")), (0.1, 0.0, 0.5, 0.0, 0.4, 0.0, 0.0), "Bo", "Ana")


def render_tree(answer: Answer) -> ElementTree.Element:
    return ElementTree.fromstring(figure_file.render_drawing_svg(lay_out_figure(answer)))


def test_hostile_text_is_escaped() -> None:
    answer = make_answer((HOSTILE, HOSTILE), (1 / 16,) * 16, *HOSTILE)
    root = render_tree(replace(answer, question=HOSTILE, expected=HOSTILE[0]))
    assert {part.tag.rpartition("}")[2] for part in root.iter()} <= {"svg", "title", "rect", "g", "text"}
    for part in root.iter():
        assert not [name for name in part.attrib if name.startswith("on") or "href" in name]
    text = "".join(root.itertext())
    assert escape_controls("<script>alert") in text and "⟨RLO⟩evil" in text and "100,000 characters" in text


@given(
    st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=12), min_size=1,
                      max_size=12).map(tuple), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_words_do_not_overlap_and_stay_inside_the_margins(document: list[tuple[str, ...]], random: object) -> None:
    words = [word for sentence in document for word in sentence]
    weights = [random.random() + 0.01 for _ in words]  # type: ignore[attr-defined]
    answer = make_answer(tuple(document), tuple(weight / sum(weights) for weight in weights), *dict.fromkeys(words[:4]))
    drawing = lay_out_figure(answer)
    ends: dict[float, float] = {}
    for label in drawing.labels:
        assert 0 < label.y < drawing.height
        if label.anchor == "start" and label.size == figure.SIZE:
            assert label.x >= MARGIN and label.x + label.width <= WIDTH - MARGIN + 0.01
            assert label.x >= ends.get(label.y, 0) - 0.01
            ends[label.y] = label.x + label.width
    assert all(box.y >= 0 and box.y + box.height <= drawing.height for box in drawing.boxes)


def test_bar_heights_are_proportional_to_attention() -> None:
    drawing = lay_out_figure(SMALL)
    bars = [box for box in drawing.boxes if box.fill == figure.BAR][: sum(share > 0 for share in SMALL.attention)]
    heights = [bar.height for bar in bars]
    expected = [share for share in SMALL.attention if share]
    assert [height / max(heights) for height in heights] == pytest.approx([share / max(expected) for share in expected])
    assert len({round(bar.y + bar.height, 6) for bar in bars}) == 1
    step = (WIDTH - 2 * MARGIN) / len(SMALL.attention)
    centres = [bar.x + bar.width / 2 for bar in bars]
    assert centres == pytest.approx([MARGIN + step * (n + 0.5) for n, share in enumerate(SMALL.attention) if share])


def test_every_word_is_drawn_with_its_shade_and_rank() -> None:
    drawing = lay_out_figure(SMALL)
    written = [label.text for label in drawing.labels]
    for word in (*SMALL.tokens, "_____", "Who"):
        assert word in written
    fills = [box.fill for box in drawing.boxes if box.fill in figure.SHADES[1:]]
    assert fills == [figure.SHADES[word.level] for word in shades.shade_words(SMALL) if word.level]
    frames = [box for box in drawing.boxes if box.stroke != "none"]
    assert [frame.dashed for frame in frames] == [word.rank != 1 for word in shades.shade_words(SMALL) if word.rank]


def test_long_document_is_reduced_to_its_strongest_sentences() -> None:
    document = tuple((f"w{n}", "sat", ".") for n in range(100))
    answer = make_answer(document, tuple(0.701 if n == 150 else 0.001 for n in range(300)), "w50")
    written = [label.text for label in lay_out_figure(answer, max_words=9).labels]
    assert "w50" in written and "…" in written
    assert len([word for word in written if word.startswith("w") and word[1:].isdigit()]) <= 3 + 1


def test_entities_are_drawn_under_their_names() -> None:
    answer = make_answer((("@entity7", "slept"),), (0.9, 0.1), "@entity7")
    text = "".join(render_tree(replace(answer, names={"@entity7": "Ana Berg"})).itertext())
    assert "Ana Berg" in text and "@entity7" not in text


def test_layout_does_not_depend_on_the_font() -> None:
    for part in render_tree(SMALL).iter("{http://www.w3.org/2000/svg}text"):
        assert part.get("lengthAdjust") == "spacingAndGlyphs"
        assert float(part.get("textLength", 0)) > 0


def test_wide_characters_are_measured_as_wide() -> None:
    assert figure.measure_text("猫", 10) == 10 > figure.measure_text("i", 10)
    assert figure.measure_text("e\u0301", 10) == figure.measure_text("e", 10)


def test_suffix_chooses_the_file_format(tmp_path: Path) -> None:
    figure_file.write_figure(SMALL, tmp_path / "a.svg")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().get("role") == "img"
    figure_file.write_figure(make_answer((HOSTILE,), (1 / 8,) * 8, *HOSTILE), tmp_path / "a.PNG")
    head = (tmp_path / "a.PNG").read_bytes()[:24]
    assert head.startswith(b"\x89PNG") and int.from_bytes(head[16:20], "big") == WIDTH * figure_file.DOTS_PER_UNIT
    with pytest.raises(InputError, match="svg or"):
        figure_file.write_figure(SMALL, tmp_path / "a.jpg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.PNG", "a.svg"]


def test_a_png_shows_what_the_svg_shows(tmp_path: Path) -> None:
    """Pixels inside a filled box have its colour."""
    from matplotlib.image import imread

    drawing = Drawing("t", 40)
    drawing.boxes.append(figure.Box(100, 10, 50, 20, "#b86a00"))
    drawing.add_text(300, 30, "Word", bold=True)
    figure_file.write_drawing_png(drawing, tmp_path / "a.png")
    dots = imread(tmp_path / "a.png")
    scale = figure_file.DOTS_PER_UNIT
    assert dots.shape[:2] == (40 * scale, WIDTH * scale)
    assert dots[20 * scale, 125 * scale, :3].tolist() == pytest.approx([0xB8 / 255, 0x6A / 255, 0], abs=0.01)
    dark = (dots[:, :, :3].sum(axis=2) < 1.0).any(axis=0).nonzero()[0] / scale
    wide = figure.measure_text("Word", figure.SIZE, bold=True)
    assert 300 <= dark.min() < 302 and 300 + wide - 2 < dark.max() <= 300 + wide


def load_picture_script() -> Any:
    spec = importlib.util.spec_from_file_location("write_pictures", ROOT / "docs" / "write_pictures.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["attention", pytest.param("figure", marks=pytest.mark.slow)])
def test_readme_figures_are_up_to_date(name: str, tmp_path: Path) -> None:
    """The same words in the same order; numbers may be rounded differently on another processor."""
    written = ElementTree.parse(getattr(load_picture_script(), f"draw_{name}")(tmp_path)).getroot()
    stored = ElementTree.parse(PICTURES / f"{name}.svg").getroot()
    assert written.get("viewBox", "").split()[2] == stored.get("viewBox", "").split()[2], "run `make pictures`"
    assert list_words(written) == list_words(stored), "run `make pictures`"


def list_words(root: ElementTree.Element) -> list[str]:
    """The texts of a picture that have no digit."""
    return [text.strip() for text in root.itertext() if text.strip() and not re.search(r"\d", text)]


def test_readme_pictures_are_small() -> None:
    assert sorted(path.name for path in PICTURES.iterdir()) == ["attention.svg", "figure.svg", "report.png"]
    assert sum(path.stat().st_size for path in PICTURES.iterdir()) < 150_000
    assert (PICTURES / "report.png").read_bytes().startswith(b"\x89PNG")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"(docs/pictures/{path.name})" in text for path in PICTURES.iterdir())
