"""raw text -> sentences of Penn-Treebank words, as Stanford's tools wrote them in the Children's Book Test.

One regular expression finds the words. A sentence ends after every `.`, `!` or `?` that is a word of its own and after
the closing marks that follow it. Text that is already tokenised and separated by spaces keeps its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from asreader.data.example import GAP, Sentence
from asreader.data.text import chinese
from asreader.data.text.chinese import HAN

_GAP = re.compile(r"X{5,}|@placeholder\b|_{3,}")
_UNSPLIT = re.compile(rf"{GAP}|@entity\d+")
_PARAGRAPH = re.compile(r"\n\s*\n")

# --- marks ---
_MARKS = str.maketrans(
    {
        **dict.fromkeys("“„‟", " `` "),
        "”": " '' ",
        **dict.fromkeys("‘‚‛", " ` "),
        **dict.fromkeys("’ʼ", "'"),
        **dict.fromkeys("—―–", " -- "),
        **dict.fromkeys("‐‑", "-"),
        "…": " ... ",
        **dict.fromkeys("\u00ad\u200b\ufeff", ""),
        **{mark: f" -{name}- " for mark, name in zip("()[]{}", "LRB RRB LSB RSB LCB RCB".split(), strict=True)},
    }
)
# Words without their first letters: the mark before them is an apostrophe, not a quotation mark.
_ELIDED = "em|cause|till?|tis|twas|twere|twill|twould|tain't|bout|neath|gainst|twixt|n|s|m|d|ll|re|ve"
_ELISION = re.compile(rf"‘(?=(?:{_ELIDED})\b)", re.IGNORECASE)
_OPENING_DOUBLE = re.compile(r'"(?=[^\W_])|(?<!\S)"(?=[^\s.,;:!?)\]]|\.\.)')
# As in Stanford's tools, the mark before a word of one letter ('I see) is a closing one.
_OPENING_SINGLE = re.compile(rf"(?<![^\W_])'(?=[^\W\d_]\S)(?!(?i:{_ELIDED})\b)")
_CLOSING = frozenset(("''", "'", "-RRB-", "-RSB-", "-RCB-", "”", "’", "」", "』", "）", "】", "》"))

# --- abbreviations ---
# They precede names and numbers: their point never ends a sentence.
_TITLES = (
    "Mr|Mrs|Ms|Mme|Mlle|Messrs|Dr|St|Ste|Prof|Capt|Col|Gen|Lt|Lieut|Sgt|Maj|Rev|Hon|Gov|Pres|Sen|Rep|Mt|Ft|"
    "Jan|Feb|Aug|Sept|Oct|Nov|Dec|vs|viz|cf|vol|vols|fig|esq"
)
# They may end a sentence; its own point then follows theirs.
_SHORTENED = "etc|Jr|Sr|Co|Corp|Inc|Ltd|Bros"
_STARTERS = (
    "A|After|All|Although|An|And|As|At|Before|But|By|Even|For|From|He|Her|Here|His|How|However|I|If|In|It|Its|Just|"
    "My|No|Not|Now|On|Once|One|Our|Perhaps|She|Since|So|Some|Still|Such|That|The|Their|Then|There|These|They|This|"
    "Those|Though|Thus|To|Upon|We|Well|What|When|Where|Which|While|Who|Why|With|Yes|Yet|You|Your"
)
_LAST = re.compile(
    rf"""(?<![^\W_])((?:{_SHORTENED}|[A-Za-z]\.[A-Za-z](?:\.[A-Za-z]){{0,5}})\.)"""
    rf"""(?=["'”’)\]]*(?:\s+["'“‘`(\[]*(?:{_STARTERS})\b|\s*$))"""
)

# --- words ---
# Everything but space and punctuation, so that combining marks of any script stay in their words.
_LETTER = (
    r"[^\s!-/:-@\[-`{-~\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u2010-\u205e\u3000-\u303f"
    rf"\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65{HAN}]"
)
_FUSED = rf"(?:[Cc]annot|CANNOT|[Gg]onna|[Gg]otta|[Ww]anna|[Ll]emme|[Gg]imme)(?!{_LETTER})"
_TOKEN = re.compile(
    rf"""(?!{_FUSED})[A-Za-z]++(?=[\s,;])           # nearly every word, therefore first
    |-[LR][RSC]B-|@entity\d+
    |(?:https?://|www\.)[^\s"<>]*[\w/]
    |\d+(?:[.,:/]\d+)+(?:[-']?{_LETTER}+)*
    |(?:[A-Za-z]\.){{2,}}(?:-?{_LETTER}+)*
    |(?=[A-Za-z]{{2,6}}\.)(?i:{_TITLES}|{_SHORTENED})\.(?!\.)
    |(?:[Nn]os?|pp?)\.(?=\s*\d)
    |[A-HJ-Z]\.(?!\s*(?:'|-R[RSC]B-|\Z))        # an initial, not the end of a sentence
    |(?={_FUSED})[A-Za-z]{{3}}|[Dd]'(?=\s*y)|[Oo]l'(?!{_LETTER})
    |{_LETTER}+(?:(?:[-'&_@]|\.(?=[a-z0-9])){_LETTER}+)*
    |[{HAN}]+
    |'[Tt](?=(?i:is|was|were|will|would|ain't)\b)
    |'(?:(?i:n'|{_ELIDED}|t)|\d0s)(?!{_LETTER})
    |``|''|--+|—+|\.\.+|\.(?:\s\.){{2,}}|…+|[!?]+|[。！？]+
    |\S""",
    re.VERBOSE,
)
_PLAIN_WORD = re.compile(rf"(?!{_FUSED})(?!.*{GAP})[A-Za-z0-9]+")
_CONTRACTION = re.compile(rf"(.*?{_LETTER})(?:'?(n't)|('(?:s|m|d|ll|re|ve|n))(?:(-)(.+))?)", re.IGNORECASE)
MAX_CONTRACTION_LENGTH = 100
"""Characters of a token that may contain a contraction; longer tokens are not words of a language."""
_CHINESE = re.compile(f"[{HAN}]")
_POINTS, _DASHES = re.compile(r"\.{3,}|\.(?:\s\.)+"), re.compile(r"-{3,4}")


def tokenize(text: str) -> Sentence:
    """The words of one sentence; entity marks and the gap are not split."""
    return (text,) if _PLAIN_WORD.fullmatch(text) else tuple(_find_words(text))  # most candidates are one word


def tokenize_sentences(text: str) -> tuple[Sentence, ...]:
    """A text as sentences of words; an empty line also ends a sentence, for example after a heading.

    A single line end does not: paragraphs on lines of their own are joined.
    """
    text = _GAP.sub(f" {GAP} ", text.replace("\r\n", "\n"))
    return tuple(sentence for paragraph in _PARAGRAPH.split(text) for sentence in _split_paragraph(paragraph))


def tokenize_question(text: str) -> Sentence:
    """A question in which XXXXX, @placeholder or a run of underscores is the gap."""
    return tuple(word for sentence in tokenize_sentences(text) for word in sentence)


def _split_paragraph(paragraph: str) -> Iterator[Sentence]:
    sentence: list[str] = []
    has_ended = False
    for word in _find_words(_LAST.sub(r"\1 .", paragraph)):
        is_end = word == "." or word[0] in "!?。！？…"
        if has_ended and not is_end and word not in _CLOSING:
            yield tuple(sentence)
            sentence, has_ended = [], False
        sentence.append(word)
        has_ended = has_ended or is_end
    if sentence:
        yield tuple(sentence)


def _find_words(text: str) -> Iterator[str]:
    """Normalise the marks of a text and split it into words."""
    text = _UNSPLIT.sub(r" \g<0> ", text)
    if not chinese.is_chinese(text):
        text = _normalize_marks(text)
    elif chinese.is_segmented(text):
        yield from text.split()
        return
    for token in _TOKEN.findall(chinese.join_wrapped_lines(text)):
        if token.isalpha() and token.isascii():
            yield token
        elif _CHINESE.match(token):
            yield from chinese.segment_words(token)
        else:
            yield from _split_token(token)


def _normalize_marks(text: str) -> str:
    """Write quotation marks, brackets and dashes as the Penn Treebank does."""
    text = _ELISION.sub("'", text).translate(_MARKS)
    text = _OPENING_DOUBLE.sub(" `` ", text).replace('"', " '' ")
    return _OPENING_SINGLE.sub(" ` ", text)


@lru_cache(maxsize=1 << 16)
def _split_token(token: str) -> tuple[str, ...]:
    """A token as words: contractions are split, rows of points or dashes are normalised."""
    if len(token) <= MAX_CONTRACTION_LENGTH and (contraction := _CONTRACTION.fullmatch(token)):
        stem, negation, clitic, hyphen, rest = contraction.groups()
        rest_words = _split_token(rest) if rest else ()
        return (*_split_token(stem), *filter(None, (negation, clitic, hyphen)), *rest_words)
    if _POINTS.fullmatch(token):
        return ("...",)
    if _DASHES.fullmatch(token):
        return ("--",)
    return (token,)
