"""The bundled tagger gives the classes of the Children's Book Test."""

from __future__ import annotations

import pytest

from asreader.cloze import lexicon
from asreader.cloze.tagging import NAMED, NOUN, OTHER, PREPOSITION, VERB, lexical


def classes(*sentences: str, of: str) -> list[str]:
    """The classes of every occurrence of a word in these sentences."""
    book = [tuple(sentence.split()) for sentence in sentences]
    found = lexical.classify_words(book)
    pairs = [pair for words, kinds in zip(book, found, strict=True) for pair in zip(words, kinds, strict=True)]
    return [kind for word, kind in pairs if word == of]


def test_a_word_that_the_book_writes_with_a_capital_inside_sentences_is_a_name() -> None:
    assert classes("Then Velda laughed .", "Velda slept .", of="Velda") == [NAMED, NAMED]


def test_a_word_that_only_begins_sentences_is_a_name_if_english_has_no_other_use_for_it() -> None:
    assert classes("Velda slept .", of="Velda") == [NAMED]
    assert classes("Soup was hot .", of="Soup") == [OTHER]


def test_of_a_name_of_several_words_the_last_counts() -> None:
    assert classes("We met Velda Marsh there .", of="Velda") == [OTHER]
    assert classes("We met Velda Marsh there .", of="Marsh") == [NAMED]


def test_a_common_noun_with_a_capital_is_a_name_only_if_it_follows_one_somewhere() -> None:
    assert classes("He called the Shadow by name .", "It was Shadow again .", of="Shadow") == [OTHER, OTHER]
    assert classes("He met Velda Fox .", "It was Fox again .", of="Fox") == [NAMED, NAMED]
    assert classes("They saw Mr. Fox .", of="Fox") == [NAMED]


def test_a_name_with_a_lower_case_twin_is_what_the_book_mostly_writes() -> None:
    assert classes("A rose for Rose .", "One rose .", of="Rose") == [OTHER]


@pytest.mark.parametrize("word", ["Sunday", "December", "Mr.", "Madam", "I", "But"])
def test_dates_titles_and_beginnings_are_no_names(word: str) -> None:
    assert classes(f"So it was {word} again .", f"{word} came .", of=word) == [OTHER, OTHER]


def test_words_of_time_count_unless_a_neighbour_makes_them_a_point_of_reference() -> None:
    assert classes("One day they left .", of="day") == [NAMED]
    assert classes("The day was hot .", "The next day was cold .", of="day") == [NOUN, NOUN]
    assert classes("Good morning !", "In the morning it rained .", of="morning") == [NOUN, NAMED]
    assert classes("The first one won .", of="first") == [NAMED]


@pytest.mark.parametrize("word", ["ogre", "window-sill", "waggon", "granma"])
def test_a_noun_that_no_newspaper_had_is_a_named_entity(word: str) -> None:
    assert lexicon.look_up_tag(word) is None
    assert classes(f"The {word} was old .", of=word) == [NAMED]


@pytest.mark.parametrize("word", ["grumpily", "half-playful", "scampered", "cleverest", "armour"])
def test_other_unknown_words_and_nouns_known_by_another_spelling_are_no_named_entities(word: str) -> None:
    assert classes(f"It was {word} .", of=word)[0] != NAMED


def test_nouns_verbs_and_prepositions() -> None:
    assert classes("The table stood in the garden .", of="table") == [NOUN]
    assert classes("They put it under the table .", of="under") == [PREPOSITION]
    assert classes("She said nothing because of that .", of="said") == [VERB]
    assert classes("She stayed because it rained .", of="because") == [OTHER]
    assert classes("They work hard .", "The work was hard .", of="work") == [VERB, NOUN]


def test_every_tag_of_the_lexicon_is_one_word() -> None:
    tags = lexicon.load_tags()
    assert len(tags) > 90_000
    assert tags["house"] == "NN" and tags["under"] == "IN"
    assert all(word and tag and " " not in tag for word, tag in tags.items())
