"""Statistics compared with a plain count over all Examples, and with the counts of the CBT authors."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.data import statistics as module
from asreader.data.dataset import read_examples
from asreader.data.example import GAP, Example, Sentence
from asreader.data.occurrences import find_occurrences
from asreader.data.statistics import Spread, compute_statistics, compute_statistics_by_part

OFFICIAL = Path(__file__).parents[3] / "shared/data/cbt/cbtest_NE_valid_2000ex.txt.xz"
WORD = st.sampled_from(["Ann", "ann", "Bob", "Cid", "saw", "the", "."])
SENTENCE = st.lists(WORD, min_size=1, max_size=5).map(tuple)
CANDIDATES = st.lists(st.sampled_from(["Ann", "Bob", "the", "Zoe", "Ann saw", "Bob .", "", " "]), max_size=6)
ANSWER = st.sampled_from([None, "Ann", "the", "Zoe", "Ann saw", ""])


@st.composite
def examples(draw: st.DrawFn) -> list[Example]:
    """Windows over one text, as in CBT: neighbours share sentences."""
    text = draw(st.lists(SENTENCE, min_size=3, max_size=8))
    return [
        Example(str(at), tuple(text[at - 2 : at]), (*text[at], GAP), tuple(draw(CANDIDATES)), draw(ANSWER))
        for at in range(2, len(text))
    ]


def spread(values: list[int]) -> Spread:
    return Spread(sum(values) / len(values), min(values), max(values))


@given(examples(), st.sampled_from([1, 2, 4096]))
def test_statistics_equal_a_plain_count(made: list[Example], cache_size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CACHED_SENTENCES", cache_size)
        found = compute_statistics(iter(made))
    candidates = [{word for word in example.candidates if word.strip()} for example in made]
    known = [example for example in made if example.answer is not None]
    words = {
        word for one in made for word in chain(one.words, one.question, *(text.split() for text in one.candidates))
    }
    assert found.questions == len(made)
    assert found.candidates == spread(list(map(len, candidates)))
    assert found.document_tokens == spread([len(example.words) for example in made])
    assert found.question_tokens == spread([len(example.question) for example in made])
    assert found.vocabulary == len(words)
    assert found.vocabulary_lowercase == len({word.lower() for word in words})
    assert found.candidates_not_in_document == sum(
        any(not find_occurrences(example.words, word) for word in given)
        for example, given in zip(made, candidates, strict=True)
    )
    assert found.answers_not_in_document == sum(not find_occurrences(one.words, one.answer or "") for one in known)
    lowercase = sum((example.answer or "")[:1].islower() for example in known)
    assert found.lowercase_answers == pytest.approx(lowercase / max(len(known), 1))


@given(examples())
def test_equally_frequent_candidates_share_their_ranks(made: list[Example]) -> None:
    fractions: dict[int, float] = defaultdict(float)
    ranked = [one for one in made if one.answer and one.answer in one.candidates]
    for example in ranked:
        given_words = {word for word in example.candidates if word.strip()}
        order = sorted(given_words, key=lambda word: -len(find_occurrences(example.words, word)))
        frequencies = [len(find_occurrences(example.words, word)) for word in order]
        answer_frequency = frequencies[order.index(str(example.answer))]
        ranks = [at for at, frequency in enumerate(frequencies) if frequency == answer_frequency]
        for at in ranks:
            fractions[at] += 1 / len(ranks) / len(ranked)
    assert compute_statistics(made).answer_ranks == pytest.approx([fractions[at] for at in range(10)])


def test_statistics_of_no_questions_are_zero() -> None:
    found = compute_statistics([])
    assert (found.questions, found.vocabulary, found.document_tokens) == (0, 0, Spread(0, 0, 0))


def test_json_has_the_fields_that_programs_read() -> None:
    example = Example("q", (("Ann", "saw", "Bob"), ("ann", ".")), ("Bob", "saw", GAP), ("Ann", "Bob", ""), "Ann")
    found = json.loads(json.dumps(compute_statistics([example]).as_json()))
    assert found["questions"] == 1
    assert found["candidates"] == {"max": 2, "mean": 2.0, "min": 2}
    assert found["document_tokens"] == {"mean": 5.0, "min": 5, "max": 5}
    assert found["question_tokens"] == {"mean": 3.0, "min": 3, "max": 3}
    assert (found["vocabulary"], found["vocabulary_lowercase"]) == (6, 5)
    assert found["answer_ranks"][:3] == [0.5, 0.5, 0]


def test_a_sentence_in_neighbouring_windows_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    original = module._Tally._count_sentence

    def record_sentence(tally: module._Tally, sentence: Sentence) -> Mapping[str, int]:
        seen.append(sentence)
        return original(tally, sentence)

    monkeypatch.setattr(module._Tally, "_count_sentence", record_sentence)
    text = [(f"word{number}", ".") for number in range(30)]
    compute_statistics(Example(str(at), tuple(text[at - 20 : at]), text[at]) for at in range(20, 30))
    assert seen == text[:29]


@given(examples(), examples())
def test_each_part_has_its_own_statistics_in_any_order(train: list[Example], valid: list[Example]) -> None:
    pairs = [("train", example) for example in train] + [("valid", example) for example in valid]
    mixed = [*pairs[::2], *pairs[1::2]]
    assert compute_statistics_by_part(iter(mixed)) == {
        part: compute_statistics(example for label, example in mixed if label == part) for part, _ in mixed
    }


@pytest.mark.skipif(not OFFICIAL.exists(), reason="the official CBT questions are not here")
def test_the_counts_that_the_authors_of_cbt_published() -> None:
    """stats_NE.txt of the data set: words in stories and questions (min, mean, max), vocabulary, missing candidates."""
    found = compute_statistics(example for _, example in read_examples(OFFICIAL))
    assert found.questions == 2000
    assert found.candidates == Spread(10, 10, 10)
    assert found.document_tokens == Spread(411.5795, 189, 801)
    assert found.question_tokens == Spread(25.688, 2, 119)
    assert found.vocabulary_lowercase == 9443
    assert (found.answers_not_in_document, found.candidates_not_in_document) == (0, 0)
    assert found.lowercase_answers == pytest.approx(0.21, abs=0.01)
    assert found.answer_ranks[0] == pytest.approx(0.328, abs=5e-4)
