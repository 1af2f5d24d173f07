from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as some

from asreader.errors import InputError
from asreader.sweep import search_space
from asreader.sweep.search_space import Axis, Growth


def test_a_grid_is_every_combination() -> None:
    axes = [search_space.axis("reader.hidden=128,256, 384"), search_space.axis("train.learning_rate=0.001,0.0005")]
    sizes, rates = ("128", "256", "384"), ("0.001", "0.0005")
    expected = [(("reader.hidden", s), ("train.learning_rate", r)) for s in sizes for r in rates]
    assert search_space.combinations(axes) == expected
    assert search_space.combinations([]) == [()]


@pytest.mark.parametrize(
    ("text", "told"),
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
def test_what_is_no_grid_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        search_space.axis(text)


def test_a_range_has_to_be_drawn_from() -> None:
    with pytest.raises(InputError, match="--random"):
        search_space.combinations([search_space.axis("train.learning_rate=0.001..0.01")])


@given(low=some.integers(-50, 50), width=some.integers(1, 50), seed=some.integers(0, 99), wanted=some.integers(1, 12))
def test_random_combinations_differ_and_more_of_them_begin_with_the_same(
    low: int, width: int, seed: int, wanted: int
) -> None:
    axes = [
        Axis("a.b", ("x", "y")),
        search_space.axis(f"c.d={low}..{low + width}"),
        search_space.axis("e.f=0.001..0.1"),
    ]
    drawn = search_space.drawn(axes, wanted, seed)
    assert len(set(drawn)) == len(drawn) == wanted
    assert search_space.drawn(axes, wanted + 3, seed)[:wanted] == drawn
    for choice in map(dict, drawn):
        assert choice["a.b"] in ("x", "y")
        assert low <= int(choice["c.d"]) <= low + width
        assert 0.001 <= float(choice["e.f"]) <= 0.1


def test_where_there_are_no_more_combinations_all_are_drawn() -> None:
    axes = [Axis("a.b", ("x", "y")), Axis("c.d", ("1", "2", "3"))]
    assert sorted(search_space.drawn(axes, 50, 1)) == sorted(search_space.combinations(axes))


def test_fractions_are_drawn_evenly_by_their_logarithm() -> None:
    axis = search_space.axis("train.learning_rate=0.001..0.1")
    assert axis.draw(0.0) == "0.001"
    assert float(axis.draw(0.5)) == pytest.approx(0.01)


def test_a_grid_grows_only_from_whole_numbers() -> None:
    axes = [search_space.axis("reader.hidden=128,256"), search_space.axis("train.learning_rate=0.1,0.2")]
    assert search_space.growth("reader.hidden=128", axes) == Growth("reader.hidden", 128)
    for wrong in ("reader.hidden=0", "reader.hidden=x", "train.learning_rate=1", "reader.embedding=128"):
        with pytest.raises(InputError, match="--grow"):
            search_space.growth(wrong, axes)


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
    for order in itertools.permutations(values):  # however the grid was written
        raised = search_space.raised(Axis("reader.hidden", order), 128, best)
        assert raised == Axis("reader.hidden", (*order, *more))
