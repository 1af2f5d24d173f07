"""Scores against slow obvious computations: sorting, and breaking every tie in every way."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.errors import InputError
from asreader.evaluation.metrics import (
    TOP_K,
    Scores,
    TieRule,
    break_ties_by_order,
    compute_wilson_interval,
    score_predictions,
    share_ties,
)
from asreader.evaluation.predictions import Prediction

CANDIDATES = st.lists(st.sampled_from(["Ada", "Bo", "Cy", "Di", "Ed", "", " "]), max_size=6)


@st.composite
def predictions(draw: st.DrawFn) -> Prediction:
    """Few words and few probabilities, so that copies and ties are common."""
    candidates = tuple(draw(CANDIDATES))
    shares = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5]), min_size=len(candidates), max_size=len(candidates)))
    answer = draw(st.sampled_from(["Ada", "Bo", "Zoe", ""]))
    return Prediction("q", answer, candidates, np.array(shares, dtype=np.float32))


def distinct(prediction: Prediction) -> list[tuple[str, float]]:
    """(word, probability) of each candidate that counts, in the data's own order."""
    kept: dict[str, float] = {}
    for word, share in zip(prediction.candidates, prediction.probabilities.tolist(), strict=True):
        if word.strip():
            kept.setdefault(word, share)
    return list(kept.items())


@given(predictions())
def test_decided_is_a_stable_sort(prediction: Prediction) -> None:
    ranked = [word for word, _ in sorted(distinct(prediction), key=lambda pair: -pair[1])]
    found = score_predictions([prediction], break_ties_by_order)
    assert found.accuracy_at == {top: float(prediction.answer in ranked[:top]) for top in TOP_K}
    if ranked:
        assert found.accuracy == float(prediction.candidates[prediction.best] == prediction.answer)


@given(predictions())
def test_shared_is_the_mean_over_every_way_to_break_the_ties(prediction: Prediction) -> None:
    orders = list(itertools.permutations(distinct(prediction)))
    for top in TOP_K:
        hits = sum(
            prediction.answer in [word for word, _ in sorted(order, key=lambda pair: -pair[1])[:top]]
            for order in orders
        )
        found = score_predictions([prediction], share_ties).accuracy_at[top]
        assert found == pytest.approx(float(Fraction(hits, len(orders))), abs=1e-12)


@given(predictions(), st.randoms())
def test_shared_ties_do_not_see_the_order(prediction: Prediction, random: Random) -> None:
    pairs = distinct(prediction)
    random.shuffle(pairs)
    shares = np.array([share for _, share in pairs], dtype=np.float32)
    shuffled = Prediction("q", prediction.answer, tuple(word for word, _ in pairs), shares)
    assert score_predictions([shuffled], share_ties) == score_predictions([prediction], share_ties)


@given(st.lists(predictions(), min_size=1, max_size=5), st.sampled_from([break_ties_by_order, share_ties]))
def test_many_are_the_mean_of_each(made: list[Prediction], rule: TieRule) -> None:
    each = [score_predictions([prediction], rule).accuracy_at for prediction in made]
    for top, found in score_predictions(made, rule).accuracy_at.items():
        assert found == pytest.approx(sum(one[top] for one in each) / len(each))


def made(answer: str | None, **shares: float) -> Prediction:
    return Prediction("q", answer, tuple(shares), np.array(list(shares.values()), dtype=np.float32))


def test_a_tie_is_not_a_gift() -> None:
    """The authors put the answer first, so that every tie counted as right."""
    assert score_predictions([made("b", a=0.5, b=0.5)]).accuracy == 0
    assert score_predictions([made("a", a=0.5, b=0.5)]).accuracy == 1
    assert score_predictions([made("b", a=0.5, b=0.5)], share_ties).accuracy == 0.5


def test_a_tie_across_the_border_of_the_best_two() -> None:
    found = score_predictions([made("d", a=0.4, b=0.2, c=0.2, d=0.2)], share_ties)
    assert found.accuracy_at == {1: 0.0, 2: pytest.approx(1 / 3), 5: 1.0}


def test_answers_that_cannot_be_chosen_are_wrong_and_unknown_ones_are_not_counted() -> None:
    found = score_predictions([made("a", a=1.0), made("z", a=1.0), made(None, a=1.0), made("a")])
    assert (found.questions, found.unanswered) == (3, 1)
    assert found.accuracy == pytest.approx(1 / 3)


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(InputError, match="known answer"):
        score_predictions([made(None, a=1.0)])


def test_json_is_what_evaluate_prints() -> None:
    found = score_predictions([made("a", a=1.0)] * 4, answer_not_in_document=2, unknown_words=0.25).as_json()
    assert json.loads(json.dumps(found)) == {
        "questions": 4,
        "accuracy": 1.0,
        "accuracy_at": {"1": 1.0, "2": 1.0, "5": 1.0},
        "interval": list(compute_wilson_interval(1.0, 4)),
        "answer_not_in_document": 2,
        "unknown_words": 0.25,
    }
    assert Scores(1, {1: 0.5}).as_json()["unknown_words"] is None


@given(st.integers(0, 50), st.integers(1, 50))
def test_the_interval_solves_wilsons_equation(right: int, questions: int) -> None:
    """Its ends are the shares p from which the one seen is 1.96 standard deviations sqrt(p (1 - p) / n) away."""
    seen = min(right, questions) / questions
    low, high = compute_wilson_interval(seen, questions)
    assert 0 <= low <= seen <= high <= 1
    for end in (low, high):
        assert (end - seen) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / questions, abs=1e-6)


def test_the_interval_of_a_known_case() -> None:
    """81 of 263: 0.2553 to 0.3662 (Newcombe 1998, table I, Wilson score without continuity correction)."""
    assert compute_wilson_interval(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
