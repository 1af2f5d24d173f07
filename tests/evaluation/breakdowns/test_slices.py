"""Slices compared with plain loops: facts about questions, groups, accuracies and intervals."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.data.example import Example
from asreader.data.statistics import compute_statistics
from asreader.evaluation.breakdowns import slices
from asreader.evaluation.breakdowns.slices import NOT_FOUND
from asreader.evaluation.metrics import compute_wilson_interval

WORDS = ("Ada", "Bo", "lamp", "@entity3", "1907", "and")
PHRASES = (*WORDS, "Ada Bo", "lamp and", " Bo ", "")

values = st.lists(st.integers(0, 12), min_size=1, max_size=60).map(np.array)


@st.composite
def examples(draw: st.DrawFn) -> list[Example]:
    sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(tuple)
    found = []
    for number in range(draw(st.integers(1, 12))):
        document = tuple(draw(st.lists(sentence, min_size=1, max_size=4)))
        candidates = tuple(draw(st.lists(st.sampled_from(PHRASES), max_size=8)))
        answer = draw(st.sampled_from(candidates or ("Ada", "Zeno")) | st.none())
        found.append(Example(f"q{number}", document, ("XXXXX", "sang"), candidates, answer))
    return found


def mentions(words: tuple[str, ...], candidate: str) -> list[int]:
    """The end of each mention of a candidate in the document."""
    parts = candidate.split()
    ends = []
    for start in range(len(words)):
        if parts and list(words[start : start + len(parts)]) == parts:
            ends.append(start + len(parts))
    return ends


@given(examples())
def test_question_facts_match_plain_loops(asked: list[Example]) -> None:
    found = slices.describe_questions("made", asked)
    known = [example for example in asked if example.answer is not None]
    assert list(found.ids) == [example.id for example in known]
    assert len(found) == len(known)
    for place, example in enumerate(known):
        words = tuple(word for sentence in example.document for word in sentence)
        often = {word: len(mentions(words, word)) for word in example.choices if word.strip()}
        ends = mentions(words, example.answer or "")
        assert found.answers[place] == example.answer
        assert found.lengths[place] == len(words)
        assert found.candidates[place] == len(often)
        assert found.distances[place] == (len(words[ends[-1] :]) if ends else NOT_FOUND)
        if example.answer in often:
            assert found.more_frequent[place] == sum(often[word] > often[example.answer] for word in often)
            assert found.as_frequent[place] == sum(often[word] == often[example.answer] for word in often)
        else:
            assert found.more_frequent[place] == found.as_frequent[place] == NOT_FOUND


@given(examples())
def test_rank_weights_match_the_statistics(asked: list[Example]) -> None:
    known = [example for example in asked if example.answer is not None and example.candidates]
    weights = slices.compute_rank_weights(slices.describe_questions("made", known))
    ranked = sum(bool((example.answer or "").strip()) for example in known)
    assert weights.sum(axis=1).tolist() == pytest.approx(
        [share * max(ranked, 1) for share in compute_statistics(known).answer_ranks]
    )


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("@entity12", slices.ENTITY),
        ("New York", slices.PHRASE),
        ("3 lamps", slices.PHRASE),
        ("1,907", slices.NUMBER),
        ("-12.5%", slices.NUMBER),
        ("Peter", slices.CAPITALISED),
        ("'Tis", slices.CAPITALISED),
        ("ǅemal", slices.CAPITALISED),
        ("lamp", slices.LOWER),
        ("3rd", slices.LOWER),
        ("灯", slices.CASELESS),
        ("!?", slices.CASELESS),
        ("", slices.CASELESS),
    ],
)
def test_answer_types(answer: str, kind: str) -> None:
    assert slices.classify_answer(answer) == kind


verdicts = st.integers(1, 4).flatmap(
    lambda runs: st.integers(1, 30).flatmap(
        lambda questions: st.lists(
            st.lists(st.booleans(), min_size=questions, max_size=questions), min_size=runs, max_size=runs
        )
    )
)


@given(verdicts, st.data())
def test_accuracy_and_interval_match_a_loop(right: list[list[bool]], data: st.DataObject) -> None:
    size = len(right[0])
    parts = data.draw(st.lists(st.sampled_from((0, 1, 2, 3)), min_size=size, max_size=size))
    weights = [Fraction(1, part) if part else Fraction(0) for part in parts]
    found = slices.compute_accuracy_share(np.array(right), np.array([float(weight) for weight in weights]))
    if not sum(weights):
        assert (found.questions, found.accuracy, found.low, found.high) == (0, None, None, None)
        return
    each = [sum(w for w, good in zip(weights, run, strict=True) if good) / sum(weights) for run in right]
    mean = sum(each) / len(each)
    variance = mean * (1 - mean) * sum(w * w for w in weights) / sum(weights) ** 2  # of the choice of questions
    if len(each) > 1:
        variance += sum((one - mean) ** 2 for one in each) / (len(each) - 1) / len(each)  # of the mean over the runs
    alike = math.floor(mean * (1 - mean) / variance if variance else sum(weights) ** 2 / sum(w * w for w in weights))
    assert found.questions == pytest.approx(float(sum(weights)))
    assert found.accuracy == pytest.approx(float(mean))
    assert found.low is not None and found.high is not None
    assert (found.low, found.high) == pytest.approx(compute_wilson_interval(float(mean), max(1, alike)))
    assert 0 <= found.low <= float(mean) + 1e-12 and float(mean) - 1e-12 <= found.high <= 1


@given(verdicts)
def test_one_run_has_the_wilson_interval(right: list[list[bool]]) -> None:
    found = slices.compute_accuracy_share(np.array(right[:1]), np.ones(len(right[0]), dtype=np.bool_))
    assert isinstance(found.questions, int)
    assert (found.low, found.high) == compute_wilson_interval(sum(right[0]) / len(right[0]), len(right[0]))


def test_disagreeing_runs_widen_the_interval() -> None:
    alike = np.array([[True, True, False, False] * 25] * 2)
    apart = np.array([[True] * 70 + [False] * 30, [True] * 30 + [False] * 70])
    group = np.ones(100, dtype=np.bool_)
    narrow, wide = slices.compute_accuracy_share(alike, group), slices.compute_accuracy_share(apart, group)
    assert narrow.accuracy == wide.accuracy == 0.5
    assert wide.low < narrow.low < narrow.high < wide.high  # type: ignore[operator]


@given(values)
def test_equal_buckets_have_equal_sizes_and_rising_values(numbers: np.ndarray) -> None:
    parts = [part.tolist() for part in slices.split_into_equal_buckets(numbers)]
    order = sorted(range(len(numbers)), key=lambda place: (numbers[place], place))
    assert [place for part in parts for place in part] == order
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert len(parts) == min(slices.BUCKETS, len(numbers))


@given(values)
def test_value_buckets_keep_equal_values_together(numbers: np.ndarray) -> None:
    expected: dict[int, list[int]] = {}
    for value, times in sorted(Counter(numbers.tolist()).items()):
        middle = Fraction(sum(number < value for number in numbers.tolist())) + Fraction(times, 2)
        bucket = math.floor(slices.BUCKETS * middle / len(numbers))
        expected.setdefault(bucket, []).extend(np.flatnonzero(numbers == value).tolist())
    assert [sorted(part.tolist()) for part in slices.split_into_value_buckets(numbers)] == [
        sorted(expected[bucket]) for bucket in sorted(expected)
    ]


@given(st.lists(st.lists(st.integers(0, 3000), min_size=1, max_size=40), min_size=1, max_size=3))
def test_every_question_is_in_one_bin(numbers: list[list[int]]) -> None:
    found = slices.compute_histograms([np.array(own) for own in numbers])
    for own, parts in zip(numbers, found, strict=True):
        for part in parts:
            stop = math.inf if part.stop is None else part.stop
            assert part.questions == sum(part.start <= number < stop for number in own)
            assert part.share == part.questions / len(own)
        assert sum(part.questions for part in parts) == len(own)
        spans = [(part.start, part.stop) for part in parts]
        assert spans == [(part.start, part.stop) for part in found[0]]
        widths = {stop - start for start, stop in spans if stop is not None}
        assert len(widths) == 1
        assert str(widths.pop()).rstrip("0") in ("1", "2", "25", "5")
        assert len(parts) <= slices.BINS + 2


def test_last_bin_holds_outliers() -> None:
    (found,) = slices.compute_histograms([np.array([*range(20, 60)] * 10 + [5000])])
    assert found[-1].stop is None
    assert found[-1].questions == 1
    assert found[-1].start == 60
