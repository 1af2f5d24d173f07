"""The folder that `asreader analyse` writes: complete files, no stale files, escaped text."""

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
from asreader.evaluation.breakdowns.systems import System, SystemSource
from asreader.evaluation.ensembles import AlignedPredictions
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


def make_predictions(examples: list[Example], seed: int) -> list[Prediction]:
    random = Random(seed)
    predicted = []
    for example in examples:
        weights = [2 * random.random() + (word == example.answer) for word in example.candidates]
        probabilities = [weight / sum(weights) for weight in weights]
        predicted.append(Prediction(example.id, example.answer, example.candidates, probabilities))  # type: ignore[arg-type]
    return predicted


def align(runs: Sequence[Sequence[Prediction]]) -> AlignedPredictions:
    """Write predictions to files and read them aligned."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jsonl" for number in range(len(runs))]
        for path, predicted in zip(paths, runs, strict=True):
            predictions.write_predictions(path, predicted)
        return ensembles.align_predictions(paths)


def make_examples(names: tuple[str, ...], count: int = 40) -> list[Example]:
    random = Random(1)
    examples = []
    for number in range(count):
        candidates = tuple(random.sample(names, 3 + number % 3))
        words = tuple(random.choice(candidates) for _ in range(random.randint(5, 30)))
        examples.append(
            Example(f"{candidates[0]} {number}", (words,), ("XXXXX",), candidates, random.choice(candidates))
        )
    return examples


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """questions.jsonl, and predictions on them in runs/seed-1, runs/seed-2 and alone.jsonl."""
    examples = make_examples(("Ada", "Bo", "lamp", "1907", "oil"))
    (tmp_path / "questions.jsonl").write_text("".join(map(jsonl.format_example, examples)))
    for seed in (1, 2):
        predictions.write_predictions(
            tmp_path / "runs" / f"seed-{seed}" / "predictions" / "valid.jsonl", make_predictions(examples, seed)
        )
    predictions.write_predictions(tmp_path / "alone.jsonl", make_predictions(examples, 3))
    return tmp_path


def run_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "asreader", *map(str, arguments)], capture_output=True, text=True)


def test_command_writes_every_figure(folder: Path) -> None:
    data, out = folder / "questions.jsonl", folder / "out"
    done = run_command(
        "analyse", folder / "runs", data, "--out", out, "--also", f"alone={folder / 'alone.jsonl'}", "--json"
    )
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["folder"] == str(out)
    names = [figure["name"] for figure in output["figures"]]
    assert names == [name for name in FIGURE_BUILDERS if name != "accuracy-by-known-answer"]
    assert len(output["left_out"]) == 1
    files = {path for figure in output["figures"] for path in figure["files"]}
    assert files | {str(out / "index.md")} == {str(path) for path in out.iterdir()}
    index = (out / "index.md").read_text()
    for figure in output["figures"]:
        assert f"## {figure['title']}" in index
        rows = list(csv.reader((out / f"{figure['name']}.csv").read_text().splitlines()))
        assert rows[0] == figure["header"]
        assert [[str(cell) if cell is not None else "" for cell in row] for row in figure["rows"]] == rows[1:]
    assert all(f"]({Path(path).name})" in index for path in files)
    assert (out / "lengths.png").read_bytes().startswith(b"\x89PNG")
    again = {path.name: path.read_bytes() for path in out.iterdir()}
    export.analyse_systems(
        [SystemSource(folder / "runs", data), SystemSource(folder / "alone.jsonl", data, "alone")], out
    )
    assert {path.name: path.read_bytes() for path in out.iterdir()} == again


@pytest.fixture
def without_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace drawing, which takes most of the time."""
    monkeypatch.setattr(export, "render_picture", lambda figure: drawing.Picture(figure.title, figure.name.encode()))


@pytest.mark.usefixtures("without_drawing")
def test_second_analysis_deletes_stale_files(folder: Path) -> None:
    data, out = folder / "questions.jsonl", folder / "out"
    export.analyse_systems([SystemSource(folder / "runs", data)], out)
    assert (out / "runs-alike.png").exists()
    (out / "notes.txt").write_text("my own")
    analysis = export.analyse_systems([SystemSource(folder / "alone.jsonl", data)], out)
    expected = {path.name for figure in analysis.figures for path in analysis.files(figure)} | {"index.md", "notes.txt"}
    assert {path.name for path in out.iterdir()} == expected
    assert not (out / "runs-alike.png").exists()


@pytest.mark.usefixtures("without_drawing")
def test_failed_drawing_keeps_the_old_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out = folder / "questions.jsonl", folder / "out"
    export.analyse_systems([SystemSource(folder / "alone.jsonl", data)], out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def fail_to_draw(figure: Figure) -> drawing.Picture:
        if figure.name == "answer-ranks":
            raise RuntimeError("no ink")
        return drawing.Picture("new", b"new")

    monkeypatch.setattr(export, "render_picture", fail_to_draw)
    with pytest.raises(RuntimeError, match="no ink"):
        export.analyse_systems([SystemSource(folder / "runs", data)], out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.parametrize(
    ("pred", "data", "out", "message"),
    [
        ("missing.jsonl", "questions.jsonl", "out", "is not there"),
        ("alone.jsonl", "runs", "out", "runs"),
        ("alone.jsonl", "questions.jsonl", "alone.jsonl", "cannot be written"),
    ],
)
def test_input_error_names_the_mistake(folder: Path, pred: str, data: str, out: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        export.analyse_systems([SystemSource(folder / pred, folder / data)], folder / out)


def test_input_error_is_one_line(folder: Path) -> None:
    alone, data = folder / "alone.jsonl", folder / "questions.jsonl"
    done = run_command("analyse", alone, data, "--out", folder / "out", "--also", alone)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1 and "same name" in done.stderr
    assert done.stdout == ""
    assert not (folder / "out").exists()


def test_help_and_training_do_not_import_matplotlib() -> None:
    code = (
        "import sys, asreader.cli, asreader.training.loop, asreader.charts.catalogue;"
        "import asreader.evaluation.breakdowns.systems;"
        "sys.exit('matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_hostile_text_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words, ids, and names of systems and data."""
    monkeypatch.setattr(drawing, "DPI", 50)
    words = tuple(word.replace("\n", "").replace("\t", "").replace(" ", "_") for word in HOSTILE)
    examples = make_examples(words, 20)
    systems = [
        System(
            name,
            ("one", "two") if number < 2 else ("one",),
            align([make_predictions(examples, seed) for seed in range(2 if number < 2 else 1)]),
            slices.describe_questions(HOSTILE[-1 - number], examples),
        )
        for number, name in enumerate(HOSTILE)
    ]
    left_out: list[str] = []
    for subset in (systems[:4], systems[4:]):
        figures = build_figures(subset, left_out.append)
        export.write_analysis(export.Analysis(tuple(figures), tuple(left_out), tmp_path))
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
    names = [row[0] for row in csv.reader(io.StringIO(whole.table.to_csv(), newline=""))]
    assert f"'{HOSTILE[3]}" in names and HOSTILE[-1] in names  # a CSV file has all of it
    xml.fromstring(drawing.render_svg(whole))  # small multiples


def test_dollar_sign_is_not_math() -> None:
    examples = make_examples(("Ada", "Bo", "Cy", "Di", "Ed"))
    questions = slices.describe_questions("$d$", examples)
    system = System("$\\alpha_1$ & <b>", ("one",), align([make_predictions(examples, 1)]), questions)
    figure = next(figure for figure in build_figures([system], str) if figure.name == "accuracy-by-length")
    root = xml.fromstring(drawing.render_svg(figure))
    texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "$\\alpha_1$ & <b>" in texts


def test_documentation_names_every_figure() -> None:
    text = (Path(__file__).parents[2] / "docs" / "analysis.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert [name for row in rows for name in re.findall(r"`([\w-]+)`", row)] == list(FIGURE_BUILDERS)


@pytest.mark.parametrize("count", [7, 9])
def test_many_systems_are_drawn(count: int, tmp_path: Path) -> None:
    examples = make_examples(("Ada", "Bo", "Cy", "Di", "Ed"), 12)
    questions = slices.describe_questions("made", examples)
    several = [
        System(f"s{number}", ("run",), align([make_predictions(examples, number)]), questions)
        for number in range(count)
    ]
    figure = next(figure for figure in build_figures(several, str) if figure.name == "accuracy-by-length")
    root = xml.fromstring(drawing.render_svg(figure))
    texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text.startswith("s")] == [f"s{number}" for number in range(count)]


def test_one_question_can_be_analysed(tmp_path: Path) -> None:
    examples = make_examples(("Ada", "Bo", "Cy", "Di", "Ed"), 1)
    (tmp_path / "one.jsonl").write_text("".join(map(jsonl.format_example, examples)))
    predictions.write_predictions(tmp_path / "predictions.jsonl", make_predictions(examples, 1))
    analysis = export.analyse_systems(
        [SystemSource(tmp_path / "predictions.jsonl", tmp_path / "one.jsonl")], tmp_path / "out"
    )
    assert {"accuracy-by-length", "calibration", "lengths"} <= {figure.name for figure in analysis.figures}


def test_data_without_answers_are_an_error(tmp_path: Path) -> None:
    examples = make_examples(("Ada", "Bo", "Cy", "Di", "Ed"), 3)
    bare = [Example(one.id, one.document, one.question, one.candidates) for one in examples]
    (tmp_path / "data.jsonl").write_text("".join(map(jsonl.format_example, bare)))
    predictions.write_predictions(tmp_path / "predictions.jsonl", make_predictions(bare, 1))
    with pytest.raises(InputError, match="no question has a known answer"):
        export.analyse_systems(
            [SystemSource(tmp_path / "predictions.jsonl", tmp_path / "data.jsonl")], tmp_path / "out"
        )
    assert not os.path.exists(tmp_path / "out")
