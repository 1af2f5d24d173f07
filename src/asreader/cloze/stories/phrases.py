"""fact -> words: phrases for each kind of fact, for sentences without a fact, and for each kind of question.

A phrase is words with the slots PERSON, OTHER, OBJECT and PLACE. Questions are worded differently from the facts.
"""

from __future__ import annotations

from dataclasses import dataclass

from asreader.data.example import Sentence

SLOTS = ("PERSON", "OTHER", "OBJECT", "PLACE")


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """A kind of question: the verb of its facts, the slot it asks for, its relative frequency, its phrases."""

    verb: str
    slot: str
    weight: int
    phrases: tuple[Sentence, ...]


def _split_phrases(text: str) -> tuple[Sentence, ...]:
    """Text with one phrase per line -> phrases as words."""
    return tuple(tuple(line.split()) for line in text.strip().splitlines())


OPENERS = _split_phrases(
    """
    Then
    Soon
    Later
    After that ,
    A little later ,
    Before noon ,
    """
)

FACT_PHRASES: dict[str, tuple[Sentence, ...]] = {
    "wait": _split_phrases(
        """
        PERSON was in the PLACE .
        PERSON waited in the PLACE .
        PERSON sat in the PLACE and hummed a tune .
        """
    ),
    "go": _split_phrases(
        """
        PERSON walked to the PLACE .
        PERSON went to the PLACE .
        PERSON hurried to the PLACE , a little out of breath .
        """
    ),
    "take": _split_phrases(
        """
        PERSON took the OBJECT .
        PERSON grabbed the OBJECT .
        PERSON lifted the OBJECT with both hands .
        PERSON found the OBJECT and took it along .
        """
    ),
    "drop": _split_phrases(
        """
        PERSON left the OBJECT in the PLACE .
        PERSON dropped the OBJECT in the PLACE .
        PERSON hid the OBJECT in the PLACE .
        PERSON put the OBJECT in the PLACE for safety .
        """
    ),
    "give": _split_phrases(
        """
        PERSON gave the OBJECT to OTHER .
        PERSON handed the OBJECT to OTHER .
        PERSON passed the OBJECT to OTHER with a smile .
        PERSON offered the OBJECT to OTHER , who took it gladly .
        """
    ),
    "meet": _split_phrases(
        """
        PERSON met OTHER in the PLACE .
        PERSON greeted OTHER .
        `` Good day , OTHER ! '' said PERSON .
        PERSON and OTHER talked for a while in the PLACE .
        """
    ),
}
"""The phrases for each kind of fact, by its verb."""

ASIDES = _split_phrases(
    """
    PERSON felt a little sleepy .
    PERSON whistled an old song .
    PERSON was in a very good mood .
    PERSON laughed at the clouds .
    PERSON was taller than OTHER .
    PERSON and OTHER had the same birthday .
    PERSON was an old friend of OTHER .
    PERSON often dreamed about the OBJECT .
    PERSON asked who had made the OBJECT .
    PERSON told a tale about the OBJECT .
    PERSON liked the PLACE best in winter .
    PERSON drew a picture of the PLACE .
    PERSON had once told OTHER about the PLACE .
    PERSON had once told OTHER about the OBJECT .
    Rain fell on the PLACE .
    Two swallows flew over the PLACE .
    A grey cat slept near the PLACE .
    The wind blew from the PLACE to the PLACE .
    There was an old song about the OBJECT and the PLACE .
    The OBJECT was very old .
    Nobody knew how much the OBJECT was worth .
    A brown dog liked the smell of the OBJECT .
    The OBJECT was smaller than the OBJECT .
    """
)
"""Sentences without a fact: weather, moods, animals, talk."""

QUESTION_KINDS: dict[str, QuestionKind] = {
    "giver": QuestionKind(
        "give",
        "PERSON",
        14,
        _split_phrases("""
        The OBJECT came to OTHER from XXXXX .
        OTHER got the OBJECT from XXXXX .
        """),
    ),
    "receiver": QuestionKind(
        "give",
        "OTHER",
        14,
        _split_phrases("""
        The OBJECT went from PERSON to XXXXX .
        XXXXX got the OBJECT from PERSON .
        """),
    ),
    "gift": QuestionKind(
        "give",
        "OBJECT",
        6,
        _split_phrases("""
        OTHER got the XXXXX from PERSON .
        PERSON let OTHER have the XXXXX .
        """),
    ),
    "taker": QuestionKind(
        "take",
        "PERSON",
        20,
        _split_phrases("""
        The OBJECT was collected by XXXXX .
        XXXXX collected the OBJECT .
        """),
    ),
    "taken": QuestionKind(
        "take",
        "OBJECT",
        6,
        _split_phrases("""
        PERSON collected the XXXXX .
        The XXXXX was collected by PERSON .
        """),
    ),
    "dropper": QuestionKind(
        "drop",
        "PERSON",
        10,
        _split_phrases("""
        The OBJECT was laid down by XXXXX .
        XXXXX laid down the OBJECT .
        """),
    ),
    "dropped": QuestionKind(
        "drop",
        "PLACE",
        14,
        _split_phrases("""
        PERSON laid the OBJECT down in the XXXXX .
        The OBJECT was laid down by PERSON in the XXXXX .
        """),
    ),
    "holder": QuestionKind(
        "hold",
        "PERSON",
        10,
        _split_phrases("""
        At the end XXXXX is holding the OBJECT .
        The OBJECT belongs to XXXXX in the end .
        """),
    ),
    "object_place": QuestionKind(
        "lie",
        "PLACE",
        6,
        _split_phrases("""
        The OBJECT is now in the XXXXX .
        The OBJECT is in the XXXXX at the end .
        """),
    ),
    "person_place": QuestionKind(
        "stand",
        "PLACE",
        4,
        _split_phrases("""
        PERSON is now in the XXXXX .
        PERSON is in the XXXXX at the end .
        """),
    ),
    "last_in": QuestionKind(
        "enter",
        "PERSON",
        4,
        _split_phrases("""
        The last person to enter the PLACE was XXXXX .
        XXXXX was the last to enter the PLACE .
        """),
    ),
}
"""The kinds of questions. Hold, lie, stand and enter are facts about the final state, which no sentence states."""
