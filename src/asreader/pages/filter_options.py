"""which questions are shown, and in what order: words that the command line and the gallery share."""

from __future__ import annotations

from enum import StrEnum


class AnswerSelection(StrEnum):
    """Which questions."""

    every = "all"
    right = "right"
    wrong = "wrong"
    surprising = "surprising"


class QuestionOrder(StrEnum):
    """What comes first: the data's first, the surest, the least sure, the least expected, the longest document."""

    data = "data"
    confidence = "confidence"
    doubt = "doubt"
    surprise = "surprise"
    length = "length"
