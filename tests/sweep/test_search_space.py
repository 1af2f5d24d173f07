from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as some

from asreader.errors import InputError
from asreader.sweep import search_space
from asreader.sweep.search_space import GridAxis, GridGrowth


def test_a_grid_is_every_combination() -> None:
    axes = [
        search_space.parse_axis("reader.hidden=128,256, 384"),
        search_space.parse_axis("train.learning_rate=0.001,0.0005"),
    ]
    sizes, rates = ("128", "256", "384"), ("0.001", "0.0005")
    expected = [(("reader.hidden", s), ("train.learning_rate", r)) for s in sizes for r in rates]
    assert search_space.list_combinations(axes) == expected
    assert search_space.list_combinations([]) == [()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hidden=1,2", "section.key"),
        ("reader.hidden", "section.key"),
        ("reader.hidden=", "section.key"),
        ("reader.hidden=1,,2", "empty"),
        ("reader.hidden=1,1", "twice"),
        ("train.learning_rate=a..b", "from a number"),
        ("train.learning_rate=0.1..0.01", "smaller"),
        ("train.learning_rate=0.1..inf", "smaller"),
    ],
)
def test_malformed_axes_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        search_space.parse_axis(text)


def test_a_range_needs_random_sampling() -> None:
    with pytest.raises(InputError, match="--random"):
        search_space.list_combinations([search_space.parse_axis("train.learning_rate=0.001..0.01")])


@given(low=some.integers(-50, 50), width=some.integers(1, 50), seed=some.integers(0, 99), wanted=some.integers(1, 12))
def test_samples_are_distinct_and_a_larger_number_extends_a_smaller_one(
    low: int, width: int, seed: int, wanted: int
) -> None:
    axes = [
        GridAxis("a.b", ("x", "y")),
        search_space.parse_axis(f"c.d={low}..{low + width}"),
        search_space.parse_axis("e.f=0.001..0.1"),
    ]
    samples = search_space.sample_combinations(axes, wanted, seed)
    assert len(set(samples)) == len(samples) == wanted
    assert search_space.sample_combinations(axes, wanted + 3, seed)[:wanted] == samples
    for choice in map(dict, samples):
        assert choice["a.b"] in ("x", "y")
        assert low <= int(choice["c.d"]) <= low + width
        assert 0.001 <= float(choice["e.f"]) <= 0.1


def test_sampling_more_than_exist_returns_all_combinations() -> None:
    axes = [GridAxis("a.b", ("x", "y")), GridAxis("c.d", ("1", "2", "3"))]
    assert sorted(search_space.sample_combinations(axes, 50, 1)) == sorted(search_space.list_combinations(axes))


def test_fractions_are_sampled_uniformly_in_their_logarithm() -> None:
    axis = search_space.parse_axis("train.learning_rate=0.001..0.1")
    assert axis.pick_value(0.0) == "0.001"
    assert float(axis.pick_value(0.5)) == pytest.approx(0.01)


def test_only_integer_axes_grow() -> None:
    axes = [search_space.parse_axis("reader.hidden=128,256"), search_space.parse_axis("train.learning_rate=0.1,0.2")]
    assert search_space.parse_growth("reader.hidden=128", axes) == GridGrowth("reader.hidden", 128)
    for wrong in ("reader.hidden=0", "reader.hidden=x", "train.learning_rate=1", "reader.embedding=128"):
        with pytest.raises(InputError, match="--grow"):
            search_space.parse_growth(wrong, axes)


@pytest.mark.parametrize(
    ("accuracies", "grows"),
    [
        ([0.5], True),
        ([0.6, 0.5], True),  # one fall is not yet consistent
        ([0.5, 0.6, 0.7], True),
        ([0.5, 0.7, 0.6], True),
        ([0.7, 0.6, 0.65], True),
        ([0.7, 0.6, 0.5], False),
        ([0.1, 0.7, 0.6, 0.6], False),
        ([0.7, 0.6, None], False),  # no run of the upper bound could be trained
    ],
)
def test_the_upper_bound_is_raised_until_accuracy_falls_consistently(
    accuracies: list[float | None], grows: bool
) -> None:
    values = [str(128 * number) for number in range(1, len(accuracies) + 1)]
    best = {value: accuracy for value, accuracy in zip(values, accuracies, strict=True) if accuracy is not None}
    more = [str(128 * (len(values) + 1))] if grows else []
    for order in itertools.permutations(values):  # in any order of values
        raised = search_space.raise_upper_bound(GridAxis("reader.hidden", order), 128, best)
        assert raised == GridAxis("reader.hidden", (*order, *more))
