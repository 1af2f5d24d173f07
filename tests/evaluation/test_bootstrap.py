"""Intervals against an independent loop that draws one question at a time, and against exact probabilities."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest

from asreader.evaluation import bootstrap


def quantile(values: list[float], share: float) -> float:
    """Of sorted values, between neighbours where it falls between."""
    ranked = sorted(values)
    place = share * (len(ranked) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (place - below) * (ranked[above] - ranked[below])


def test_intervals_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(1)
    credits = np.array([[random.random() < 0.7 for _ in range(30)], [random.random() for _ in range(30)]], dtype=float)
    generator = np.random.default_rng((5, 0))
    slow: list[list[float]] = [[], []]
    for _ in range(200):
        places = generator.integers(30, size=30).tolist()
        for figure, own in enumerate(credits.tolist()):
            slow[figure].append(sum(own[place] for place in places) / 30)
    wanted = [(quantile(values, 0.025), quantile(values, 0.975)) for values in slow]
    assert np.allclose(bootstrap.compute_mean_intervals(credits, 200, 5), wanted)
    monkeypatch.setattr(bootstrap, "BUFFER_SIZE", 70)  # two draws at a time: portions change nothing
    assert np.allclose(bootstrap.compute_mean_intervals(credits, 200, 5), wanted)


def test_an_accuracy_s_interval_is_that_of_the_binomial_distribution() -> None:
    """Drawing questions that are right or wrong is tossing a coin; the exact interval is known."""
    questions, right = 200, 140
    chance = right / questions
    exact, total = [], 0.0
    for hits in range(questions + 1):
        before = total
        total += math.comb(questions, hits) * chance**hits * (1 - chance) ** (questions - hits)
        exact += [hits / questions for limit in (0.025, 0.975) if before < limit <= total]
    (found,) = bootstrap.compute_mean_intervals(np.arange(questions)[None] < right, draws=20_000)
    assert found == pytest.approx(exact, abs=1 / questions)


def test_a_figure_that_cannot_move_has_no_width() -> None:
    assert bootstrap.compute_mean_intervals(np.ones((1, 40))) == [(1.0, 1.0)]


def slow_difference(first: list[list[bool]], second: list[list[bool]], draws: int, seed: int) -> tuple[float, float]:
    """Draw questions, runs of one side and runs of the other, each with a generator of its own; look at every cell."""
    questions = len(first[0])
    whichever, ours, theirs = (np.random.default_rng((seed, stream)) for stream in range(3))
    values = []
    for _ in range(draws):
        asked = whichever.integers(questions, size=questions).tolist()
        means = []
        for side, generator in ((first, ours), (second, theirs)):
            runs = [side[run] for run in generator.integers(len(side), size=len(side)).tolist()]
            means.append(sum(run[place] for run in runs for place in asked) / (len(runs) * questions))
        values.append(means[0] - means[1])
    return quantile(values, 0.025), quantile(values, 0.975)


@pytest.mark.parametrize(("ours", "theirs"), [(1, 1), (3, 2), (1, 4)])
def test_a_difference_respects_runs_and_questions_as_the_loop_does(ours: int, theirs: int) -> None:
    random = Random(ours)
    first = [[random.random() < 0.6 + 0.1 * run for _ in range(25)] for run in range(ours)]
    second = [[random.random() < 0.5 for _ in range(25)] for _ in range(theirs)]
    found = bootstrap.compute_difference_interval(np.array(first), np.array(second), 150, 3)
    assert found == pytest.approx(slow_difference(first, second, 150, 3))


def test_runs_that_disagree_widen_the_interval() -> None:
    """Sixty questions of which seeds get different numbers right: with the runs drawn too, the interval grows."""
    alike = np.array([np.arange(60) < 30] * 4)
    apart = np.array([np.arange(60) < right for right in (10, 20, 40, 50)])
    rival = np.array([np.arange(60) < 30] * 4)
    low, high = bootstrap.compute_difference_interval(alike, rival)
    assert (low, high) == (0, 0)
    low, high = bootstrap.compute_difference_interval(apart, rival)
    assert low < -0.15 and high > 0.15
