from __future__ import annotations

import subprocess
import sys

import pytest

from asreader.baselines import predict_answers
from asreader.cloze.stories.generator import (
    FACT_COUNTS,
    SENTENCE_COUNTS,
    WORD_COUNTS,
    Fact,
    GeneratedStory,
    generate_stories,
    generate_story,
)
from asreader.cloze.stories.phrases import QUESTION_KINDS
from asreader.cloze.stories.word_lists import select_word_lists
from asreader.data.example import GAP, find_problem
from asreader.evaluation import metrics

TALES = [generate_story(number, 11, select_word_lists()) for number in range(400)]


def derive_answers(facts: tuple[Fact, ...]) -> dict[str, list[tuple[str, ...]]]:
    """A slow second implementation: for each kind of question its (given words..., answer) rows."""
    rows: dict[str, list[tuple[str, ...]]] = {kind: [] for kind in QUESTION_KINDS}
    where: dict[str, str] = {}
    holder: dict[str, str] = {}
    place_of: dict[str, str] = {}
    last_in: dict[str, str] = {}
    for fact in facts:
        if fact.verb in ("wait", "go"):
            where[fact.person] = fact.place
            if fact.verb == "go":
                last_in[fact.place] = fact.person
        elif fact.verb == "take":
            rows["taker"].append((fact.object, fact.person))
            rows["taken"].append((fact.person, fact.object))
            holder[fact.object] = fact.person
            place_of.pop(fact.object, None)
        elif fact.verb == "drop":
            rows["dropper"].append((fact.object, fact.person))
            rows["dropped"].append((fact.object, fact.person, fact.place))
            del holder[fact.object]
            place_of[fact.object] = fact.place
        elif fact.verb == "give":
            rows["giver"].append((fact.object, fact.other, fact.person))
            rows["receiver"].append((fact.object, fact.person, fact.other))
            rows["gift"].append((fact.other, fact.person, fact.object))
            holder[fact.object] = fact.other
    rows["holder"] = list(holder.items())
    rows["object_place"] = [(thing, where[person]) for thing, person in holder.items()] + list(place_of.items())
    rows["person_place"] = list(where.items())
    rows["last_in"] = list(last_in.items())
    return rows


@pytest.mark.parametrize("story", TALES[:150], ids=lambda story: f"{story.kind}-{story.example.id}")
def test_the_facts_give_exactly_this_answer(story: GeneratedStory) -> None:
    rows = derive_answers(story.facts)[story.kind]
    asked = story.example.question
    if story.kind == "gift":  # who gave and who got: "A let B have the XXXXX", "B got the XXXXX from A"
        giver, receiver = (asked[0], asked[2]) if "let" in asked else (asked[-2], asked[0])
        rows = [row for row in rows if row[:2] == (receiver, giver)]
    fitting = {row[-1] for row in rows if set(row[:-1]) <= set(asked)}
    assert fitting == {story.example.answer}


def test_stories_are_valid_questions() -> None:
    for story in TALES:
        example = story.example
        assert find_problem(example) is None
        assert example.question.count(GAP) == 1
        assert example.answer in example.words
        assert set(example.candidates) <= set(example.words)
        assert 3 <= len(set(example.candidates)) == len(example.candidates) <= 10
        assert FACT_COUNTS[0] <= len(story.facts) <= FACT_COUNTS[1]
        assert SENTENCE_COUNTS[0] <= len(example.document) <= SENTENCE_COUNTS[1]
        assert len(example.words) in WORD_COUNTS
        assert all(sentence[0][0].isupper() or not sentence[0][0].isalpha() for sentence in example.document)


def test_every_kind_of_question_is_asked() -> None:
    assert {story.kind for story in TALES} == QUESTION_KINDS.keys()


def test_neither_counting_nor_the_last_word_gives_the_answer_away() -> None:
    examples = [story.example for story in TALES]
    assert metrics.score_predictions(predict_answers("maximum_frequency", examples), metrics.share_ties).accuracy < 0.38
    last = sum(max(e.candidates, key=lambda c, e=e: _last(e.words, c)) == e.answer for e in examples)
    assert last / len(examples) < 0.40


def _last(words: tuple[str, ...], word: str) -> int:
    return max(place for place, other in enumerate(words) if other == word)


def test_a_seed_gives_the_same_stories_in_any_process() -> None:
    here = [example.answer for example in generate_stories(5, 42)]
    code = (
        "from asreader.cloze.stories.generator import generate_stories;"
        "print(*(e.answer for e in generate_stories(5, 42)))"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert here == there
    assert [e.words for e in generate_stories(3, 42)] == [e.words for e in generate_stories(5, 42)][:3]
    assert [e.words for e in generate_stories(3, 42)] != [e.words for e in generate_stories(3, 43)]


def test_unseen_words_are_in_no_training_story() -> None:
    seen, unseen = select_word_lists(), select_word_lists(unseen=True)
    names = ("persons", "places", "objects")
    kept_back = {word for name in names for word in getattr(unseen, name)}
    assert not kept_back & {word for name in names for word in getattr(seen, name)}
    assert not any(kept_back & set(story.example.words) for story in TALES)
    assert all(set(example.candidates) <= kept_back for example in generate_stories(50, 1, unseen=True))
