"""The paper's result table for runs, against figures worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from asreader.cli import app
from asreader.errors import InputError
from asreader.evaluation import predictions, results
from asreader.evaluation.predictions import Prediction


def run(folder: Path, valid: list[float], test: list[float] | None = None) -> Path:
    """A run that gives the right answer x this probability in each question, and y or z the rest."""
    for split, values in (("valid", valid), ("test", test)):
        if values is not None:
            (folder / "predictions").mkdir(parents=True, exist_ok=True)
            rows = [
                Prediction(f"q{n}", "x", ("y", "x", "z"), [1 - value, value, 0.0])  # type: ignore[arg-type]
                for n, value in enumerate(values)
            ]
            predictions.write(folder / "predictions" / f"{split}.jsonl", rows)
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    run(tmp_path / "a", [0.9, 0.9, 0.1, 0.3], [0.9, 0.1])
    run(tmp_path / "b", [0.9, 0.4, 0.95, 0.3], [0.8, 0.8])
    run(tmp_path / "deep" / "c", [0.9, 0.1, 0.1, 0.1], [0.1, 0.1])
    return tmp_path


def test_the_rows(runs: Path) -> None:
    found = {row.name.split(" (")[0]: row for row in results.rows(results.find([runs]), "cbt-ne")}
    single = found["single reader, the best on validation data"]
    assert (single.valid, single.test, single.paper_valid, single.paper_test) == (0.5, 0.5, 0.738, 0.686)
    assert found["mean of the best 20%"].valid == 0.5
    average = found["average ensemble of the best 70%"]  # a and b: 0.9, 0.65, 0.525, 0.3
    assert (average.valid, average.test) == (0.75, 0.5)
    greedy = found["greedy ensemble"]
    assert (greedy.valid, greedy.paper_test) == (0.75, 0.710)
    assert found["greedy ensemble, answer in the best 2"].valid == 1.0
    assert found["greedy ensemble, answer in the best 5"].paper_test == 0.968
    assert found["best minus worst run"].valid == pytest.approx(0.25)
    assert found["standard deviation between runs"].valid == pytest.approx(0.144338, abs=1e-6)


def test_test_data_count_only_if_every_run_has_them(runs: Path) -> None:
    (runs / "a" / "predictions" / "test.jsonl").unlink()
    assert all(row.test is None for row in results.rows(results.find([runs])))


def test_a_folder_without_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run with predictions"):
        results.find([tmp_path])


def test_one_run_has_no_spread(tmp_path: Path) -> None:
    names = [row.name for row in results.rows([run(tmp_path / "a", [0.9, 0.1])])]
    assert not [name for name in names if "between runs" in name]


@pytest.mark.parametrize(
    ("style", "line"),
    [
        ("markdown", "| greedy ensemble (2) | 75.0 | 50.0 | 76.2 | 71.0 |"),
        ("latex", r"mean of the best 20\% (1 of 3) & 50.0 & 50.0 & 73.3 & 68.4 \\"),
    ],
)
def test_styles(runs: Path, style: str, line: str) -> None:
    done = CliRunner().invoke(app, ["table", str(runs), "--paper", "cbt-ne", "--style", style], catch_exceptions=False)
    assert line in done.stdout.splitlines()


def test_the_terminal_and_programs(runs: Path) -> None:
    shown = CliRunner().invoke(app, ["table", str(runs)], catch_exceptions=False).stdout
    assert "paper" not in shown and "greedy ensemble (2)" in shown
    told = json.loads(CliRunner().invoke(app, ["table", str(runs), "--json"], catch_exceptions=False).stdout)
    assert told[0]["valid"] == 0.5
