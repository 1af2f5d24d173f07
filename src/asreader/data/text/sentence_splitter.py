"""words -> sentences: splits tokenised text without line ends, for formats that come as one run of words."""

from __future__ import annotations

from asreader.data.example import Sentence

_ENDS = {".", "?", "!"}
_CLOSERS = {"''", "'", '"', "”", "’", ")"}


def split_sentences(words: Sentence) -> tuple[Sentence, ...]:
    """Words split after each . ? ! and the closing quotes that follow it; no word is lost."""
    sentences = []
    start, has_ended = 0, False
    for index, word in enumerate(words):
        if word in _ENDS:
            has_ended = True
        elif has_ended and word not in _CLOSERS:
            sentences.append(words[start:index])
            start, has_ended = index, False
    return (*sentences, words[start:]) if words else ()
