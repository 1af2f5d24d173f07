"""English, offline: rules over a 94,000-word lexicon (Brown, Penn Treebank; MIT) and over the book itself.

The class NAMED is that of the Children's Book Test, not a modern idea of names. Read off its NE validation questions
(docs/cloze.md has the evidence), it holds
- proper names: words that the book writes with a capital inside sentences. One that is also a common noun (Shadow,
  Story, Felicity) counts only if the book puts it behind a clear name or a title somewhere (Reddy Fox, Mr. Reed);
- words of time and order (one day, first), though not after "next" or "good", and no names of days and months;
- a short list of words that old name recognisers took for causes of death, crimes and politics (fire, escape, right);
- nouns that the newspapers of a tagger's training text never used in any spelling: ogre, window-sill, waggon.
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
_TITLES = frozenset("Mr. Mrs. Miss Ms. Dr. St. Mr Mrs Dr".split())
_PLACES = frozenset("Forest Hill Hills Island Lake Meadow Meadows Mountain Mountains River Valley".split())
_ADDRESSES = frozenset("I O Sir Madam".split())
_CLOSED = frozenset("CC DT EX IN MD PRP PRP$ RB TO UH WDT WP WP$ WRB".split())
_NOT_BEFORE_TIMES = frozenset("next following good last".split())
_NOT_BEFORE = {"day": _NOT_BEFORE_TIMES | frozenset("the very whole each".split())}

_CONJUNCTIONS = frozenset("that if because whether although though unless lest than while whereas so as".split())
_BEFORE_VERBS = frozenset(
    "to will would can could shall should may might must do does did not n't never i you he she it we they who".split()
)
_BEFORE_NOUNS = frozenset("the a an my your his its our their this some no every".split())
_OPENING = frozenset(("``", "`", "'", "-LRB-", "-LSB-", "--", ":", ".", "!", "?"))
_NOT_A_NOUN = re.compile(r"(?:ly|ed|ing|est|ier|ish|less|ful|ous|able|ible|like|ise|ised|some)$")


def load_tagger(model: str = "") -> Tagger:
    """The rules; there is nothing to choose."""
    reject_model("lexical", model)
    return classify_words


def classify_words(book: Sequence[Sentence]) -> list[WordClasses]:
    """A class for every word of a book."""
    kinds = _Kinds(book)
    return [tuple(_in_context(sentence, kinds)) for sentence in book]


def _in_context(sentence: Sentence, kinds: _Kinds) -> Iterator[str]:
    """The classes of one sentence: what the words are by themselves, corrected by their neighbours."""
    before = ""
    for word, after in zip_longest(sentence, sentence[1:], fillvalue=""):
        kind = kinds[word]
        if kind is NAMED and word[0].isupper():
            yield OTHER if after[:1].isupper() and after != "I" else NAMED
        elif kind is NAMED and word in TIMES:
            yield NOUN if before in _NOT_BEFORE.get(word, _NOT_BEFORE_TIMES) else NAMED
        elif kind is NOUN and before in _BEFORE_VERBS:
            yield VERB if lexicon.look_up_tag(word) == "NN" else NOUN
        elif kind is VERB and before in _BEFORE_NOUNS:
            yield NOUN if lexicon.look_up_tag(word) == "VB" else OTHER
        else:
            yield kind
        before = word.lower()


class _Kinds(dict[str, str]):
    """word -> its class by itself in this book, worked out when first asked for."""

    def __init__(self, book: Sequence[Sentence]) -> None:
        self.habits = _Habits(book)

    def __missing__(self, word: str) -> str:
        if word[0].isupper():
            kind = NAMED if self.habits.is_name(word) else OTHER
        elif (
            word in TIMES or word in ORDINALS or word in MEASURES or word in ENTITY_LIST_WORDS or is_unknown_noun(word)
        ):
            kind = NAMED
        else:
            kind = _by_tag(word)
        self[word] = kind
        return kind


class _Habits:
    """How a book writes its words: with which capitals, and behind which names."""

    def __init__(self, book: Sequence[Sentence]) -> None:
        self.inside, self.plain = Counter[str](), Counter[str]()
        self.capital, self.after_name = Counter[str](), Counter[str]()
        for sentence in book:
            before, opens = "", True
            for word in sentence:
                if word[0].isupper():
                    self.capital[word] += 1
                    self.inside[word] += not opens
                    self.after_name[word] += (
                        before in _TITLES
                        or is_unambiguous_name(before)
                        or (before[:1].isupper() and (word in _PLACES or lexicon.look_up_tag(word) is None))
                    )
                else:
                    self.plain[word] += 1
                opens = word in _OPENING
                before = word

    def is_name(self, word: str) -> bool:
        """Whether a capitalised word is a name in this book."""
        lower = word.lower()
        if word in _DATES or word in _ADDRESSES or not word[-1].isalnum() or "'" in word:
            return False
        if lexicon.look_up_tag(lower) in _CLOSED:
            return False
        if len(word) > 1 and word.isupper():  # a name in a heading or in the margin of a play
            return self.inside[word.capitalize()] > 0 and lower not in lexicon.load_tags()
        if not self.inside[word]:  # it only ever begins sentences
            return not self.plain[lower] and is_unambiguous_name(word)
        if self.inside[word] <= self.plain[lower]:
            return False
        is_common_noun = (lexicon.look_up_tag(lower) or "").startswith("NN")
        return not is_common_noun or self.after_name[word] >= self.capital[word] / 10


def is_unambiguous_name(word: str) -> bool:
    """A capitalised word that English has no other use for."""
    return (
        word[:1].isupper()
        and not (len(word) > 1 and word.isupper())
        and word not in _DATES
        and word.lower() not in lexicon.load_tags()
        and lexicon.load_tags().get(word, "NNP") in ("NNP", "NNPS")
    )


def is_unknown_noun(word: str) -> bool:
    """A lower-case word that the lexicon does not have in any spelling and that looks like a noun."""
    if not word[0].isalpha() or "'" in word or word in lexicon.load_lowercase_words() or _NOT_A_NOUN.search(word):
        return False
    last = word.rpartition("-")[2]
    return last == word or (lexicon.look_up_tag(last) or "NN").startswith("NN")


def _by_tag(word: str) -> str:
    tag = lexicon.look_up_tag(word) or ""
    if tag in ("NN", "NNS"):
        return NOUN
    if tag.startswith("VB"):
        return VERB
    if tag == "IN" and word not in _CONJUNCTIONS:
        return PREPOSITION
    return _by_ending(word) if not tag and word.isalpha() else OTHER


def _by_ending(word: str) -> str:
    return VERB if word.endswith(("ed", "ing", "ise", "ised")) and word not in lexicon.load_lowercase_words() else OTHER
