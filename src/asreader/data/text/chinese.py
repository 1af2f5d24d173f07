"""Chinese text -> words, and words -> dictionary tags; the only user of the optional library jieba."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

from asreader.errors import InputError

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""The characters of Chinese words, as ranges for a regular expression."""
UNKNOWN_TAG = "x"
"""jieba's tag for words that are not in its dictionary."""

_MARKS = "，。！？：；、“”…"
_RUN = re.compile(f"[{HAN}]+")
_SPACED = re.compile(rf"[{HAN}][^\S\n]+[{HAN}{_MARKS}]")
_TOUCHING = re.compile(f"[{HAN}][{_MARKS}]|[{_MARKS}][{HAN}]")
_WRAP = re.compile(rf"(?<=[{HAN}{_MARKS}])[^\S\n]*\n[^\S\n]*(?=[{HAN}{_MARKS}])")
MAX_MEAN_WORD_LENGTH = 4
"""Upper limit of the mean word length in characters; an unsegmented text is longer between its spaces."""


def is_chinese(text: str) -> bool:
    """Whether a text is written in Chinese rather than only quoting some."""
    if text.isascii() or not _RUN.search(text):
        return False
    return sum(map(len, _RUN.findall(text))) >= len(re.findall("[A-Za-z]+", text))


def is_segmented(text: str) -> bool:
    """Whether spaces separate the words and the punctuation of a Chinese text."""
    if not _SPACED.search(text) or _TOUCHING.search(text):
        return False
    runs = _RUN.findall(text)
    return sum(map(len, runs)) <= MAX_MEAN_WORD_LENGTH * len(runs)


def join_wrapped_lines(text: str) -> str:
    """The text without line ends between Chinese characters, which separate no words."""
    return text if text.isascii() else _WRAP.sub("", text)


def segment_words(text: str) -> list[str]:
    """The words of a text without spaces."""
    return [word for word in _load_segmenter().cut(text) if not word.isspace()]


def tag_words(words: Iterable[str]) -> list[str]:
    """The dictionary tag of each word (n noun, nr person, ns place, v verb, ...); words are not segmented again.

    The tag of a word that is not in the dictionary, such as most names of persons, is guessed from its characters.
    """
    table = _load_tagger().word_tag_tab
    return [table.get(word) or _guess_tag(word) for word in words]


@cache
def _load_segmenter() -> Any:
    """jieba's segmenter with its dictionary read here: by default it caches a copy in the shared temporary folder."""
    segmenter = _import_jieba().Tokenizer()
    with segmenter.get_dict_file() as dictionary:
        segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(dictionary)
    segmenter.initialized = True
    return segmenter


@cache
def _load_tagger() -> Any:
    _import_jieba()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba.posseg
    return jieba.posseg.POSTokenizer(_load_segmenter())


@lru_cache(maxsize=1 << 16)
def _guess_tag(word: str) -> str:
    if not _RUN.search(word):
        return UNKNOWN_TAG
    parts = [part.flag for part in _load_tagger().cut(word)]
    return str(parts[0] if parts[0] == "nr" else parts[-1])  # a surname, then what looks like another word


def _import_jieba() -> Any:
    """The library without its log and without the warnings of its old code, which a user cannot fix."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jieba
    except ImportError:
        raise InputError("Chinese text needs the library jieba; pip install 'asreader[chinese]'") from None
    jieba.setLogLevel(logging.WARNING)
    return jieba
