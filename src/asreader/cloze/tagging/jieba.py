"""Chinese: the word classes of jieba's own dictionary (MIT; extra `chinese`)"""

from __future__ import annotations

from collections.abc import Sequence

from asreader.cloze.tagging import NAMED, NOUN, OTHER, PREPOSITION, VERB, Tagger, WordClasses, reject_model
from asreader.data.example import Sentence
from asreader.data.text import chinese

# Persons, places, organisations, other names; times and ordinals belong to the class too, as in English.
_NAMED = ("nr", "ns", "nt", "nz", "t")


def load_tagger(model: str = "") -> Tagger:
    """The dictionary; there is nothing to choose."""
    reject_model("jieba", model)
    return classify_words


def classify_words(book: Sequence[Sentence]) -> list[WordClasses]:
    """A class for every word of a book."""
    return [tuple(map(_class, chinese.tags(sentence))) for sentence in book]


def _class(tag: str) -> str:
    if tag.startswith(_NAMED):
        return NAMED
    return {"n": NOUN, "v": VERB, "p": PREPOSITION}.get(tag[:1], OTHER)
