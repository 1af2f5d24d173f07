"""The contract that every baseline fulfils."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asreader import baselines, plugins
from asreader.data.example import GAP, Example
from asreader.data.occurrences import find_occurrences
from asreader.evaluation.predictions import mask_distinct_candidates

NAMES = plugins.list_plugins("baselines")
every_baseline = pytest.mark.parametrize("name", NAMES)
WORD = st.sampled_from(["Ann", "Bob", "Cid", "saw", "hit", "the", ".", ","])
SENTENCE = st.lists(WORD, max_size=8).map(tuple)
CANDIDATE = st.sampled_from(["Ann", "Bob", "Cid", "the", "Zoe", "Ann saw", "Bob Cid", "hit the ,", "", " "])


@st.composite
def examples(draw: st.DrawFn) -> Example:
    """Small questions with all that data may contain: repeated, empty and missing candidates, none at all, no gap."""
    document = (draw(SENTENCE), (draw(WORD),), draw(SENTENCE))
    question = tuple(draw(st.lists(WORD | st.just(GAP), min_size=1, max_size=8)))
    return Example("q", document, question, tuple(draw(st.lists(CANDIDATE, max_size=6))), draw(st.none() | CANDIDATE))


def compute_weights(name: str, example: Example) -> list[float]:
    return list(plugins.load_plugin("baselines", name).score_candidates(example))


def test_the_documented_baselines_exist() -> None:
    assert {"maximum_frequency", "exclusive_frequency", "word_distance", "uniform"} <= set(NAMES)


@every_baseline
def test_has_a_docstring(name: str) -> None:
    assert plugins.load_plugin("baselines", name).__doc__


@every_baseline
@given(example=examples())
def test_one_weight_for_each_choice(name: str, example: Example) -> None:
    found = compute_weights(name, example)
    assert len(found) == len(example.choices)
    assert all(math.isfinite(weight) and weight >= 0 for weight in found)


@every_baseline
@given(example=examples())
def test_a_candidate_that_is_not_in_the_document_has_weight_0(name: str, example: Example) -> None:
    for candidate, weight in zip(example.choices, compute_weights(name, example), strict=True):
        assert weight == 0 or find_occurrences(example.words, candidate)


@every_baseline
@given(example=examples(), random=st.randoms())
def test_permuting_candidates_permutes_weights(name: str, example: Example, random: Random) -> None:
    pairs = list(zip(example.choices, compute_weights(name, example), strict=True))
    random.shuffle(pairs)
    permuted = replace(example, candidates=tuple(candidate for candidate, _ in pairs))
    assert compute_weights(name, permuted) == [weight for _, weight in pairs]


@every_baseline
@given(example=examples(), answer=st.none() | CANDIDATE)
def test_the_answer_is_not_used(name: str, example: Example, answer: str | None) -> None:
    assert compute_weights(name, replace(example, answer=answer)) == compute_weights(name, example)


@every_baseline
@given(example=examples())
def test_renaming_words_consistently_changes_nothing(name: str, example: Example) -> None:
    # Without candidates `choices` proposes words that contain a letter, which renaming may add.
    assume(example.choices)

    def rename(text: str) -> str:
        return " ".join(word if word == GAP else f"{word}x" for word in text.split())

    other = Example(
        example.id,
        tuple(tuple(map(rename, sentence)) for sentence in example.document),
        tuple(map(rename, example.question)),
        tuple(map(rename, example.choices)),
    )
    assert compute_weights(name, other) == compute_weights(name, example)


@every_baseline
@given(example=examples())
def test_probabilities_are_normalized_and_keep_the_order_of_the_weights(name: str, example: Example) -> None:
    (found,) = baselines.predict_answers(name.replace("_", "-"), [example])
    counted = mask_distinct_candidates(example.choices)
    assert (found.id, found.answer, found.candidates) == (example.id, example.answer, example.choices)
    assert found.probabilities.sum() == pytest.approx(1.0 if counted.any() else 0.0, abs=1e-6)
    assert not found.probabilities[~counted].any()
    ranks_of_weights = np.unique(np.array(compute_weights(name, example))[counted], return_inverse=True)[1]
    ranks_of_probabilities = np.unique(found.probabilities[counted], return_inverse=True)[1]
    assert ranks_of_probabilities.tolist() == ranks_of_weights.tolist()
