"""The folder that `asreader analyse` writes: whole files, nothing stale, and any text comes out as text."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from asreader.charts import drawing, export
from asreader.charts.catalogue import FIGURE_BUILDERS, build_figures
from asreader.charts.figure_spec import Figure
from asreader.data.example import Example
from asreader.data.formats import jsonl
from asreader.errors import InputError
from asreader.evaluation import ensembles, predictions
from asreader.evaluation.breakdowns import slices
from asreader.evaluation.breakdowns.systems import Source, System
from asreader.evaluation.ensembles import Aligned
from asreader.evaluation.predictions import Prediction

HOSTILE = (
    "<script>alert(1)</script>",
    "$\\frac{1}{2}$ and $x",
    "\u202egnp.exe",
    '=HYPERLINK("http://example.org","x")',
    "| a | `b` | ![c](d) |",
    "👩‍👩‍👧 灯 \ufeff\u200f",
    "line\nbreak\tand\x00\x07",
    "%s {0} \\ & \" '",
    "x" * 100_000,
)


def said(examples: list[Example], seed: int) -> list[Prediction]:
    random = Random(seed)
    found = []
    for example in examples:
        weights = [2 * random.random() + (word == example.answer) for word in example.candidates]
        shares = [weight / sum(weights) for weight in weights]
        found.append(Prediction(example.id, example.answer, example.candidates, shares))  # type: ignore[arg-type]
    return found


def aligned(runs: Sequence[Sequence[Prediction]]) -> Aligned:
    """As if read from files."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jsonl" for number in range(len(runs))]
        for path, said in zip(paths, runs, strict=True):
            predictions.write(path, said)
        return ensembles.aligned(paths)


def asked(names: tuple[str, ...], count: int = 40) -> list[Example]:
    random = Random(1)
    found = []
    for number in range(count):
        candidates = tuple(random.sample(names, 3 + number % 3))
        words = tuple(random.choice(candidates) for _ in range(random.randint(5, 30)))
        found.append(Example(f"{candidates[0]} {number}", (words,), ("XXXXX",), candidates, random.choice(candidates)))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """questions.jsonl, and predictions on them in runs/seed-1, runs/seed-2 and alone.jsonl."""
    examples = asked(("Ada", "Bo", "lamp", "1907", "oil"))
    (tmp_path / "questions.jsonl").write_text("".join(map(jsonl.line, examples)))
    for seed in (1, 2):
        predictions.write(tmp_path / "runs" / f"seed-{seed}" / "predictions" / "valid.jsonl", said(examples, seed))
    predictions.write(tmp_path / "alone.jsonl", said(examples, 3))
    return tmp_path


def asreader(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "asreader", *map(str, arguments)], capture_output=True, text=True)


def test_the_command_writes_every_figure(folder: Path) -> None:
    data, out = folder / "questions.jsonl", folder / "out"
    done = asreader(
        "analyse", folder / "runs", data, "--out", out, "--also", f"alone={folder / 'alone.jsonl'}", "--json"
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["folder"] == str(out)
    names = [figure["name"] for figure in told["figures"]]
    assert names == [name for name in FIGURE_BUILDERS if name != "accuracy-by-known-answer"]
    assert len(told["left_out"]) == 1
    files = {path for figure in told["figures"] for path in figure["files"]}
    assert files | {str(out / "index.md")} == {str(path) for path in out.iterdir()}
    index = (out / "index.md").read_text()
    for figure in told["figures"]:
        assert f"## {figure['title']}" in index
        rows = list(csv.reader((out / f"{figure['name']}.csv").read_text().splitlines()))
        assert rows[0] == figure["header"]
        assert [[str(cell) if cell is not None else "" for cell in row] for row in figure["rows"]] == rows[1:]
    assert all(f"]({Path(path).name})" in index for path in files)
    assert (out / "lengths.png").read_bytes().startswith(b"\x89PNG")
    again = {path.name: path.read_bytes() for path in out.iterdir()}
    export.analyse_systems([Source(folder / "runs", data), Source(folder / "alone.jsonl", data, "alone")], out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == again


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that are about files: drawing takes most of the time."""
    monkeypatch.setattr(export, "render_picture", lambda figure: drawing.Picture(figure.title, figure.name.encode()))


@pytest.mark.usefixtures("undrawn")
def test_a_second_analysis_leaves_nothing_of_the_first(folder: Path) -> None:
    data, out = folder / "questions.jsonl", folder / "out"
    export.analyse_systems([Source(folder / "runs", data)], out)
    assert (out / "runs-alike.png").exists()
    (out / "notes.txt").write_text("my own")
    made = export.analyse_systems([Source(folder / "alone.jsonl", data)], out)
    expected = {path.name for figure in made.figures for path in made.files(figure)} | {"index.md", "notes.txt"}
    assert {path.name for path in out.iterdir()} == expected
    assert not (out / "runs-alike.png").exists()


@pytest.mark.usefixtures("undrawn")
def test_what_cannot_be_drawn_leaves_the_old_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out = folder / "questions.jsonl", folder / "out"
    export.analyse_systems([Source(folder / "alone.jsonl", data)], out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def broken(figure: Figure) -> drawing.Picture:
        if figure.name == "answer-ranks":
            raise RuntimeError("no ink")
        return drawing.Picture("new", b"new")

    monkeypatch.setattr(export, "render_picture", broken)
    with pytest.raises(RuntimeError, match="no ink"):
        export.analyse_systems([Source(folder / "runs", data)], out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("pred", "data", "out", "told"),
    [
        ("missing.jsonl", "questions.jsonl", "out", "is not there"),
        ("alone.jsonl", "runs", "out", "runs"),
        ("alone.jsonl", "questions.jsonl", "alone.jsonl", "cannot be written"),
    ],
)
def test_a_mistake_is_named(folder: Path, pred: str, data: str, out: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        export.analyse_systems([Source(folder / pred, folder / data)], folder / out)


def test_a_mistake_is_one_line(folder: Path) -> None:
    alone, data = folder / "alone.jsonl", folder / "questions.jsonl"
    done = asreader("analyse", alone, data, "--out", folder / "out", "--also", alone)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1 and "same name" in done.stderr
    assert done.stdout == ""
    assert not (folder / "out").exists()


def test_neither_help_nor_training_draws() -> None:
    code = (
        "import sys, asreader.cli, asreader.training.loop, asreader.charts.catalogue;"
        "import asreader.evaluation.breakdowns.systems;"
        "sys.exit('matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_hostile_text_comes_out_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As words, ids, names of systems and of data."""
    monkeypatch.setattr(drawing, "DPI", 50)
    words = tuple(word.replace("\n", "").replace("\t", "").replace(" ", "_") for word in HOSTILE)
    examples = asked(words, 20)
    systems = [
        System(
            name,
            ("one", "two") if number < 2 else ("one",),
            aligned([said(examples, seed) for seed in range(2 if number < 2 else 1)]),
            slices.questions(HOSTILE[-1 - number], examples),
        )
        for number, name in enumerate(HOSTILE)
    ]
    left_out: list[str] = []
    for some in (systems[:4], systems[4:]):
        found = build_figures(some, left_out.append)
        export.write_analysis(export.Analysis(tuple(found), tuple(left_out), tmp_path))
        for path in tmp_path.glob("*.svg"):
            text = path.read_text()
            xml.fromstring(text)
            assert len(text) < 1_000_000
            assert "<script" not in text
        for path in tmp_path.glob("*.png"):
            assert path.read_bytes().startswith(b"\x89PNG")
        index = (tmp_path / "index.md").read_text()
        assert len(index) < 100_000
        assert "<script" not in index and "\u202e" not in index and "\x00" not in index and "![c]" not in index
        lines = (tmp_path / "confident-mistakes.csv").read_text()
        for row in csv.reader(io.StringIO(lines, newline="")):
            assert not row[0].startswith("=")
    whole = next(figure for figure in build_figures(systems, str) if figure.name == "accuracy-by-length")
    names = [row[0] for row in csv.reader(io.StringIO(whole.table.csv(), newline=""))]
    assert f"'{HOSTILE[3]}" in names and HOSTILE[-1] in names  # a CSV file has all of it
    xml.fromstring(drawing.render_svg(whole))  # small multiples


def test_a_dollar_sign_is_a_dollar_sign() -> None:
    examples = asked(("Ada", "Bo", "Cy", "Di", "Ed"))
    asked_of = slices.questions("$d$", examples)
    system = System("$\\alpha_1$ & <b>", ("one",), aligned([said(examples, 1)]), asked_of)
    found = next(figure for figure in build_figures([system], str) if figure.name == "accuracy-by-length")
    root = xml.fromstring(drawing.render_svg(found))
    texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "$\\alpha_1$ & <b>" in texts


def test_the_document_names_every_figure() -> None:
    text = (Path(__file__).parents[2] / "docs" / "analysis.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert [name for row in rows for name in re.findall(r"`([\w-]+)`", row)] == list(FIGURE_BUILDERS)


@pytest.mark.parametrize("count", [7, 9])
def test_any_number_of_systems_is_drawn(count: int, tmp_path: Path) -> None:
    examples = asked(("Ada", "Bo", "Cy", "Di", "Ed"), 12)
    asked_of = slices.questions("made", examples)
    several = [System(f"s{number}", ("run",), aligned([said(examples, number)]), asked_of) for number in range(count)]
    found = next(figure for figure in build_figures(several, str) if figure.name == "accuracy-by-length")
    root = xml.fromstring(drawing.render_svg(found))
    texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text.startswith("s")] == [f"s{number}" for number in range(count)]


def test_one_question_is_enough(tmp_path: Path) -> None:
    examples = asked(("Ada", "Bo", "Cy", "Di", "Ed"), 1)
    (tmp_path / "one.jsonl").write_text("".join(map(jsonl.line, examples)))
    predictions.write(tmp_path / "said.jsonl", said(examples, 1))
    made = export.analyse_systems([Source(tmp_path / "said.jsonl", tmp_path / "one.jsonl")], tmp_path / "out")
    assert {"accuracy-by-length", "calibration", "lengths"} <= {figure.name for figure in made.figures}


def test_data_without_answers_are_refused(tmp_path: Path) -> None:
    examples = asked(("Ada", "Bo", "Cy", "Di", "Ed"), 3)
    bare = [Example(one.id, one.document, one.question, one.candidates) for one in examples]
    (tmp_path / "data.jsonl").write_text("".join(map(jsonl.line, bare)))
    predictions.write(tmp_path / "said.jsonl", said(bare, 1))
    with pytest.raises(InputError, match="no question has a known answer"):
        export.analyse_systems([Source(tmp_path / "said.jsonl", tmp_path / "data.jsonl")], tmp_path / "out")
    assert not os.path.exists(tmp_path / "out")
