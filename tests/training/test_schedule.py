from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.settings import TrainSettings
from asreader.training.schedule import compute_learning_rate

STEPS = st.integers(1, 10_000)
PLAIN = TrainSettings(learning_rate=0.5)


@given(steps=STEPS, step=st.integers(0, 20_000))
def test_without_a_schedule_the_rate_is_the_rate(steps: int, step: int) -> None:
    assert compute_learning_rate(PLAIN, step, steps) == PLAIN.learning_rate


@given(warmup=st.integers(1, 500), steps=STEPS)
def test_warm_up_rises_in_equal_parts_from_above_nothing_to_the_full_rate(warmup: int, steps: int) -> None:
    options = replace(PLAIN, warmup=warmup)
    rates = [compute_learning_rate(options, step, steps) for step in range(warmup + 2)]
    assert rates[:warmup] == pytest.approx([PLAIN.learning_rate * part / warmup for part in range(1, warmup + 1)])
    assert rates[-2:] == [PLAIN.learning_rate] * 2


@given(decay=st.sampled_from(["linear", "cosine"]), warmup=st.integers(0, 50), steps=st.integers(60, 5_000))
def test_decay_falls_from_the_full_rate_behind_the_warm_up_to_nothing_at_the_end(
    decay: str, warmup: int, steps: int
) -> None:
    options = replace(PLAIN, warmup=warmup, decay=decay)
    rates = [compute_learning_rate(options, step, steps) for step in range(steps + 1)]
    assert rates[warmup] == max(rates) == PLAIN.learning_rate
    assert rates[warmup:] == sorted(rates[warmup:], reverse=True)
    assert rates[-2] > 0
    assert rates[-1] == pytest.approx(0, abs=1e-12)
    assert (
        compute_learning_rate(options, steps + 1, steps) == rates[-1]
    )  # as when a smaller batch makes the epochs longer


@pytest.mark.parametrize(
    ("decay", "quarter"), [("linear", 0.75), ("cosine", (1 + math.cos(math.pi / 4)) / 2), ("none", 1.0)]
)
def test_what_is_left_after_a_quarter(decay: str, quarter: float) -> None:
    options = replace(PLAIN, warmup=20, decay=decay)
    assert compute_learning_rate(options, 20 + 25, 120) == pytest.approx(quarter * PLAIN.learning_rate)
