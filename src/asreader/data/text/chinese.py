"""Chinese text -> words, and words -> their dictionary tags; the one home of jieba, an optional library."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

from asreader.errors import InputError

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""The characters of Chinese words, as a range of a regular expression."""
UNKNOWN_TAG = "x"
"""jieba's own tag for what its dictionary does not hold."""

_MARKS = "，。！？：；、“”…"
_RUN = re.compile(f"[{HAN}]+")
_APART = re.compile(rf"[{HAN}][^\S\n]+[{HAN}{_MARKS}]")
_TOUCHING = re.compile(f"[{HAN}][{_MARKS}]|[{_MARKS}][{HAN}]")
_WRAP = re.compile(rf"(?<=[{HAN}{_MARKS}])[^\S\n]*\n[^\S\n]*(?=[{HAN}{_MARKS}])")
LONGEST_MEAN = 4
"""Characters of a word on average; what stands between the spaces of a text without word borders is longer."""


def is_chinese(text: str) -> bool:
    """Whether Chinese is what a text is written in, and not only quoted."""
    if text.isascii() or not _RUN.search(text):
        return False
    return sum(map(len, _RUN.findall(text))) >= len(re.findall("[A-Za-z]+", text))


def is_segmented(text: str) -> bool:
    """Whether spaces part the words of a Chinese text, and its punctuation too."""
    if not _APART.search(text) or _TOUCHING.search(text):
        return False
    runs = _RUN.findall(text)
    return sum(map(len, runs)) <= LONGEST_MEAN * len(runs)


def join_wrapped_lines(text: str) -> str:
    """The text without line ends between its characters, which part no words."""
    return text if text.isascii() else _WRAP.sub("", text)


def segment_words(text: str) -> list[str]:
    """The words of a text that is written without spaces."""
    return [word for word in _segmenter().cut(text) if not word.isspace()]


def tag_words(words: Iterable[str]) -> list[str]:
    """The dictionary's tag of each word (n noun, nr person, ns place, v verb, ...), the words taken as they are.

    A word that it does not have, as most names of persons, is guessed from its characters.
    """
    table = _tagger().word_tag_tab
    return [table.get(word) or _guessed(word) for word in words]


@cache
def _segmenter() -> Any:
    """jieba's segmenter with its dictionary read anew: left alone it keeps a copy in the shared temporary folder."""
    segmenter = _jieba().Tokenizer()
    with segmenter.get_dict_file() as dictionary:
        segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(dictionary)
    segmenter.initialized = True
    return segmenter


@cache
def _tagger() -> Any:
    _jieba()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba.posseg
    return jieba.posseg.POSTokenizer(_segmenter())


@lru_cache(maxsize=1 << 16)
def _guessed(word: str) -> str:
    if not _RUN.search(word):
        return UNKNOWN_TAG
    parts = [part.flag for part in _tagger().cut(word)]
    return str(parts[0] if parts[0] == "nr" else parts[-1])  # a surname with what looks like another word behind it


def _jieba() -> Any:
    """The library, without its log and without the warnings of its old code, which no user can mend."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jieba
    except ImportError:
        raise InputError("Chinese text needs the library jieba; pip install 'asreader[chinese]'") from None
    jieba.setLogLevel(logging.WARNING)
    return jieba
