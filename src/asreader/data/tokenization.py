"""raw text -> sentences of Penn-Treebank-style words, as the public data sets have them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from asreader.data.example import GAP, Sentence

if TYPE_CHECKING:
    from nltk.tokenize.destructive import NLTKWordTokenizer

_GAP = re.compile(r"X{5,}|@placeholder\b|_{3,}")
_WHOLE = re.compile(rf"({GAP}|@entity\d+)")
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u00ad": ""})
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Prof|Capt|Col|Gen|Lt|Rev|Hon|Sr|Jr|vs|etc|No)|\b[A-Z])\.$")
_SENTENCE_END = re.compile(r"""(?:[.!?…]+["')\]]*(?=\s+["'(\[]*[A-Z0-9@_])|[。！？]+[”」』]*|\n\s*\n)\s*""")


def words(text: str) -> Sentence:
    """The words of one sentence; entity marks and the gap stay whole."""
    tokenizer = _tokenizer()
    pieces: list[str] = []
    for part in _WHOLE.split(text.translate(_QUOTES)):
        pieces.extend([part] if _WHOLE.fullmatch(part) else tokenizer.tokenize(part))
    # A token of the library may still hold a space inside a number; words never do.
    return tuple(word for piece in pieces for word in piece.split())


def sentences(text: str) -> tuple[Sentence, ...]:
    """A text as sentences of words; an empty line ends a sentence too, as it does under a heading."""
    text = _GAP.sub(f" {GAP} ", text.translate(_QUOTES).replace("\r\n", "\n"))
    found, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        if _ABBREVIATION.search(text[start : end.end()].rstrip()):
            continue
        found.append(words(text[start : end.end()]))
        start = end.end()
    found.append(words(text[start:]))
    return tuple(sentence for sentence in found if sentence)


def question(text: str) -> Sentence:
    """A question in which XXXXX, @placeholder or a run of underscores is the gap."""
    return tuple(word for sentence in sentences(text) for word in sentence)


@cache
def _tokenizer() -> NLTKWordTokenizer:
    # nltk takes a third of a second to import, and data that is already in words never needs it.
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()
