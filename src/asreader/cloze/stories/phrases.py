"""Fact -> words: the ways to tell each kind of fact, the sentences that tell nothing, and the ways to ask.

A phrase is words with the slots PERSON, OTHER, OBJECT and PLACE. Questions use other wording than the telling does.
"""

from __future__ import annotations

from dataclasses import dataclass

from asreader.data.example import Sentence

SLOTS = ("PERSON", "OTHER", "OBJECT", "PLACE")


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """A kind of question: which facts it is about, the slot it asks for, how often it is chosen, its phrases."""

    verb: str
    asked: str
    weight: int
    phrases: tuple[Sentence, ...]


def _lines(text: str) -> tuple[Sentence, ...]:
    """One phrase a line -> phrases as words."""
    return tuple(tuple(line.split()) for line in text.strip().splitlines())


OPENERS = _lines(
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
    "wait": _lines(
        """
        PERSON was in the PLACE .
        PERSON waited in the PLACE .
        PERSON sat in the PLACE and hummed a tune .
        """
    ),
    "go": _lines(
        """
        PERSON walked to the PLACE .
        PERSON went to the PLACE .
        PERSON hurried to the PLACE , a little out of breath .
        """
    ),
    "take": _lines(
        """
        PERSON took the OBJECT .
        PERSON grabbed the OBJECT .
        PERSON lifted the OBJECT with both hands .
        PERSON found the OBJECT and took it along .
        """
    ),
    "drop": _lines(
        """
        PERSON left the OBJECT in the PLACE .
        PERSON dropped the OBJECT in the PLACE .
        PERSON hid the OBJECT in the PLACE .
        PERSON put the OBJECT in the PLACE for safety .
        """
    ),
    "give": _lines(
        """
        PERSON gave the OBJECT to OTHER .
        PERSON handed the OBJECT to OTHER .
        PERSON passed the OBJECT to OTHER with a smile .
        PERSON offered the OBJECT to OTHER , who took it gladly .
        """
    ),
    "meet": _lines(
        """
        PERSON met OTHER in the PLACE .
        PERSON greeted OTHER .
        `` Good day , OTHER ! '' said PERSON .
        PERSON and OTHER talked for a while in the PLACE .
        """
    ),
}
"""How each kind of fact is told."""

ASIDES = _lines(
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
"""Sentences that change nothing: weather, moods, animals, talk."""

QUESTION_KINDS: dict[str, QuestionKind] = {
    "giver": QuestionKind("give", "PERSON", 14, _lines("""
        The OBJECT came to OTHER from XXXXX .
        OTHER got the OBJECT from XXXXX .
        """)),
    "receiver": QuestionKind("give", "OTHER", 14, _lines("""
        The OBJECT went from PERSON to XXXXX .
        XXXXX got the OBJECT from PERSON .
        """)),
    "gift": QuestionKind("give", "OBJECT", 6, _lines("""
        OTHER got the XXXXX from PERSON .
        PERSON let OTHER have the XXXXX .
        """)),
    "taker": QuestionKind("take", "PERSON", 20, _lines("""
        The OBJECT was collected by XXXXX .
        XXXXX collected the OBJECT .
        """)),
    "taken": QuestionKind("take", "OBJECT", 6, _lines("""
        PERSON collected the XXXXX .
        The XXXXX was collected by PERSON .
        """)),
    "dropper": QuestionKind("drop", "PERSON", 10, _lines("""
        The OBJECT was laid down by XXXXX .
        XXXXX laid down the OBJECT .
        """)),
    "dropped": QuestionKind("drop", "PLACE", 14, _lines("""
        PERSON laid the OBJECT down in the XXXXX .
        The OBJECT was laid down by PERSON in the XXXXX .
        """)),
    "holder": QuestionKind("hold", "PERSON", 10, _lines("""
        At the end XXXXX is holding the OBJECT .
        The OBJECT belongs to XXXXX in the end .
        """)),
    "object_place": QuestionKind("lie", "PLACE", 6, _lines("""
        The OBJECT is now in the XXXXX .
        The OBJECT is in the XXXXX at the end .
        """)),
    "person_place": QuestionKind("stand", "PLACE", 4, _lines("""
        PERSON is now in the XXXXX .
        PERSON is in the XXXXX at the end .
        """)),
    "last_in": QuestionKind("enter", "PERSON", 4, _lines("""
        The last person to enter the PLACE was XXXXX .
        XXXXX was the last to enter the PLACE .
        """)),
}  # fmt: skip
"""What is asked, by kind. The verbs hold, lie, stand and enter are facts about the end that no sentence tells."""
