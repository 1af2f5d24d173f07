"""Calibration against slow and obvious computations: loops over questions, a search over a grid of temperatures."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.errors import InputError
from asreader.evaluation.calibration import (
    BINS,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    apply_temperature,
    fit_temperature,
    judge_answers,
    measure_coverage,
    measure_reliability,
)
from asreader.evaluation.metrics import score_predictions
from asreader.evaluation.predictions import Prediction

NAMES = ("Ada", "Bo", "Cy", "Di")


def invented(questions: int, seed: int = 1, power: float = 1.0) -> list[Prediction]:
    """Answers drawn from a known distribution, told raised to a power: right at 1, too sure above."""
    random = Random(seed)
    found = []
    for number in range(questions):
        truth = [random.gammavariate(0.5, 1) for _ in NAMES]
        answer = random.choices(NAMES, truth)[0]
        told = np.array(truth) ** power
        found.append(Prediction(f"q{number}", answer, NAMES, (told / told.sum()).astype(np.float32)))
    return found


@pytest.mark.parametrize("questions", [3, 10, 57, 200])
def test_bins_are_those_of_a_loop(questions: int) -> None:
    those = invented(questions)
    ranked = sorted(those, key=lambda one: float(max(one.probabilities)))
    found = measure_reliability(those)
    sizes = [part.questions for part in found.bins]
    assert sum(sizes) == questions and max(sizes) - min(sizes) <= 1 and len(sizes) == min(BINS, questions)
    error = 0.0
    for part in found.bins:
        own, ranked = ranked[: part.questions], ranked[part.questions :]
        sure = [float(max(one.probabilities)) for one in own]
        right = [one.candidates[one.best] == one.answer for one in own]
        assert (part.lowest, part.highest) == (min(sure), max(sure))
        assert part.confidence == pytest.approx(sum(sure) / len(sure))
        assert part.accuracy == sum(right) / len(right)
        assert part.interval[0] <= part.accuracy <= part.interval[1]
        error += abs(sum(sure) - sum(right)) / questions
    assert found.error == pytest.approx(error)


def test_coverage_is_that_of_a_loop() -> None:
    those = invented(60)
    found = measure_coverage(those)
    for threshold in (*found.thresholds.tolist(), 0.0, 0.5, 0.77):
        kept = [one for one in those if float(max(one.probabilities)) >= threshold]
        point = found.find_point(threshold)
        assert point.coverage == pytest.approx(len(kept) / len(those))
        assert point.accuracy == pytest.approx(score_predictions(kept).accuracy)
    assert found.coverage[0] == 1 and found.accuracy[0] == score_predictions(those).accuracy
    assert found.find_point(1.1).coverage == 0 and found.find_point(1.1).accuracy is None


def test_equal_confidence_is_one_threshold() -> None:
    those = [Prediction(str(n), "Ada", ("Ada", "Bo"), [0.75, 0.25]) for n in range(3)]  # type: ignore[arg-type]
    found = measure_coverage([*those, Prediction("x", "Bo", ("Ada", "Bo"), [0.75, 0.25])])  # type: ignore[arg-type]
    assert (found.thresholds.tolist(), found.coverage.tolist(), found.accuracy.tolist()) == ([0.75], [1.0], [0.75])


def loss(those: list[Prediction], heat: float) -> float:
    """Minus the log likelihood at a temperature, question by question."""
    total = 0.0
    for one in those:
        raised = {word: float(p) ** (1 / heat) for word, p in zip(one.candidates, one.probabilities, strict=True)}
        total -= math.log(raised[str(one.answer)] / sum(raised.values()))
    return total


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_the_temperature_is_the_best_of_a_grid(power: float) -> None:
    those = invented(150, power=power)
    found = fit_temperature(those)
    grid = [math.exp(step / 100) for step in range(-200, 201)]
    best = min(grid, key=lambda heat: loss(those, heat))
    assert found == pytest.approx(best, rel=0.011)  # one step
    assert loss(those, found) <= loss(those, best)


def test_the_temperature_undoes_what_made_the_reader_too_sure() -> None:
    told = invented(2000, power=3.0)
    heat = fit_temperature(told)
    assert heat == pytest.approx(3, rel=0.1)
    cooled = apply_temperature(told, heat)
    assert [one.best for one in cooled] == [one.best for one in told]
    assert measure_reliability(cooled).error < measure_reliability(told).error / 3
    assert fit_temperature(cooled) == pytest.approx(1, rel=1e-3)


@given(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3]), min_size=1, max_size=5), st.sampled_from([0.3, 1.0, 4.0]))
def test_tempered_shares_are_powers_that_sum_to_one(values: list[float], heat: float) -> None:
    one = Prediction("q", "a", tuple("abcde"[: len(values)]), np.array(values, dtype=np.float32))
    (found,) = apply_temperature([one], heat)
    assert found.best == one.best
    if any(values):
        total = sum(value ** (1 / heat) for value in values)
        assert found.probabilities == pytest.approx([value ** (1 / heat) / total for value in values], rel=1e-5)
    else:
        assert not found.probabilities.any()


def test_a_reader_that_is_always_right_or_says_nothing_has_a_temperature_too() -> None:
    right = Prediction("q", "Ada", ("Ada", "Bo"), [0.6, 0.4])  # type: ignore[arg-type]
    wrong = Prediction("q", "Bo", ("Ada", "Bo"), [0.6, 0.4])  # type: ignore[arg-type]
    even = Prediction("q", "Bo", ("Ada", "Bo"), [0.5, 0.5])  # type: ignore[arg-type]
    assert fit_temperature([right]) == pytest.approx(MIN_TEMPERATURE, rel=1e-6)
    assert fit_temperature([wrong]) == pytest.approx(MAX_TEMPERATURE, rel=1e-6)
    assert fit_temperature([even]) == 1


def test_ties_copies_and_empty_candidates() -> None:
    tie = Prediction("1", "Bo", ("Ada", "Bo"), [0.5, 0.5])  # type: ignore[arg-type]
    copy = Prediction("2", "Bo", ("", "Bo", "Bo"), [0.9, 0.1, 0.8])  # type: ignore[arg-type]
    nothing = Prediction("3", "Bo", (), [])  # type: ignore[arg-type]
    unknown = Prediction("4", None, ("Ada",), [1.0])  # type: ignore[arg-type]
    found = judge_answers([tie, copy, nothing, unknown])
    assert found.correct.tolist() == [False, True, False]
    assert found.confidence.tolist() == pytest.approx([0.5, 0.1, 0.0])
    assert apply_temperature([copy], 2.0)[0].probabilities.tolist() == [0, 1, 0]


def test_questions_without_answers_are_no_measure() -> None:
    unknown = Prediction("1", None, ("Ada",), [1.0])  # type: ignore[arg-type]
    missed = Prediction("2", "Bo", ("Ada", "Bo"), [1.0, 0.0])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="nothing to judge"):
        measure_reliability([unknown])
    with pytest.raises(InputError, match="no temperature can be fitted"):
        fit_temperature([unknown, missed])
