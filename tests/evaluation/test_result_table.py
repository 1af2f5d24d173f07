"""The paper's result table for runs, against figures worked out by hand and by enumeration."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from asreader.cli import app, tables
from asreader.errors import InputError
from asreader.evaluation import bootstrap, ensembles, predictions, published_accuracies, result_table
from asreader.evaluation.metrics import score_predictions
from asreader.evaluation.predictions import Prediction
from asreader.evaluation.result_table import ResultRow
from asreader.runs.run_search import find_predicted_runs


def run(folder: Path, valid: list[float], test: list[float] | None = None) -> Path:
    """A run that gives the right answer x this probability in each question, and y or z the rest."""
    for split, values in (("valid", valid), ("test", test)):
        if values is not None:
            (folder / "predictions").mkdir(parents=True, exist_ok=True)
            rows = [
                Prediction(f"q{n}", "x", ("y", "x", "z"), [1 - value, value, 0.0])  # type: ignore[arg-type]
                for n, value in enumerate(values)
            ]
            predictions.write_predictions(folder / "predictions" / f"{split}.jsonl", rows)
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    run(tmp_path / "a", [0.9, 0.9, 0.1, 0.3], [0.9, 0.1])
    run(tmp_path / "b", [0.9, 0.4, 0.95, 0.3], [0.8, 0.8])
    run(tmp_path / "deep" / "c", [0.9, 0.1, 0.1, 0.1], [0.1, 0.1])
    return tmp_path


def named(folder: Path, paper: str | None = None) -> dict[str, ResultRow]:
    return {row.name.split(" (")[0]: row for row in result_table.build_rows(find_predicted_runs([folder]), paper)}


def test_the_rows(runs: Path) -> None:
    found = named(runs, "cbt-ne")
    single = found["best single reader"]
    assert (single.valid, single.test, single.paper_valid, single.paper_test) == (0.5, 0.5, 0.738, 0.686)
    assert found["mean of best 20%"].valid == 0.5
    average = found["average ensemble, 70%"]  # a and b: 0.9, 0.65, 0.525, 0.3
    assert (average.valid, average.test) == (0.75, 0.5)
    everyone = found["average ensemble, all"]  # 0.9, 0.47, 0.38, 0.23
    assert (everyone.valid, everyone.paper_valid) == (0.25, None)
    greedy = found["greedy ensemble"]
    assert (greedy.valid, greedy.paper_test) == (0.75, 0.710)
    assert found["greedy, answer in best 1"].valid == 0.75
    assert found["greedy, answer in best 2"].valid == 1.0
    assert found["greedy, answer in best 5"].paper_test == 0.968
    assert found["single, answer in best 1"].valid == single.valid
    assert found["best minus worst run"].valid == pytest.approx(0.25)
    assert found["standard deviation of all runs"].valid == pytest.approx(0.144338, abs=1e-6)
    assert found["expected best of 2 runs"].valid == pytest.approx((0.5 + 0.5 + 0.5) / 3)
    assert found["expected best of 1 run"].test == pytest.approx((0.5 + 1 + 0) / 3)


def test_test_data_count_only_if_every_run_has_them(runs: Path) -> None:
    (runs / "a" / "predictions" / "test.jsonl").unlink()
    assert all(
        row.test is None and row.test_interval is None for row in result_table.build_rows(find_predicted_runs([runs]))
    )


def test_links_to_runs_are_followed_and_every_run_counts_once(
    runs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    collected = tmp_path_factory.mktemp("collected")
    for name in ("a", "b", "deep"):
        (collected / name).symlink_to(runs / name)
    (collected / "deep" / "again").symlink_to(collected)
    assert find_predicted_runs([collected]) == [collected / "a", collected / "b", collected / "deep" / "c"]


def test_a_folder_without_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run with predictions"):
        find_predicted_runs([tmp_path])


def test_one_run_has_no_spread(tmp_path: Path) -> None:
    parts = {row.part for row in result_table.build_rows([run(tmp_path / "a", [0.9, 0.1])])}
    assert parts == {"readers", "ensembles", "top k"}


@pytest.mark.parametrize("drawn", [1, 2, 3, 5])
def test_the_expected_best_is_the_mean_over_all_draws(invented: Path, drawn: int) -> None:
    """Every way to take so many runs: the best on validation data, the first of equals, and its test accuracy."""
    runs = find_predicted_runs([invented])
    scored = [
        [
            score_predictions(predictions.read_predictions(run / "predictions" / f"{split}.jsonl")).accuracy
            for split in ("valid", "test")
        ]
        for run in runs
    ]
    chosen = [max(draw, key=lambda one: scored[one][0]) for draw in itertools.combinations(range(len(runs)), drawn)]
    ranked = sorted(range(len(runs)), key=lambda one: -scored[one][0])
    chances = [chosen.count(one) / len(chosen) for one in ranked]
    assert result_table.compute_best_of_probabilities(len(runs), drawn).tolist() == pytest.approx(chances)
    if drawn in result_table.BEST_OF:
        row = named(invented)[f"expected best of {drawn} run{'s' if drawn > 1 else ''}"]
        assert row.valid == pytest.approx(np.mean([scored[one][0] for one in chosen]))
        assert row.test == pytest.approx(np.mean([scored[one][1] for one in chosen]))


def test_chances_of_the_paper_s_84_runs_sum_to_one() -> None:
    for drawn in (1, 2, 50, 84):
        chances = result_table.compute_best_of_probabilities(84, drawn)
        assert math.fsum(chances) == pytest.approx(1)
        assert chances[0] == pytest.approx(drawn / 84)


def test_seeds_of_a_setting(invented: Path) -> None:
    found = named(invented)
    for hidden in (128, 256):
        row = found[f"mean of 4 seeds, hidden={hidden}"]
        for split, mean, deviation in (
            ("valid", row.valid, row.valid_deviation),
            ("test", row.test, row.test_deviation),
        ):
            own = [
                score_predictions(predictions.read_predictions(file)).accuracy
                for file in sorted((invented / "runs" / f"hidden-{hidden}").glob(f"*/predictions/{split}.jsonl"))
            ]
            assert mean == pytest.approx(sum(own) / 4)
            assert deviation == pytest.approx(math.sqrt(sum((one - sum(own) / 4) ** 2 for one in own) / 3))


def test_every_accuracy_has_the_interval_of_its_questions(invented: Path) -> None:
    """Of the single reader, of the mean of one setting's runs and of the greedy ensemble, on test data."""
    found = named(invented)
    runs = find_predicted_runs([invented])
    said = {run: predictions.read_predictions(run / "predictions" / "test.jsonl") for run in runs}
    right = {run: [one.candidates[one.best] == one.answer for one in rows] for run, rows in said.items()}
    valid = [
        score_predictions(predictions.read_predictions(run / "predictions" / "valid.jsonl")).accuracy for run in runs
    ]
    single = right[runs[valid.index(max(valid))]]
    mean = np.mean([right[run] for run in runs if "hidden-128" in str(run)], axis=0)
    members = ensembles.select_greedily(
        ensembles.align_predictions([run / "predictions" / "valid.jsonl" for run in runs])
    ).members
    together = [
        np.mean([said[runs[member]][number].probabilities for member in members], axis=0).argmax()
        for number in range(250)
    ]
    greedy = [
        one.candidates[choice] == one.answer for choice, one in zip(together, said[runs[0]], strict=True)
    ]  # fmt: skip
    slow = bootstrap.compute_mean_intervals(np.array([single, mean, greedy], dtype=float))
    names = ("best single reader", "mean of 4 seeds, hidden=128", "greedy ensemble")
    for name, interval in zip(names, slow, strict=True):
        assert found[name].test_interval == pytest.approx(interval)
    for row in found.values():
        assert (row.valid_interval is None) == (row.part == "spread")
        if row.valid_interval and row.valid:
            assert row.valid_interval[0] <= row.valid <= row.valid_interval[1]


def test_cross_validated_rows_have_no_test_figure(invented: Path) -> None:
    found = named(invented)
    valid = ensembles.align_predictions(
        [run / "predictions" / "valid.jsonl" for run in find_predicted_runs([invented])]
    )
    for name, choice in (("greedy", ensembles.select_greedily), ("weighted", ensembles.fit_weights)):
        crossed = ensembles.cross_validate(valid, choice)
        assert crossed is not None
        row = found[f"{name}, cross-validated"]
        assert (row.valid, row.test) == (pytest.approx(crossed.mean()), None)


def test_the_other_systems_of_the_paper(runs: Path) -> None:
    for paper, systems in published_accuracies.OTHER_SYSTEMS.items():
        rows = [
            row for row in result_table.build_rows(find_predicted_runs([runs]), paper) if row.part == "other systems"
        ]
        assert [row.name for row in rows] == list(systems)
        assert all(row.valid is None and row.test is None and row.paper_test is not None for row in rows)
    named_systems = " ".join(name for systems in published_accuracies.OTHER_SYSTEMS.values() for name in systems)
    for system in ("Attentive", "Impatient", "MemNN", "Dynamic Entity", "Chen", "LSTM", "humans"):
        assert system in named_systems
    # The paper's text compares its ensembles with the best of these: section 5.3 and the table of k = 1, 2, 5.
    for paper, top in published_accuracies.TOP_K_ACCURACY.items():
        assert top[1] == published_accuracies.ATTENTION_SUM_READER[paper]["greedy"].test


def shown(folder: Path, *words: str, columns: int = 200) -> list[str]:
    done = CliRunner().invoke(
        app, ["table", str(folder), *words], catch_exceptions=False, env={"COLUMNS": str(columns)}
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("style", "line"),
    [
        ("markdown", "| greedy ensemble (2) | 75.0 (25.0–100.0) | 50.0 (0.0–100.0) | 76.2 | 71.0 |"),
        ("latex", r"mean of best 20\% (1 of 3) & 50.0 (0.0--100.0) & 50.0 (0.0--100.0) & 73.3 & 68.4 \\"),
    ],
)
def test_styles(runs: Path, style: str, line: str) -> None:
    assert line in shown(runs, "--paper", "cbt-ne", "--style", style)


def test_latex_is_that_of_booktabs_with_a_rule_between_parts(invented: Path) -> None:
    lines = shown(invented, "--style", "latex")
    assert lines[0].startswith("% ") and lines[1:3] == [r"\begin{tabular}{lrr}", r"\toprule"]
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    parts = {row.part for row in result_table.build_rows(find_predicted_runs([invented]))}
    assert lines.count(r"\midrule") == len(parts)
    assert not [line for line in lines[1:] if "±" in line or "–" in line]
    assert all(line.count(" & ") == 2 for line in lines if line.endswith(r"\\"))


def test_names_cannot_break_out_of_a_table() -> None:
    row = ResultRow(r"a_b & 50% of $x$ #1 {\x} ~^ |*<i>", 0.5)
    latex = str(tables.format_results([row], "latex"))
    assert (
        r"a\_b \& 50\% of \$x\$ \#1 \{\textbackslash{}x\} \textasciitilde{}\textasciicircum{} |*<i> & 50.0 \\" in latex
    )
    assert r"| a\_b & 50% of $x$ #1 {\\x} ~^ \|\*\<i\> | 50.0 |" in str(tables.format_results([row], "markdown"))
    assert "| a b | 50.0 |" in str(tables.format_results([ResultRow("a\nb", 0.5)], "markdown"))


@pytest.mark.parametrize("columns", [80, 120])
def test_a_narrow_terminal_stays_readable(invented: Path, columns: int) -> None:
    """No line is longer than the terminal, every figure is whole, and all stand in their column."""
    lines = shown(invented, "--paper", "cnn", columns=columns)
    assert max(map(len, lines)) <= columns
    title = next(line for line in lines if "valid" in line and "test" in line)
    for row in result_table.build_rows(find_predicted_runs([invented]), "cnn"):
        if row.valid is not None:
            cell = f"{100 * row.valid:4.1f}" + (" ± " if row.valid_deviation else " (" if row.valid_interval else "  ")
            assert any(line[title.index("valid") :].startswith(cell) for line in lines), row.name
    assert [line for line in lines if line.rstrip().endswith("61.6   63.0")]


def test_the_terminal_and_programs(runs: Path) -> None:
    lines = shown(runs)
    assert not [line for line in lines if "paper" in line]
    assert [line for line in lines if line.startswith("greedy ensemble (2) ")]
    told = json.loads(CliRunner().invoke(app, ["table", str(runs), "--json"], catch_exceptions=False).stdout)
    assert told[0]["valid"] == 0.5 and told[0]["valid_interval"] == [0.0, 1.0]
