"""English, offline: rules over a 94,000-word lexicon (Brown, Penn Treebank; MIT) and over the book itself.

The class NAMED is that of the Children's Book Test, which is wider than proper names. Inferred from the NE validation
questions (evidence: docs/cloze.md), it holds
- proper names: words that the book capitalizes inside sentences. A name that is also a common noun (Shadow, Story,
  Felicity) counts only if it follows an unambiguous name or a title somewhere in the book (Reddy Fox, Mr. Reed);
- words of time and order (one day, first), except after "next" or "good", but no names of days and months;
- a short list of words that old name recognizers took for causes of death, crimes and politics (fire, escape, right);
- nouns that do not occur in the newspaper text of the lexicon in any spelling: ogre, window-sill, waggon.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from asreader.cloze import lexicon
from asreader.cloze.tagging import NAMED, NOUN, OTHER, PREPOSITION, VERB, Tagger, WordClasses, reject_model
from asreader.data.example import Sentence

TIMES = frozenset(
    "day days night nights morning evening afternoon afternoons forenoon noon midnight twilight daylight minute "
    "minutes hour hours week weeks fortnight month months year years o'clock".split()
)
ORDINALS = frozenset("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split())
MEASURES = frozenset("dollars cents inches".split())
ENTITY_LIST_WORDS = frozenset(
    "right left fire storm flood war fall accident disaster starvation measles stroke burn choked drowned escape "
    "stealing treachery".split()
)

_DATES = frozenset(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August "
    "September October November December Christmas Easter Thanksgiving".split()
)
# A common noun after one of these titles is a name.
_TITLES = frozenset("Mr. Mrs. Miss Ms. Dr. St. Mr Mrs Dr".split())
# A common noun of this list after any capitalized word is a name: Green Forest, Old Mountain.
_PLACES = frozenset("Forest Hill Hills Island Lake Meadow Meadows Mountain Mountains River Valley".split())
_ADDRESSES = frozenset("I O Sir Madam".split())
# Tags of function words, which are never names.
_FUNCTION_TAGS = frozenset("CC DT EX IN MD PRP PRP$ RB TO UH WDT WP WP$ WRB".split())
# After these words a word of time is a common noun: the next day, good morning.
_NOT_BEFORE_TIMES = frozenset("next following good last".split())
_NOT_BEFORE = {"day": _NOT_BEFORE_TIMES | frozenset("the very whole each".split())}

_CONJUNCTIONS = frozenset("that if because whether although though unless lest than while whereas so as".split())
_BEFORE_VERBS = frozenset(
    "to will would can could shall should may might must do does did not n't never i you he she it we they who".split()
)
_BEFORE_NOUNS = frozenset("the a an my your his its our their this some no every".split())
# Tokens after which a capital is expected.
_SENTENCE_OPENERS = frozenset(("``", "`", "'", "-LRB-", "-LSB-", "--", ":", ".", "!", "?"))
# Endings of adverbs, verbs and adjectives: grumpily, scampered, cleverest, half-playful.
_NOT_NOUN_ENDING = re.compile(r"(?:ly|ed|ing|est|ier|ish|less|ful|ous|able|ible|like|ise|ised|some)$")


def load_tagger(model: str = "") -> Tagger:
    """The only tagger of this plug-in; it has no models."""
    reject_model("lexical", model)
    return classify_words


def classify_words(book: Sequence[Sentence]) -> list[WordClasses]:
    """A class for every word of a book."""
    classes = _ClassCache(book)
    return [tuple(_classify_sentence(sentence, classes)) for sentence in book]


def _classify_sentence(sentence: Sentence, classes: _ClassCache) -> Iterator[str]:
    """The classes of one sentence: those of the single words, corrected by their neighbours."""
    before = ""
    for word, after in zip_longest(sentence, sentence[1:], fillvalue=""):
        word_class = classes[word]
        if word_class is NAMED and word[0].isupper():
            yield OTHER if after[:1].isupper() and after != "I" else NAMED
        elif word_class is NAMED and word in TIMES:
            yield NOUN if before in _NOT_BEFORE.get(word, _NOT_BEFORE_TIMES) else NAMED
        elif word_class is NOUN and before in _BEFORE_VERBS:
            yield VERB if lexicon.look_up_tag(word) == "NN" else NOUN
        elif word_class is VERB and before in _BEFORE_NOUNS:
            yield NOUN if lexicon.look_up_tag(word) == "VB" else OTHER
        else:
            yield word_class
        before = word.lower()


class _ClassCache(dict[str, str]):
    """word -> its class in this book without its neighbours, computed on first access."""

    def __init__(self, book: Sequence[Sentence]) -> None:
        self.usage = _BookUsage(book)

    def __missing__(self, word: str) -> str:
        if word[0].isupper():
            word_class = NAMED if self.usage.is_name(word) else OTHER
        elif _is_listed_entity(word) or is_unknown_noun(word):
            word_class = NAMED
        else:
            word_class = _classify_by_tag(word)
        self[word] = word_class
        return word_class


def _is_listed_entity(word: str) -> bool:
    return word in TIMES or word in ORDINALS or word in MEASURES or word in ENTITY_LIST_WORDS


class _BookUsage:
    """How a book writes its words: counts of capitals, and of capitalized words after a name."""

    def __init__(self, book: Sequence[Sentence]) -> None:
        self.lower = Counter[str]()
        self.capital = Counter[str]()
        self.capital_inside = Counter[str]()
        self.capital_after_name = Counter[str]()
        for sentence in book:
            before = ""
            is_opening = True
            for word in sentence:
                if word[0].isupper():
                    self.capital[word] += 1
                    self.capital_inside[word] += not is_opening
                    self.capital_after_name[word] += (
                        before in _TITLES
                        or is_unambiguous_name(before)
                        or (before[:1].isupper() and (word in _PLACES or lexicon.look_up_tag(word) is None))
                    )
                else:
                    self.lower[word] += 1
                is_opening = word in _SENTENCE_OPENERS
                before = word

    def is_name(self, word: str) -> bool:
        """Whether a capitalized word is a name in this book."""
        lower = word.lower()
        if word in _DATES or word in _ADDRESSES or not word[-1].isalnum() or "'" in word:
            return False
        if lexicon.look_up_tag(lower) in _FUNCTION_TAGS:
            return False
        if len(word) > 1 and word.isupper():  # a name in a heading or in the margin of a play
            return self.capital_inside[word.capitalize()] > 0 and lower not in lexicon.load_tags()
        if not self.capital_inside[word]:  # it occurs only at the start of sentences
            return not self.lower[lower] and is_unambiguous_name(word)
        if self.capital_inside[word] <= self.lower[lower]:
            return False
        is_common_noun = (lexicon.look_up_tag(lower) or "").startswith("NN")
        return not is_common_noun or self.capital_after_name[word] >= self.capital[word] / 10


def is_unambiguous_name(word: str) -> bool:
    """Whether a capitalized word has no other use in English."""
    return (
        word[:1].isupper()
        and not (len(word) > 1 and word.isupper())
        and word not in _DATES
        and word.lower() not in lexicon.load_tags()
        and lexicon.load_tags().get(word, "NNP") in ("NNP", "NNPS")
    )


def is_unknown_noun(word: str) -> bool:
    """Whether a lower-case word is not in the lexicon in any spelling and looks like a noun."""
    if not word[0].isalpha() or "'" in word or word in lexicon.load_lowercase_words() or _NOT_NOUN_ENDING.search(word):
        return False
    last = word.rpartition("-")[2]
    return last == word or (lexicon.look_up_tag(last) or "NN").startswith("NN")


def _classify_by_tag(word: str) -> str:
    tag = lexicon.look_up_tag(word) or ""
    if tag in ("NN", "NNS"):
        return NOUN
    if tag.startswith("VB"):
        return VERB
    if tag == "IN" and word not in _CONJUNCTIONS:
        return PREPOSITION
    return _classify_by_ending(word) if not tag and word.isalpha() else OTHER


def _classify_by_ending(word: str) -> str:
    return VERB if word.endswith(("ed", "ing", "ise", "ised")) and word not in lexicon.load_lowercase_words() else OTHER
