from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.cloze.news.mentions import find_entities
from asreader.data.example import Sentence
from asreader.data.text.tokenizer import tokenize_sentences


def found(text: str) -> dict[str, Counter[str]]:
    """Each entity of a text with the spellings of its mentions."""
    words = tokenize_sentences(text)
    return {
        entity.name: Counter(" ".join(words[at.sentence][at.start : at.end]) for at in entity.mentions)
        for entity in find_entities(words)
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The mayor met Tilda Brankov in Oslo on Friday.", {"Tilda Brankov", "Oslo"}),
        ("It rained in March, and on Monday 14 boats sank.", set()),
        ("Police said the man ran. Officials agreed. However, nobody saw him.", set()),
        ("Zelbrig said so. Later he left.", {"Zelbrig"}),
        ("Mr. Brankov met President Ilona Dresch.", {"Brankov", "Ilona Dresch"}),
        ("Foreign Minister Ilona Dresch and Secretary of State Tom Varga left.", {"Ilona Dresch", "Tom Varga"}),
        ("The Bank of England and the University of Oslo agreed.", {"Bank of England", "University of Oslo"}),
        ("Senator Ilona Dresch of Florida voted.", {"Ilona Dresch", "Florida"}),
        ("They flew to Rio de Janeiro with Jan van Dorp.", {"Rio de Janeiro", "Jan van Dorp"}),
        ("Brankov's sister praised the Dresches' house.", {"Brankov", "Dresches"}),
        ("The British envoy spoke to NATO and the U.S. press.", {"British", "NATO", "U.S."}),
        ("George W. Brankov wrote to J. R. Dresch.", {"George W. Brankov", "J. R. Dresch"}),
        ("The Fairweather-Holm estate was sold.", {"Fairweather-Holm"}),
        ("He wore a T-shirt, watched TV and said OK.", set()),
        ('He loved "The Silence of the Geese" as a boy.', {"The Silence of the Geese"}),
        ("She went to see Stephen King.", {"Stephen King"}),
        ("King Olaf of Norway waved.", {"Olaf", "Norway"}),
        ("The Duke of Cambridge met Justin Welling.", {"Duke of Cambridge", "Justin Welling"}),
        ("Workers at General Motors met General Brankov.", {"General Motors", "Brankov"}),
        ("The Premier League wrote to Premier Ilona Dresch.", {"Premier League", "Ilona Dresch"}),
        ("It was then-Secretary of State Ilona Dresch.", {"Ilona Dresch"}),
        ("The tag #BuildBridges was seen in the Sunday Courier.", {"Sunday Courier"}),
        ("They boarded Flight 370 in the summer of 2012.", {"Flight 370"}),
        ("He joined al-Shabaab, not al Qaeda.", {"al-Shabaab", "al Qaeda"}),
        ("Supreme Court judges disagreed.", {"Supreme Court"}),
        ("Singer Adelina sang.", {"Adelina"}),
        ("April Brankov was born in April.", {"April Brankov"}),
        ("Marks & Spencer opened on Valentine's Day.", {"Marks & Spencer", "Valentine 's Day"}),
    ],
)
def test_what_is_a_name_and_where_it_ends(text: str, names: set[str]) -> None:
    assert set(found(text)) == names


@pytest.mark.parametrize(
    ("text", "name", "spellings"),
    [
        ("Barack Obama spoke. President Obama left, said Obama.", "Barack Obama", {"Barack Obama": 1, "Obama": 2}),
        ("Tilda Brankov won. Everyone cheered when Tilda spoke.", "Tilda Brankov", {"Tilda Brankov": 1, "Tilda": 1}),
        ("George W. Brankov met George Brankov.", "George W. Brankov", {"George W. Brankov": 1, "George Brankov": 1}),
        (
            "The National Transport Safety Board met. The NTSB said so.",
            "National Transport Safety Board",
            {"National Transport Safety Board": 1, "NTSB": 1},
        ),
        ("The United States and the U.S. Navy: the U.S. pays.", "United States", {"United States": 1, "U.S.": 1}),
        ("We met Houthi rebels. The Houthis shot.", "Houthi", {"Houthi": 1, "Houthis": 1}),
        ("Fans met René Dubrov. Then Rene Dubrov left.", "René Dubrov", {"René Dubrov": 1, "Rene Dubrov": 1}),
        (
            "Robert Dubrov Jr. came. People cheered Dubrov Jr. again.",
            "Robert Dubrov Jr.",
            {"Robert Dubrov Jr.": 1, "Dubrov Jr.": 1},
        ),
        (
            "We met the New England Patriots. We like the Patriots.",
            "New England Patriots",
            {"New England Patriots": 1, "Patriots": 1},
        ),
        (
            "The Department of Homeland Security met. It is said that Homeland Security pays.",
            "Department of Homeland Security",
            {"Department of Homeland Security": 1, "Homeland Security": 1},
        ),
        ("The Likud Party won. A man of Likud spoke.", "Likud Party", {"Likud Party": 1, "Likud": 1}),
    ],
)
def test_mentions_of_one_entity_are_grouped(text: str, name: str, spellings: dict[str, int]) -> None:
    assert found(text)[name] == spellings


def test_two_persons_with_one_surname_stay_two_and_the_bare_name_is_the_more_frequent() -> None:
    text = "Ilona Brankov won. Her brother Otto Brankov cheered Ilona Brankov. Later Brankov thanked Otto Brankov."
    text += " Ilona Brankov smiled."
    assert found(text) == {
        "Ilona Brankov": {"Ilona Brankov": 3, "Brankov": 1},
        "Otto Brankov": {"Otto Brankov": 2},
    }


def test_a_place_is_not_short_for_what_is_named_after_it() -> None:
    assert {"Boston Marathon", "Boston"} <= found("The Boston Marathon ended. Many ran in Boston.").keys()
    assert {"New Mexico", "Mexico"} <= found("He left New Mexico for Mexico.").keys()
    assert {"Bank of England", "England"} <= found("The Bank of England is in England.").keys()


def test_a_first_name_that_came_before_the_full_name_is_someone_else() -> None:
    text = "The Bible tells of Jakob and his sons. Jakob Brankov has read it."
    assert {"Jakob", "Jakob Brankov"} <= found(text).keys()


def test_a_headline_in_capitals_gives_only_names_known_elsewhere() -> None:
    text = "SCROLL DOWN FOR MORE ABOUT BRANKOV WINNING\n\nThe jury praised Brankov. More work is down the road."
    assert found(text) == {"Brankov": {"BRANKOV": 1, "Brankov": 1}}


def test_a_common_word_is_a_name_only_where_the_text_writes_it_so() -> None:
    assert found("Cook won the race. The judges liked Cook.") == {"Cook": {"Cook": 2}}
    assert found("Cook the rice. The cook left. We like a good cook.") == {}


def test_names_side_by_side_are_cut_where_one_stands_alone_too() -> None:
    text = "We met Russian Dmitri Volkov. It was Dmitri Volkov again."
    assert found(text) == {"Russian": {"Russian": 1}, "Dmitri Volkov": {"Dmitri Volkov": 2}}


WORDS = """the The of and for in said on . , `` '' ' : -- ( ) Mr. President Ilona Otto Brankov Dresch Bank University
    England British Russians U.S. NATO GOP A I May March 14 2012 Monday de van al-Sadr Supreme Court White House King
    Duke Secretary State 's Day Jr. W. T-shirt Cook cook Party New York SHOUTED Running @ - é ½ iPhone Ω""".split()
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(tuple), max_size=8)


@given(texts)
def test_every_mention_belongs_to_one_entity_and_none_overlap(text: list[Sentence]) -> None:
    result = find_entities(text)
    places = [(at.sentence, place) for entity in result for at in entity.mentions for place in range(at.start, at.end)]
    assert len(places) == len(set(places))
    assert all(at.start < at.end <= len(text[at.sentence]) for entity in result for at in entity.mentions)
    assert len({entity.name for entity in result}) == len(result)
    firsts = [entity.mentions[0] for entity in result]
    assert firsts == sorted(firsts, key=lambda at: (at.sentence, at.start))


@given(texts)
def test_one_spelling_is_one_entity(text: list[Sentence]) -> None:
    spelled: dict[str, str] = {}
    for entity in find_entities(text):
        for at in entity.mentions:
            spelling = " ".join(text[at.sentence][at.start : at.end])
            assert spelled.setdefault(spelling, entity.name) == entity.name


@given(texts, st.sampled_from(["Zorvatt", "Quillmere", "Ybarrondo"]))
def test_renaming_an_unknown_name_changes_nothing_else(text: list[Sentence], name: str) -> None:
    renamed = [tuple(name if word == "Brankov" else word for word in sentence) for sentence in text]
    before, after = find_entities(text), find_entities(renamed)
    assert [entity.mentions for entity in before] == [entity.mentions for entity in after]


@given(st.permutations(["Ilona Brankov won the race", "Otto Brankov lost", "Ilona Dresch slept", "Otto Dresch rose"]))
def test_full_names_never_merge(lines: list[str]) -> None:
    names = {"Ilona Brankov", "Otto Brankov", "Ilona Dresch", "Otto Dresch"}
    text = ". ".join([*lines, "Then Brankov met Ilona", "At last Dresch met Otto"]) + "."
    assert found(text).keys() == names
