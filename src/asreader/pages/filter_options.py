"""Options of the question filter, shared by the command line and the gallery: which questions, in which order."""

from __future__ import annotations

from enum import StrEnum


class AnswerSelection(StrEnum):
    """Which questions are shown; `surprising` are all with a known answer, the least probable answer first."""

    every = "all"
    right = "right"
    wrong = "wrong"
    surprising = "surprising"


class QuestionOrder(StrEnum):
    """Order of the data, most or least confident first, least probable right answer first, longest document first."""

    data = "data"
    confidence = "confidence"
    doubt = "doubt"
    surprise = "surprise"
    length = "length"
