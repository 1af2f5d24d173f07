"""Chinese: the word classes of jieba's own dictionary (MIT; extra `chinese`)"""

from __future__ import annotations

from collections.abc import Sequence

from asreader.cloze.tagging import NAMED, NOUN, OTHER, PREPOSITION, VERB, Tagger, WordClasses, reject_model
from asreader.data.example import Sentence
from asreader.data.text import chinese

# Tags of persons, places, organizations, other names and times; as in English, times are in the class NAMED.
_NAMED_TAGS = ("nr", "ns", "nt", "nz", "t")


def load_tagger(model: str = "") -> Tagger:
    """The only tagger of this plug-in; it has no models."""
    reject_model("jieba", model)
    return classify_words


def classify_words(book: Sequence[Sentence]) -> list[WordClasses]:
    """A class for every word of a book."""
    return [tuple(map(_map_tag, chinese.tag_words(sentence))) for sentence in book]


def _map_tag(tag: str) -> str:
    if tag.startswith(_NAMED_TAGS):
        return NAMED
    return {"n": NOUN, "v": VERB, "p": PREPOSITION}.get(tag[:1], OTHER)
