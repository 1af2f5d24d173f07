"""sentence of words -> one class letter per word, from capitals, the lexicon and how the text itself writes each word.

Whether a capitalized word is a name is decided by the text first (is it capitalized inside sentences? does it occur in
lower case?), then by the lexicon. The letters:

    N  name                          D  people, faith or party (British)    A  acronym (NATO)
    i  initials (W., J.R.)           C  capitalized common word             G  one of ORGANIZATION_NOUNS
    M  one of MODIFIERS              B  noble title before "of"             H  one of NOUNS_AFTER_POSSESSIVE after 's
    Q  word of a title in quotes     x  capitalized function word           0  number
    t  title (President)             k  month, day, other non-name          p  particle of a name (de, van, al)
    r  suffix of a name (Jr., III)   o  of      f  for, on                  d  the      a  and      &  &      s  's
    .  anything else
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from asreader.cloze.lexicon import look_up_tag
from asreader.cloze.news.name_words import (
    CALENDAR,
    CLASS_LETTERS,
    FIRST_NAMES,
    FUNCTION_TAGS,
    MODIFIERS,
    NOBLE_TITLES,
    NOUNS_AFTER_POSSESSIVE,
    ORGANIZATION_NOUNS,
    QUOTES,
    REGIONS,
    SENTENCE_OPENERS,
    SMALL_WORDS,
    TITLES_CLOSING_NAMES,
    TITLES_OPENING_NAMES,
)
from asreader.data.example import Sentence

# One or more initials, with or without full stops: W, W., J.R., J.R
_INITIALS = re.compile(r"[A-Z]\.?|(?:[A-Z]\.)+[A-Z]?")
# A name that starts in lower case: al-Shabaab, iPhone, d'Artagnan.
_INNER_CAPITAL = re.compile(r"(?:(?:al|el|ul|as|ash|an|at|bin|abu)-|[a-z]'?)[A-Z]\w")
# A number that can end a name, so not a year: Flight 370, but not the Olympics 2012.
_NUMBER = re.compile(r"(?!(?:19|20)\d\d)\d{1,4}")
# The endings of words for peoples, faiths and parties, singular or plural: Russian, British, Dutch, Muslim, Democrats.
_PEOPLE = re.compile(r"[A-Z]\w*(?:an|ish|ese|ench|utch|iss|i|ite|ist|ic|uslim|eek|urd|rab|ew|crat|ino)s?")
# A bare A, or one letter tied to a lower-case word: T-shirt.
_SINGLE_LETTER = re.compile(r"A$|[A-Z]-[a-z]")
_ENDINGS = ("s", "ly", "ing", "ed", "er", "ers", "or", "ors", "ness", "ment", "less")


@dataclass(frozen=True, slots=True)
class TextUsage:
    """How a text writes its words where only a name is capitalized: counts by lower-case word, and pairs of words."""

    capital: Counter[str]
    lower: Counter[str]
    pairs: set[tuple[str, str]]

    def prefers_capital(self, word: str) -> bool:
        """Whether the text capitalizes the word more often than not."""
        return self.capital[word.lower()] > self.lower[word.lower()]


def count_usage(sentences: Sequence[Sentence]) -> TextUsage:
    """Count how a text writes its words; headlines and starts of sentences are skipped."""
    usage = TextUsage(Counter(), Counter(), set())
    for sentence in sentences:
        if _is_headline(sentence):
            continue
        for index, word in enumerate(sentence):
            if word.islower():
                usage.lower[word] += 1
            elif word[0].isupper() and not _is_opening(sentence, index):
                before = sentence[index - 1]
                after = sentence[index + 1] if index + 1 < len(sentence) else "."
                usage.pairs.add((word, after))
                # A common word next to another capital is no evidence: Police in Police Department.
                follows_opening = _is_common(before) and before[0].isupper() and _is_opening(sentence, index - 1)
                precedes_capital = _is_common(word) and after[0].isupper()
                usage.capital[word.lower()] += not follows_opening and not precedes_capital
    return usage


def classify_name_words(sentence: Sentence, usage: TextUsage) -> str:
    """The class letter of every word. Goes from right to left: the class of a word depends on the next one."""
    letters = ["."] * (len(sentence) + 1)
    is_headline = _is_headline(sentence)
    for index in range(len(sentence) - 1, -1, -1):
        is_forced = is_headline or _is_opening(sentence, index)
        letters[index] = _classify_word(sentence, index, letters[index + 1], is_forced, usage)
    for start, end in _find_quoted_titles(sentence):
        letters[start:end] = "Q" * (end - start)
    return "".join(letters[:-1])


@cache
def _is_common(word: str) -> bool:
    return look_up_tag(word.lower()) not in (None, "NNP", *FUNCTION_TAGS) and word not in FIRST_NAMES


def _is_headline(sentence: Sentence) -> bool:
    """Whether nearly every common word is capitalized, so that capitals are no evidence."""
    common = [word for word in sentence if _is_common(word)]
    return len(common) > 2 and sum(word[0].isupper() for word in common) > 0.8 * len(common)


def _is_opening(sentence: Sentence, index: int) -> bool:
    """Whether a word is capitalized because of its position alone."""
    if index == 0 or sentence[index - 1] in SENTENCE_OPENERS:
        return True
    return not any(word[0].isalnum() for word in sentence[:index])


def _classify_word(sentence: Sentence, index: int, after: str, is_forced: bool, usage: TextUsage) -> str:
    """The letter of one word; `after` is the letter of the next one, `is_forced` says that its capital is expected."""
    word = sentence[index]
    before = sentence[index - 1] if index else "."
    if letter := CLASS_LETTERS.get(word.removeprefix("then-").removeprefix("ex-")):
        # March Madness, April Jones, the Sunday Times
        opens_calendar_name = word in CALENDAR and after in "NCi" and (is_forced or before == "the")
        return _classify_title(word, before, after) if letter == "t" else "N" if opens_calendar_name else letter
    if word in NOUNS_AFTER_POSSESSIVE and before == "'s":
        return "H"
    if not word[0].isupper() or before in ("#", "@"):
        return "N" if _INNER_CAPITAL.match(word) else "0" if _NUMBER.fullmatch(word) else "."
    if is_forced and not usage.prefers_capital(word) and not _opens_name(word, sentence[index + 1 :], after, usage):
        return "."
    return _classify_capital(word, is_forced, usage)


def _classify_title(word: str, before: str, after: str) -> str:
    """A title before a name or alone is not a name; elsewhere it may be part of one."""
    if word in NOBLE_TITLES and after == "o":
        return "B"
    if word in TITLES_OPENING_NAMES and after in "CGM":
        return "C"
    follows_name = before[0].isupper() and before not in CLASS_LETTERS
    closes_name = word in TITLES_CLOSING_NAMES and after not in "NDCi" and follows_name
    return "N" if closes_name and not _is_people(before) else "t"


def _opens_name(word: str, following: Sentence, after: str, usage: TextUsage) -> bool:
    """Whether a word at the start of a sentence is a name, by the lexicon and the next word."""
    lower = word.lower() if word.istitle() and word.count("-") else word.lower().partition("-")[0]
    tag = look_up_tag(lower) or _look_up_stem_tag(lower)
    if tag is None:
        return not usage.lower[lower]
    if word in FIRST_NAMES or word in REGIONS:
        return after in "NiCpDG"
    if after == "&" or (word in ORGANIZATION_NOUNS and after == "o"):
        return True
    # Supreme Court, White House: the second word is capitalized as part of the name. Not: Singer Adele, Other Apple.
    if after not in "CG" or tag[:2] not in ("JJ", "NN") or following[0] in REGIONS:
        return bool(following) and (word, following[0]) in usage.pairs
    return (word, following[0]) in usage.pairs or not usage.prefers_capital(following[0])


def _classify_capital(word: str, is_forced: bool, usage: TextUsage) -> str:
    """The letter of a word whose capital is evidence."""
    tag = look_up_tag(word.lower())
    if _SINGLE_LETTER.match(word):
        return "."
    if _INITIALS.fullmatch(word):
        return "i"
    if word not in FIRST_NAMES and (tag in FUNCTION_TAGS or (tag == "RB" and word.endswith("ly"))):
        return "." if is_forced else "x"
    if len(word) > 1 and word.isupper():  # an acronym, or a common word in capitals
        return "." if tag and not usage.prefers_capital(word) else "A"
    if _is_people(word):
        return "D"
    if word in ORGANIZATION_NOUNS and word != "Bank":
        return "G"
    return "M" if word in MODIFIERS else "C" if _is_common(word) else "N"


@cache
def _look_up_stem_tag(word: str) -> str | None:
    """The tag of a word without its ending; the lexicon lacks many derived words."""
    stems = (word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending))
    tags = (look_up_tag(stem) or look_up_tag(f"{stem}e") for stem in stems)
    return next(filter(None, tags), None)


@cache
def _is_people(word: str) -> bool:
    """Whether a word names a people, faith or party, singular or plural: British, American, Muslims."""
    if look_up_tag(word.lower()) not in (None, "JJ", "NNP"):
        return False
    is_in_lexicon = look_up_tag(word) in ("JJ", "NNPS") or look_up_tag(f"{word}s") == "NNPS"
    return bool(_PEOPLE.fullmatch(word)) and is_in_lexicon


def _find_quoted_titles(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """Spans such as "The Silence of the Geese": words in quotes, all but the small ones capitalized."""
    quotes = [index for index, word in enumerate(sentence) if word in QUOTES]
    for opening, closing in pairwise(quotes):
        end = closing - (sentence[closing - 1] in (",", "."))
        words = sentence[opening + 1 : end]
        is_titled = all(word[0].isupper() or word in SMALL_WORDS or word.isdigit() for word in words)
        if 2 <= len(words) <= 8 and is_titled and words[0][0].isupper() and words[-1][0].isupper():
            yield opening + 1, end
