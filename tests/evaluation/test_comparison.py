"""Comparisons of two systems, against tests worked out by enumeration and counts made question by question."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from asreader.cli import app
from asreader.errors import InputError
from asreader.evaluation import bootstrap, comparison, predictions
from asreader.evaluation.comparison import compare_systems, run_mcnemar_test, run_permutation_test
from asreader.evaluation.predictions import Prediction


def save(path: Path, *rows: tuple[str, str | None, dict[str, float]]) -> Path:
    predictions.write_predictions(
        path, [Prediction(id, answer, tuple(said), list(said.values())) for id, answer, said in rows]
    )  # type: ignore[arg-type]
    return path


@given(st.integers(0, 6), st.integers(0, 6))
def test_mcnemar_is_the_share_of_all_tosses_that_are_as_uneven(one: int, two: int) -> None:
    tosses = list(product((0, 1), repeat=one + two))
    uneven = [toss for toss in tosses if abs(2 * sum(toss) - one - two) >= abs(one - two)]
    found = run_mcnemar_test(one, two)
    assert found.p == pytest.approx(len(uneven) / len(tosses))
    assert found.least == pytest.approx(run_mcnemar_test(0, one + two).p)
    assert run_mcnemar_test(two, one) == found


def test_mcnemar_of_very_many_questions() -> None:
    """Twenty thousand tosses: nearly the normal distribution, and not infinitely slow."""
    found = run_mcnemar_test(9_900, 10_100).p
    assert found == pytest.approx(math.erfc((200 - 1) / math.sqrt(20_000) / math.sqrt(2)), rel=1e-3)
    assert run_mcnemar_test(0, 5_000).p == 0  # less than any number there is


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_the_permutation_test_is_the_share_of_all_deals_that_are_as_far_apart(one: list[int], two: list[int]) -> None:
    pooled = [*one, *two]

    def apart(chosen: tuple[int, ...]) -> float:
        ours = [pooled[run] for run in chosen]
        theirs = [pooled[run] for run in range(len(pooled)) if run not in chosen]
        return abs(sum(ours) / len(ours) - sum(theirs) / len(theirs))

    deals = list(combinations(range(len(pooled)), len(one)))
    hits = [deal for deal in deals if apart(deal) >= apart(tuple(range(len(one)))) - 1e-12]
    assert run_permutation_test(one, two).p == pytest.approx(len(hits) / len(deals))
    assert run_permutation_test(one, two).least <= run_permutation_test(one, two).p


def test_very_many_deals_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = [10, 12, 15, 11, 14], [13, 16, 17, 12, 18]
    exact = run_permutation_test(one, two)
    monkeypatch.setattr(comparison, "MAX_PERMUTATIONS", 250)
    drawn = run_permutation_test(one, two)
    assert "250 draws" in drawn.test and "exact" in exact.test
    assert drawn.p == pytest.approx(exact.p, abs=0.06)
    assert run_permutation_test(one, two) == drawn


def test_two_runs_counted_question_by_question(invented: Path) -> None:
    one, two = (invented / "runs" / f"hidden-{hidden}" / "seed-1" for hidden in (128, 256))
    found = compare_systems(one, two)
    ours, theirs = (
        {row.id: row for row in predictions.read_predictions(run / "predictions" / "valid.jsonl")} for run in (one, two)
    )
    counts: Counter[tuple[bool, bool]] = Counter()
    flipped = set()
    for id, row in ours.items():
        right = tuple(said.candidates[said.best] == said.answer for said in (row, theirs[id]))
        counts[right[0], right[1]] += 1
        flipped |= {id} if right[0] != right[1] else set()
    assert (found.both, found.only_first) == (counts[True, True], counts[True, False])
    assert (found.only_second, found.neither) == (counts[False, True], counts[False, False])
    assert found.questions == len(ours)
    assert found.first.accuracy == pytest.approx((found.both + found.only_first) / len(ours))
    assert found.difference == pytest.approx((found.only_first - found.only_second) / len(ours))
    assert found.interval[0] < found.difference < found.interval[1]
    assert found.evidence == run_mcnemar_test(found.only_first, found.only_second)
    assert {flip.id for flip in found.flips} == flipped
    for flip in found.flips:
        row = ours[flip.id]
        assert flip.first_probability == pytest.approx(float(row.probabilities[row.candidates.index(flip.answer)]))
        assert flip.second == theirs[flip.id].candidates[theirs[flip.id].best]
    swings = [abs(flip.first_probability - flip.second_probability) for flip in found.flips]
    assert swings == sorted(swings, reverse=True)


def test_the_other_way_round_everything_is_mirrored(invented: Path) -> None:
    one, two = (invented / "runs" / f"hidden-{hidden}" for hidden in (128, 256))
    for first, second in ((one, two), (one / "seed-1", two / "seed-2"), (one / "seed-1", two)):
        there, back = compare_systems(first, second), compare_systems(second, first)
        assert (there.first, there.only_first) == (back.second, back.only_second)
        assert there.difference == pytest.approx(-back.difference)
        assert there.evidence == back.evidence
        assert there.interval == pytest.approx([-back.interval[1], -back.interval[0]], abs=0.02)  # other draws


def test_several_runs_a_side(invented: Path) -> None:
    one, two = (invented / "runs" / f"hidden-{hidden}" for hidden in (128, 256))
    found = compare_systems(one, two, split="test")
    files = [sorted(side.glob("*/predictions/test.jsonl")) for side in (one, two)]
    right = [
        [[row.candidates[row.best] == row.answer for row in predictions.read_predictions(file)] for file in side]
        for side in files
    ]
    accuracies = [[sum(run) / len(run) for run in side] for side in right]
    for side, own in zip((found.first, found.second), accuracies, strict=True):
        assert side.runs == 4
        assert side.accuracy == pytest.approx(np.mean(own))
        assert side.deviation == pytest.approx(np.std(own, ddof=1))
    assert found.difference == pytest.approx(found.first.accuracy - found.second.accuracy)
    assert found.interval == bootstrap.compute_difference_interval(np.array(right[0]), np.array(right[1]))
    assert found.evidence == run_permutation_test(*[[sum(run) for run in side] for side in right])
    assert found.both + found.only_first + found.only_second + found.neither == found.questions == 250
    assert len(found.flips) == found.only_first + found.only_second


def test_runs_vote_and_a_tied_vote_goes_by_the_data_s_order(tmp_path: Path) -> None:
    x, y = {"x": 0.9, "y": 0.1}, {"x": 0.2, "y": 0.8}
    for seed, (tied, clear) in enumerate([(x, y), (x, x), (y, x), (y, x)]):
        (tmp_path / "a" / str(seed) / "predictions").mkdir(parents=True)
        rows = ("tied", "y", tied), ("clear", "x", clear)
        save(tmp_path / "a" / str(seed) / "predictions" / "valid.jsonl", *rows)
    rival = save(tmp_path / "b.jsonl", ("clear", "x", {"y": 0.6, "x": 0.4}), ("tied", "y", {"y": 0.6, "x": 0.4}))
    found = compare_systems(tmp_path / "a", rival)
    flips = {flip.id: flip for flip in found.flips}
    assert (flips["tied"].first, flips["tied"].second) == ("x", "y")  # wrong, though two of four say y
    assert flips["tied"].first_probability == pytest.approx((0.1 + 0.1 + 0.8 + 0.8) / 4)
    assert (flips["clear"].first, flips["clear"].second) == ("x", "y")
    assert (found.both, found.only_first, found.only_second, found.neither) == (0, 1, 1, 0)
    assert found.first.accuracy == pytest.approx((0 + 0.5 + 1 + 1) / 4)


def test_a_tie_never_favours_the_right_answer(tmp_path: Path) -> None:
    even = {"x": 0.5, "y": 0.5}
    one = save(tmp_path / "1", ("a", "y", even), ("b", "x", even), ("c", "z", even))
    two = save(tmp_path / "2", ("c", "z", {"y": 0.5, "x": 0.5}), ("a", "y", {"y": 0.5, "x": 0.5}), ("b", "x", even))
    found = compare_systems(one, two)
    assert (found.both, found.neither, found.flips) == (1, 2, ())
    assert (found.evidence.p, found.difference) == (1.0, 0.0)


def test_questions_without_an_answer_do_not_count(tmp_path: Path) -> None:
    one = save(tmp_path / "1", ("a", None, {"x": 1.0}), ("b", "x", {"x": 0.9, "y": 0.1}))
    two = save(tmp_path / "2", ("a", None, {"x": 1.0}), ("b", "x", {"x": 0.1, "y": 0.9}))
    found = compare_systems(one, two)
    assert (found.questions, found.only_first, found.neither) == (1, 1, 0)
    nobody = save(tmp_path / "3", ("a", None, {"x": 1.0}))
    with pytest.raises(InputError, match="no question has a known answer"):
        compare_systems(nobody, nobody)


def test_flips_have_their_questions_if_the_data_are_named(invented: Path, tmp_path: Path) -> None:
    one, two = (invented / "runs" / f"hidden-{hidden}" / "seed-1" for hidden in (128, 256))
    found = compare_systems(one, two, data=invented / "valid.jsonl")
    for flip in found.flips:
        assert flip.question == f"XXXXX found lamp-{flip.id[1:]} ."
    CliRunner().invoke(app, ["prepare", str(invented / "valid.jsonl"), "--out", str(tmp_path / "store")])
    assert compare_systems(one, two, data=tmp_path / "store") == found
    with pytest.raises(InputError, match=r"holds no valid questions|another answer"):
        compare_systems(one, two, data=invented / "test.jsonl")
    files = [run / "predictions" / "valid.jsonl" for run in (one, two)]
    with pytest.raises(InputError, match=r"test\.jsonl: the question 'q\d+' has another answer"):
        compare_systems(files[0], files[1], data=invented / "test.jsonl")
    (tmp_path / "few.jsonl").write_text((invented / "valid.jsonl").read_text().splitlines()[0] + "\n")
    with pytest.raises(InputError, match=r"few\.jsonl: the question 'q\d+' is not in it"):
        compare_systems(files[0], files[1], data=tmp_path / "few.jsonl")


def test_files_of_different_data_and_damaged_files_are_one_line(invented: Path, tmp_path: Path) -> None:
    valid = invented / "runs" / "hidden-128" / "seed-1" / "predictions" / "valid.jsonl"
    with pytest.raises(InputError, match=r"test\.jsonl: the question 'q0' has another answer than in .*valid\.jsonl"):
        compare_systems(valid, valid.with_name("test.jsonl"))
    empty, damaged = tmp_path / "empty.jsonl", tmp_path / "damaged.jsonl"
    empty.write_text("\n")
    damaged.write_bytes(valid.read_bytes()[:-30])
    for file, reason in ((empty, "empty.jsonl: holds no predictions"), (damaged, "damaged.jsonl:200: not a line")):
        for pair in ((valid, file), (file, valid)):
            with pytest.raises(InputError, match=reason):
                compare_systems(*pair)
    with pytest.raises(InputError, match="is not there"):
        compare_systems(valid, tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no run with predictions/valid\.jsonl"):
        compare_systems(tmp_path, valid, split="test")


def test_the_command(invented: Path) -> None:
    words = ["compare", *(str(invented / "runs" / name / "seed-1") for name in ("hidden-128", "hidden-256"))]
    told = json.loads(CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False).stdout)
    found = compare_systems(Path(words[1]), Path(words[2]))
    assert told == json.loads(json.dumps(found.as_json()))
    wide = {"COLUMNS": "300"}
    shown = CliRunner().invoke(app, [*words, "--show", "3"], catch_exceptions=False, env=wide).stdout
    cells = [line.split() for line in shown.splitlines()]
    assert ["A", "right", str(found.both), str(found.only_first)] in cells
    assert ["A", "wrong", str(found.only_second), str(found.neither)] in cells
    assert f"{100 * found.difference:+.2f} points" in shown
    assert "exact McNemar test, two-sided: p = " in shown and "by this test" in shown
    assert shown.count("  q") == 6
    asked = ["--show", "1", "--data", str(invented / "valid.jsonl")]
    assert CliRunner().invoke(app, [*words, *asked], catch_exceptions=False, env=wide).stdout.count("XXXXX") == 2
    assert "Only A" not in CliRunner().invoke(app, [*words, "--show", "0"], catch_exceptions=False).stdout


def test_too_few_runs_are_said_to_be_too_few(invented: Path) -> None:
    one, two = (invented / "runs" / f"hidden-{hidden}" for hidden in (128, 256))
    words = ["compare", str(one / "seed-1"), str(two), "--show", "0"]
    shown = CliRunner().invoke(app, words, catch_exceptions=False, env={"COLUMNS": "300"}).stdout
    assert "cannot be below 0.2 here" in shown and "permutation test on runs" in shown
