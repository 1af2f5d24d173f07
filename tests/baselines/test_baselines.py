"""The baselines on documents whose answers can be computed by hand, and on the official CBT questions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader import baselines, plugins
from asreader.baselines import word_distance
from asreader.data.dataset import read_examples
from asreader.data.example import GAP, Example
from asreader.errors import InputError

OFFICIAL = Path(__file__).parents[3] / "shared/data/cbt/cbtest_NE_valid_2000ex.txt.xz"


def example(document: str, question: str, candidates: str = "", answer: str | None = None) -> Example:
    """Sentences are separated by slashes, candidates by commas."""
    sentences = tuple(tuple(sentence.split()) for sentence in document.split("/"))
    return Example("q", sentences, tuple(question.split()), tuple(candidates.split(",")) if candidates else (), answer)


def compute_weights(name: str, *parts: str) -> list[float]:
    return list(plugins.load_plugin("baselines", name).score_candidates(example(*parts)))


MARKET = "Ida sold New York apples / Ida met Otto in New York / Otto ran , Ida ran , Otto fell"


def test_maximum_frequency_counts_occurrences() -> None:
    assert compute_weights("maximum-frequency", MARKET, "XXXXX ran", "Ida,Otto,New York,York New,Zoe") == [
        3,
        3,
        2,
        0,
        0,
    ]


def test_exclusive_frequency_excludes_candidates_of_the_question() -> None:
    candidates = "Ida,Otto,New York,York"
    assert compute_weights("exclusive-frequency", MARKET, "XXXXX ran with Ida in York", candidates) == [0, 3, 2, 0]
    assert compute_weights("exclusive-frequency", MARKET, "XXXXX saw New York", candidates) == [3, 3, 0, 0]


def test_uniform_is_chance_among_the_candidates_in_the_document() -> None:
    assert compute_weights("uniform", MARKET, "XXXXX ran", "Ida,Otto,New York,Zoe") == [1, 1, 1, 0]


def test_word_distance_finds_the_sentence_of_the_question() -> None:
    found = baselines.predict_answers("word-distance", [example(MARKET, "Ida met XXXXX in New", "Ida,Otto,apples")])
    assert next(found).best == 1


def distance(example: Example, candidate: str) -> float | None:
    """The paper's sum of distances for the best occurrence, word by word; None without an occurrence."""
    words, question, parts = example.words, example.question, candidate.split()
    gap = question.index(GAP) if GAP in question else len(question)
    sums = []
    for start in range(len(words)):
        if parts and list(words[start : start + len(parts)]) == parts:
            total = 0
            for index, word in enumerate(question):
                aligned = start + index - gap + (len(parts) - 1 if index > gap else 0)
                distances = [abs(aligned - position) for position, other in enumerate(words) if other == word != GAP]
                total += min([*distances, word_distance.MAX_DISTANCE]) if word != GAP else 0
            sums.append(total)
    return min(sums, default=None)


LETTERS = st.sampled_from(["a", "b", "c", "d", "e"])


@given(
    st.lists(LETTERS, min_size=1, max_size=30),
    st.lists(LETTERS | st.just(GAP), min_size=1, max_size=25),
    st.lists(st.sampled_from(["a", "b", "e", "a b", "c c d", ""]), max_size=4),
)
def test_word_distance_equals_the_papers_sum(document: list[str], question: list[str], candidates: list[str]) -> None:
    asked = Example("q", (tuple(document),), tuple(question), tuple(candidates))
    most = word_distance.MAX_DISTANCE * sum(word != GAP for word in question)
    sums = [distance(asked, candidate) for candidate in asked.choices]
    assert list(word_distance.score_candidates(asked)) == [0 if found is None else 1 + most - found for found in sums]


def test_copies_and_empty_candidates_have_no_probability() -> None:
    found = next(baselines.predict_answers("maximum_frequency", [example("a a b", GAP, "a,,b,a")]))
    np.testing.assert_allclose(found.probabilities, [2 / 3, 0, 1 / 3, 0])


def test_candidates_without_any_weight_are_equally_likely() -> None:
    found = next(baselines.predict_answers("exclusive_frequency", [example("a b", f"a b {GAP}", "a,,b,x")]))
    np.testing.assert_allclose(found.probabilities, [1 / 3, 0, 1 / 3, 1 / 3])
    nothing = next(baselines.predict_answers("uniform", [example("! ?", GAP)]))
    assert nothing.candidates == ()


def test_evaluation_shares_ties_and_counts_missing_answers() -> None:
    asked = [example("a b", GAP, "a,b", "b"), example("a b", GAP, "a,z", "z"), example("a b", GAP, "a,b")]
    found = baselines.evaluate_baseline("maximum-frequency", iter(asked))
    assert len(found.predictions) == 3
    assert (found.scores.questions, found.scores.accuracy, found.scores.answer_not_in_document) == (2, 0.25, 1)


def test_an_unknown_baseline_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(InputError, match="maximum_frequency"):
        baselines.predict_answers("maximum-frequenzy", [])


@pytest.mark.skipif(not OFFICIAL.exists(), reason="the official CBT questions are not here")
def test_known_accuracies_on_the_official_questions() -> None:
    """0.328 is the published accuracy; chance is 0.1, since all ten candidates occur; the others are above both."""
    questions = [example for _, example in read_examples(OFFICIAL)]
    found = {name: baselines.evaluate_baseline(name, questions).scores for name in plugins.list_plugins("baselines")}
    assert found["maximum_frequency"].questions == 2000
    assert found["maximum_frequency"].accuracy == pytest.approx(0.328, abs=5e-4)
    assert found["uniform"].accuracy_at == {1: pytest.approx(0.1), 2: pytest.approx(0.2), 5: pytest.approx(0.5)}
    assert found["exclusive_frequency"].accuracy > found["maximum_frequency"].interval[1]
    assert found["word_distance"].accuracy > found["exclusive_frequency"].interval[1]
