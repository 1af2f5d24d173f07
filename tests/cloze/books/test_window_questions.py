"""Questions from a classified book, compared with a slow implementation of the procedure."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from asreader.cloze.books.window_questions import WORD_CLASSES, QuestionRecipe, count_windows, make_window_questions
from asreader.cloze.tagging import NAMED, NOUN, OTHER, PREPOSITION, WordClasses
from asreader.data.example import GAP, Sentence, find_problem

VOCABULARY = [f"{kind or 'x'}{number}" for kind in (*WORD_CLASSES, OTHER) for number in range(12)]


@st.composite
def books(draw: st.DrawFn) -> tuple[list[Sentence], list[WordClasses]]:
    """Random sentences; the first letters of a word are its class."""
    random = Random(draw(st.integers(0, 10_000)))
    share = draw(st.sampled_from([5, 12, 60]))
    vocabulary = random.sample(VOCABULARY, share)
    lengths = range(1, draw(st.integers(2, 9)))
    book = [tuple(random.choices(vocabulary, k=random.choice(lengths))) for _ in range(draw(st.integers(0, 45)))]
    return book, [tuple(word.rstrip("0123456789").replace("x", "") for word in sentence) for sentence in book]


def possible(book: list[Sentence], classes: list[WordClasses], kind: str) -> list[str]:
    """Ids of all questions that the procedure allows, found the slow way."""
    found = []
    for last in range(20, len(book)):
        before = [pair for number in range(last - 20, last) for pair in zip(book[number], classes[number], strict=True)]
        for place, (word, its) in enumerate(zip(book[last], classes[last], strict=True)):
            rivals = {other for other, cls in before if cls != OTHER and other != word}
            if its == kind and word in {other for other, _ in before} and len(rivals) >= 9:
                found.append(f"b:{last + 1}:{place + 1}")
    return found


@given(books(), st.sampled_from(WORD_CLASSES))
def test_every_possible_question_is_made_and_no_other(
    book: tuple[list[Sentence], list[WordClasses]], kind: str
) -> None:
    made = list(make_window_questions("b", *book, QuestionRecipe(kind)))
    assert [example.id for example in made] == possible(*book, kind)


@given(books(), st.sampled_from(WORD_CLASSES), st.integers(0, 3))
def test_a_question_is_complete_and_valid(book: tuple[list[Sentence], list[WordClasses]], kind: str, seed: int) -> None:
    sentences, classes = book
    for example in make_window_questions("b", sentences, classes, QuestionRecipe(kind, seed)):
        last, place = (int(part) - 1 for part in example.id.split(":")[1:])
        assert find_problem(example) is None
        assert example.document == tuple(sentences[last - 20 : last])
        assert example.question[place] == GAP
        assert tuple(example.answer if word == GAP else word for word in example.question) == sentences[last]
        assert len(set(example.candidates)) == 10 and list(example.candidates) == sorted(example.candidates)
        assert set(example.candidates) <= set(example.words)


@given(books())
def test_candidates_are_of_the_same_class_first_and_then_common_nouns(
    book: tuple[list[Sentence], list[WordClasses]],
) -> None:
    for example in make_window_questions("b", *book, QuestionRecipe(NAMED)):
        kinds = Counter(word.rstrip("0123456789") for word in example.candidates)
        there = Counter(word.rstrip("0123456789") for word in set(example.words))
        assert kinds[NAMED] == min(10, there[NAMED])
        assert kinds[NOUN] == min(10 - kinds[NAMED], there[NOUN])


@given(books(), st.integers(0, 5))
def test_questions_are_deterministic(book: tuple[list[Sentence], list[WordClasses]], seed: int) -> None:
    recipe = QuestionRecipe(PREPOSITION, seed)
    assert list(make_window_questions("b", *book, recipe)) == list(make_window_questions("b", *book, recipe))


@given(books(), st.sampled_from(WORD_CLASSES))
def test_keeping_a_fraction_drops_questions_and_changes_none(
    book: tuple[list[Sentence], list[WordClasses]], kind: str
) -> None:
    everything = list(make_window_questions("b", *book, QuestionRecipe(kind)))
    half = list(make_window_questions("b", *book, QuestionRecipe(kind, keep=0.5)))
    assert [example for example in everything if example in half] == half
    assert not list(make_window_questions("b", *book, QuestionRecipe(kind, keep=0)))


@given(books(), st.frozensets(st.integers(0, 44), max_size=4))
def test_no_window_touches_a_banned_sentence(
    book: tuple[list[Sentence], list[WordClasses]], banned: frozenset[int]
) -> None:
    made = {example.id for example in make_window_questions("b", *book, QuestionRecipe(), banned)}
    for example in make_window_questions("b", *book, QuestionRecipe()):
        last = int(example.id.split(":")[1]) - 1
        assert (example.id in made) == banned.isdisjoint(range(last - 20, last + 1))


def test_windows() -> None:
    assert [count_windows(count) for count in (0, 20, 21, 100)] == [0, 0, 1, 80]
