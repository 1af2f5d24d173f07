"""sentences of words -> the entities they name, each with all its mentions, by capitals, a lexicon and the text itself.

Every word gets a class of one letter, and mentions are what a regular expression finds in the letters of a sentence:
`Bank of England` is GoN, `President Barack Obama` tNN. Whether a word with a capital is a name is asked of the text
first (has it a capital where no sentence begins? is it in lower case elsewhere?), then of the lexicon. Months, days and
numbers are no entities, titles no part of one; peoples are entities, as in the data of Hermann et al. (2015).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from asreader.cloze.lexicon import look_up_tag
from asreader.data.example import Sentence

Key = tuple[str, ...]  # the words of a name in lower case, without dots, hyphens, accents: all its spellings are one

# Titles are no part of names. Modifiers go with titles (Foreign Minister, Secretary of State) and are parts of names
# elsewhere (State Department). Some titles also open names (General Motors) or close them (Stephen King).
TITLES = """Mr Mrs Ms Miss Dr Prof Professor Sir Dame Lord President Minister Secretary Premier Chancellor Senator Sen
    Sens Rep Reps Congressman Congresswoman Representative Gov Governor Mayor Ambassador Speaker Leader Chairman CEO
    Chairwoman Director Commissioner Superintendent Inspector Deputy Adviser Advisor Envoy Detective Constable Agent
    Sheriff Officer Judge Justice General Gen Colonel Col Captain Capt Lieutenant Lt Maj Major Sergeant Sgt Cpl Private
    Pvt Admiral Adm Commander Cmdr King Queen Prince Princess Pope Cardinal Archbishop Bishop Father Fr Rev Reverend
    Pastor Rabbi Imam Sheikh Ayatollah Duke Duchess Earl Baroness Baron Attorney Prosecutor Coach Editor Correspondent
    Analyst Spokesman Spokeswoman MP MPs PM Aunt Uncle Mum Mom Dad Mother Chief Executive Lady"""
MODIFIERS = """Prime Vice Assistant Foreign Defense Defence Interior Finance Majority Minority Police Home Health Press
    Education Opposition Senior Associate Medical District Supreme Treasury State Staff Homeland Transportation Labor
    Agriculture Commerce Energy Trade Culture Environment Acting Special First National Intelligence Security""".split()
TITLES_OPENING_NAMES = (
    "Premier General Major Justice King Queen Prince Princess Chief Father Mother Lady Captain Duke Earl".split()
)
TITLES_CLOSING_NAMES = "King Prince Pope Bishop Judge Major Cardinal Earl Duke Baron Sheriff".split()
NOBLE_TITLES = "Duke Duchess Prince Princess Earl Bishop Archbishop Lord King Queen Lady".split()
# What a name with "of" begins with, even where a sentence does too; what may follow 's in a name (Valentine's Day).
ORGANIZATION_NOUNS = """University College Bank Department Ministry House Institute Bureau Council Court Board Office Center Centre
    Centers Church Museum Academy Association Federation Society School Republic Kingdom Gulf Isle Commission Committee
    Campaign Embassy Parliament Organization Organisation League City""".split()
NOUNS_AFTER_POSSESSIVE = "Day Department Office Association Hospital College Cathedral Church Union Club".split()
# New Mexico is not Mexico.
REGIONS = """North South East West Northern Southern Eastern Western Central New Middle Upper Lower Great Greater Old
    Northeast Northwest Southeast Southwest Latin""".split()
# First names that are common words as well.
FIRST_NAMES = """
    Bill John Jack Mark Rob Will Grant Grace Rose Faith Hope Joy Dean Chase Drew Pat Sue Rich Nick Art Lance Lee
    Miles Victor Guy Frank Ray Carol Don Bob Max Ben Harry Peter Christian Austin Amber Crystal Jade Ruby Daisy Lily Jo
    Heather Holly Robin Martin Sandy Chuck Dale Glen Cliff Mike Pete Tony Jean Jimmy Jerry Jay Tom Tim Ted Dawn Eve Rand
    Jordan Hunter Carter Taylor Dick Hank Penny Randy Roger Sally Scott Warren Charlie Josh Bobby Terry Matt""".split()
CALENDAR = """January February March April May June July August September October November December Monday Tuesday
    Wednesday Thursday Friday Saturday Sunday""".split()
NON_NAMES = """
    Jan. Feb. Mar. Apr. Jun. Jul. Aug. Sept. Sep. Oct. Nov. Dec. AM PM EST EDT GMT BST ET PT I TV DVD PC OK ID
    PhD Ph DNA HIV IVF GPS SUV SUVs VIP CV PR DJ RIP MRI PTSD ADHD CCTV PDF GDP URL ASAP FAQ Internet God Former No."""
# The classes. N a name, D a people, A an acronym, i initials, C a common word with a capital, G one of HEADS, M one of
# MODIFIERS, B a noble title before "of", H one of POSSESSED behind 's, Q a title in quotation marks, x a function word
# with a capital, 0 a number, . anything else; and those that do not depend on the text:
FIXED_CLASS_WORDS = {
    "t": TITLES,
    "k": " ".join((NON_NAMES, *CALENDAR, *(f"{day}s" for day in CALENDAR[12:]))),
    "p": "de del della der den di da dos du la le van von bin ibn al el ul abu ben",
    "N": "La Le Las Los De Del Di Da Van Von El Al San Santa Saint St",
    "A": "US U.S. U.K. U.N. E.U. U.S.A. U.A.E. WHO AIDS",
    "r": "II III IV VI VII VIII IX XI XII Jr Sr",
} | {"o": "of", "f": "for on", "d": "the", "a": "and", "&": "&", "s": "'s"}
CLASS_LETTERS = {
    word + dot: letter for letter, words in FIXED_CLASS_WORDS.items() for word in words.split() for dot in ("", ".")
}
FUNCTION_TAGS = "DT PRP PRP$ IN CC MD WP WP$ WRB WDT TO EX UH PDT RP".split()
QUOTES = "`` '' \" “ ” ` ' ‘ ’".split()
SENTENCE_OPENERS = frozenset([*QUOTES, *": ; ( [ -LRB- -LSB- ... … . ? ! • * | - -- a.m. p.m.".split()])
SMALL_WORDS = "a an the of in on and to for with at from by is 's ' & , :".split()
LOCATION_PREPOSITIONS = "in at near across throughout outside inside around".split()
COMPANY_SUFFIXES = "party group inc corp co ltd plc fc airport".split()
CONNECTING_WORDS = "of for on and in &".split()
SAME_ENTITIES = """united_states us usa america united_states_of_america | united_kingdom uk britain great_britain
    | united_nations un | european_union eu | islamic_state isis isil is""".split("|")

_WORD = r"(?:[NADCGi]|M(?!M*t))"
_MENTION = re.compile(
    rf"(?P<title>t+od?M+)|Q+|Bod?[NDCA]|(?:[NADCiM]*G[of]d?|[CD]*Cod?){_WORD}+(?:[of]d?{_WORD}+)*(?:a[CGM]+(?![NADio]))?"
    rf"|(?:p+(?=N))?{_WORD}(?:&?p*{_WORD}|x+{_WORD}|sH)*(?:r|(?<=C)0)?"
)
_PERSON = re.compile(r"[NCi][NCip]*[NCr]")
_INITIALS = re.compile(r"[A-Z]\.?|(?:[A-Z]\.)+[A-Z]?")
_INNER_CAPITAL = re.compile(r"(?:(?:al|el|ul|as|ash|an|at|bin|abu)-|[a-z]'?)[A-Z]\w")
_NUMBER = re.compile(r"(?!(?:19|20)\d\d)\d{1,4}")  # Flight 370, but not the Olympics 2012
_PEOPLE = re.compile(r"[A-Z]\w*(?:an|ish|ese|ench|utch|iss|i|ite|ist|ic|uslim|eek|urd|rab|ew|crat|ino)s?")
_ENDINGS = ("s", "ly", "ing", "ed", "er", "ers", "or", "ors", "ness", "ment", "less")


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of words that names something."""

    sentence: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Entity:
    """What several mentions name together; `name` is the fullest of their spellings."""

    name: str
    mentions: tuple[Mention, ...]


def find_entities(sentences: Sequence[Sentence]) -> tuple[Entity, ...]:
    """The entities of one text in order of appearance. Every mention belongs to exactly one; mentions never overlap."""
    usage = _usage(sentences)
    names = list(_cut([name for number, words in enumerate(sentences) for name in _names(number, words, usage)]))
    fullest = _Grouping(names).fullest
    same: defaultdict[Key, list[Mention]] = defaultdict(list)
    for name in names:
        same[fullest(name.key)].append(name.mention)
    return tuple(Entity(_spelling(mentions, sentences), tuple(mentions)) for mentions in same.values())


@dataclass(frozen=True, slots=True)
class _Usage:
    """How a text writes its words where nothing but being a name calls for a capital."""

    capital: Counter[str]
    lower: Counter[str]
    pairs: set[tuple[str, str]]

    def prefers_capital(self, word: str) -> bool:
        return self.capital[word.lower()] > self.lower[word.lower()]


def _usage(sentences: Sequence[Sentence]) -> _Usage:
    usage = _Usage(Counter(), Counter(), set())
    for sentence in sentences:
        if _is_headline(sentence):
            continue
        for place, word in enumerate(sentence):
            if word.islower():
                usage.lower[word] += 1
            elif word[0].isupper() and not _is_opening(sentence, place):
                before, after = sentence[place - 1], sentence[place + 1] if place + 1 < len(sentence) else "."
                usage.pairs.add((word, after))
                # Beside another capital a common word says nothing of itself: the Police of Police Department.
                ahead = _is_common(before) and before[0].isupper() and _is_opening(sentence, place - 1)
                usage.capital[word.lower()] += not ahead and not (_is_common(word) and after[0].isupper())
    return usage


@cache
def _is_common(word: str) -> bool:
    return look_up_tag(word.lower()) not in (None, "NNP", *FUNCTION_TAGS) and word not in FIRST_NAMES


def _is_headline(sentence: Sentence) -> bool:
    """Nearly every common word has a capital, so that capitals say nothing."""
    common = [word for word in sentence if _is_common(word)]
    return len(common) > 2 and sum(word[0].isupper() for word in common) > 0.8 * len(common)


def _is_opening(sentence: Sentence, place: int) -> bool:
    """Whether a word has a capital for its place alone."""
    return (
        place == 0 or sentence[place - 1] in SENTENCE_OPENERS or not any(word[0].isalnum() for word in sentence[:place])
    )


@dataclass(frozen=True, slots=True)
class _Name:
    """A mention, the classes of its words, what makes it equal to others, and the word before."""

    mention: Mention
    letters: str
    key: Key
    before: str


def _names(number: int, sentence: Sentence, usage: _Usage) -> Iterator[_Name]:
    for match in _MENTION.finditer(_letters(sentence, usage)):
        start, end = match.span()
        word, key = sentence[start], _key(sentence[start:end])
        common = re.fullmatch("[CGM]", match[0]) and usage.lower[word.lower()] and not usage.prefers_capital(word)
        if not match["title"] and not common and len("".join(key)) > 1:
            yield _Name(Mention(number, start, end), match[0], key, sentence[start - 1] if start else "")


def _key(words: Iterable[str]) -> Key:
    text = unicodedata.normalize("NFKD", " ".join(words).lower())
    key = "".join(char for char in text if char != "." and not unicodedata.combining(char)).replace("-", " ").split()
    return tuple(key[1:] if key[0] == "the" and len(key) > 1 else key)


def _letters(sentence: Sentence, usage: _Usage) -> str:
    """The class of every word, from the right: what a word is depends on what follows."""
    letters = ["."] * (len(sentence) + 1)
    headline = _is_headline(sentence)
    for place in range(len(sentence) - 1, -1, -1):
        forced = headline or _is_opening(sentence, place)
        letters[place] = _letter(sentence, place, letters[place + 1], forced, usage)
    for start, end in _quoted_titles(sentence):
        letters[start:end] = "Q" * (end - start)
    return "".join(letters[:-1])


def _letter(sentence: Sentence, place: int, after: str, forced: bool, usage: _Usage) -> str:
    word, before = sentence[place], sentence[place - 1] if place else "."
    if letter := CLASS_LETTERS.get(word.removeprefix("then-").removeprefix("ex-")):
        calendar = word in CALENDAR and after in "NCi" and (forced or before == "the")
        # March Madness, April Jones, the Sunday Times
        return _title(word, before, after) if letter == "t" else "N" if calendar else letter
    if word in NOUNS_AFTER_POSSESSIVE and before == "'s":
        return "H"
    if not word[0].isupper() or before in ("#", "@"):
        return "N" if _INNER_CAPITAL.match(word) else "0" if _NUMBER.fullmatch(word) else "."
    if forced and not usage.prefers_capital(word) and not _opens_name(word, sentence[place + 1 :], after, usage):
        return "."
    return _capital(word, forced, usage)


def _title(word: str, before: str, after: str) -> str:
    """A title before a name or alone is no name; elsewhere it may be part of one."""
    if word in NOBLE_TITLES and after == "o":
        return "B"
    if word in TITLES_OPENING_NAMES and after in "CGM":
        return "C"
    closing = (
        word in TITLES_CLOSING_NAMES and after not in "NDCi" and before[0].isupper() and before not in CLASS_LETTERS
    )
    return "N" if closing and not _is_people(before) else "t"


def _opens_name(word: str, following: Sentence, after: str, usage: _Usage) -> bool:
    """Whether a word at a sentence's start is a name, as far as the lexicon and the next word tell."""
    lower = word.lower() if word.istitle() and word.count("-") else word.lower().partition("-")[0]
    kind = look_up_tag(lower) or _derived_from(lower)
    if kind is None:
        return not usage.lower[lower]
    if word in FIRST_NAMES or word in REGIONS:
        return after in "NiCpDG"
    if after == "&" or (word in ORGANIZATION_NOUNS and after == "o"):
        return True
    # Supreme Court, White House: the second word has its capital from the name. But: singer Adele, other Apple stores.
    if after not in "CG" or kind[:2] not in ("JJ", "NN") or following[0] in REGIONS:
        return bool(following) and (word, following[0]) in usage.pairs
    return (word, following[0]) in usage.pairs or not usage.prefers_capital(following[0])


def _capital(word: str, forced: bool, usage: _Usage) -> str:
    """The class of a word whose capital counts."""
    kind = look_up_tag(word.lower())
    if re.match(r"A$|[A-Z]-[a-z]", word):  # T-shirt
        return "."
    if _INITIALS.fullmatch(word):
        return "i"
    if word not in FIRST_NAMES and (kind in FUNCTION_TAGS or (kind == "RB" and word.endswith("ly"))):
        return "." if forced else "x"
    if len(word) > 1 and word.isupper():  # an acronym, or a common word that is shouted
        return "." if kind and not usage.prefers_capital(word) else "A"
    if _is_people(word):
        return "D"
    return (
        "G"
        if word in ORGANIZATION_NOUNS and word != "Bank"
        else "M"
        if word in MODIFIERS
        else "C"
        if _is_common(word)
        else "N"
    )


@cache
def _derived_from(word: str) -> str | None:
    """The tag of the word that an ending was put to: lexicons leave many such words out."""
    stems = (word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending))
    return next(
        (
            look_up_tag(stem) or look_up_tag(f"{stem}e")
            for stem in stems
            if look_up_tag(stem) or look_up_tag(f"{stem}e")
        ),
        None,
    )


@cache
def _is_people(word: str) -> bool:
    """British, American, Muslim: words for peoples, faiths and parties, single or many."""
    if look_up_tag(word.lower()) not in (None, "JJ", "NNP"):
        return False
    return bool(_PEOPLE.fullmatch(word)) and (look_up_tag(word) in ("JJ", "NNPS") or look_up_tag(f"{word}s") == "NNPS")


def _quoted_titles(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """Spans such as "The Silence of the Geese": words in quotation marks, all but the small ones with a capital."""
    places = [place for place, word in enumerate(sentence) if word in QUOTES]
    for opening, closing in pairwise(places):
        end = closing - (sentence[closing - 1] in (",", "."))
        words = sentence[opening + 1 : end]
        titled = all(word[0].isupper() or word in SMALL_WORDS or word.isdigit() for word in words)
        if 2 <= len(words) <= 8 and titled and words[0][0].isupper() and words[-1][0].isupper():
            yield opening + 1, end


def _cut(names: list[_Name]) -> Iterator[_Name]:
    """Cuts names that only stand side by side (Russian Vladimir Putin, Ohio GOP) where the text also has one alone."""
    alone = {name.key for name in names if len(name.key) > 1 or re.fullmatch("[NAD]", name.letters)}
    places = {name.key for name in names if name.before in LOCATION_PREPOSITIONS}
    for name in names:
        at, key, letters, place = name.mention, name.key, name.letters, 0
        if at.end - at.start == len(key) > 1:
            if key[1:] in alone and letters[1:] != "D" and (letters[0] in "DA" or (key[:1] in places and len(key) > 2)):
                place = 1
            elif re.search("N[AD]$", letters) and key[-1:] in alone and (letters[-1] == "A" or key[-1] == "republican"):
                place = len(key) - 1
        if place:
            yield _Name(Mention(at.sentence, at.start, at.start + place), letters[:place], key[:place], name.before)
        before = key[place - 1] if place else name.before
        yield _Name(Mention(at.sentence, at.start + place, at.end), letters[place:], key[place:], before)


def _spelling(mentions: list[Mention], sentences: Sequence[Sentence]) -> str:
    spellings = Counter(" ".join(sentences[at.sentence][at.start : at.end]) for at in mentions)
    return max(spellings, key=lambda name: (name.count(" "), not name.isupper(), spellings[name]))


class _Grouping:
    """Which keys name the same: every key leads to a fuller one or to itself."""

    def __init__(self, names: list[_Name]) -> None:
        self.count = Counter(name.key for name in names)
        self.weight = Counter(self.count)
        self.order = {key: place for place, key in enumerate(self.count)}
        self.letters = {name.key: name.letters for name in names}
        self.titled = Counter(name.key for name in names if CLASS_LETTERS.get(name.before) == "t")
        self.placed = Counter(name.key for name in names if name.before in LOCATION_PREPOSITIONS)
        self.articled = Counter(name.key for name in names if name.before.lower() in ("the", "a", "an"))
        self.fuller = {key: key for key in self.count}
        self._join_short_forms()
        self._join_same()

    def fullest(self, key: Key) -> Key:
        """The name that stands for the group."""
        while self.fuller[key] != key:
            key = self.fuller[key]
        return key

    def _join(self, key: Key, other: Key) -> None:
        key, other = self.fullest(key), self.fullest(other)
        if key != other:
            self.fuller[key] = other
            self.weight[other] += self.weight[key]

    def _join_short_forms(self) -> None:
        offers: defaultdict[Key, list[tuple[int, Key]]] = defaultdict(list)
        for long in self.count:
            for rank, short in self._short_forms(long):
                if short in self.count and short != long and (rank < 3 or self.letters[short] == "A"):
                    offers[short].append((rank, long))
        for short in sorted(offers, key=len, reverse=True):
            best = min(rank for rank, _ in offers[short])
            fulls = dict.fromkeys(self.fullest(long) for rank, long in offers[short] if rank == best)
            # Of two who share a surname the bare one means whom the text is about, its most frequent: reporters tell
            # the others apart by first names. But "the University" is neither of two universities.
            if len(fulls) == 1 or self.articled[short] * 2 < self.count[short]:
                self._join(short, max(fulls, key=self.weight.__getitem__))

    def _short_forms(self, long: Key) -> Iterator[tuple[int, Key]]:
        """What else may stand for a name, the surest first: 0 a variant, 1 its end, 2 its start, 3 its initials."""
        if len(long) > 2:  # of two initials too much could be meant
            yield 3, ("".join(word[0] for word in long),)
            yield 3, ("".join(word[0] for word in long if word not in CONNECTING_WORDS and word != "the"),)
        if len(long) == 1 or self.letters[long][0] == "Q":
            return
        whole = long[:-1] if long[-1] == "jr" else long
        person = self._is_person(long)
        linked = next((place for place, word in enumerate(whole) if word in CONNECTING_WORDS), 0)
        yield 0, whole
        if person:
            yield 0, (whole[0], whole[-1])
        if not linked:  # Patriots is short for New England Patriots, but England Patriots and Mexico are for nothing
            cuts = range(1 + (whole[0].capitalize() in REGIONS), len(whole))
            yield from ((1, end) for cut in cuts for end in (whole[cut:], long[cut:]) if self._is_end(end, long))
        if linked and re.fullmatch("[CM]{2,}", self.letters.get(whole[linked + 1 :], "")):
            yield 1, whole[linked + 1 :]  # Homeland Security
        if person or whole[-1] in COMPANY_SUFFIXES:
            starts = (whole[:cut] for cut in range(1, len(whole)))
            yield from ((2, it) for it in starts if not self.placed[it] and self.order[long] < self.order.get(it, 0))
        elif linked:
            yield 2, whole[:linked]

    def _is_end(self, short: Key, long: Key) -> bool:
        """Whether a name's end may stand for it: not a place (Inter Milan), a people, nor House for White House."""
        place = self.placed[short] * 2 >= self.count[short]
        # A bare surname may come before the full name of a person; otherwise Marketplace Africa would swallow Africa.
        first = (len(long) > 2 or self.letters[long][0] == "C") and self.order.get(short, 0) < self.order[long]
        other = place or (first and self.letters.get(short) == "N") or self.letters.get(short) == "D"
        return not other and long[-2:] != ("white", "house")

    def _is_person(self, key: Key) -> bool:
        letters, last = self.letters[key], key[-1:]
        # Tim Cook is a person, Boston Marathon is not: a bare Cook has no article.
        named = letters[-1] != "C" or self.articled[last] * 2 < self.count[last]
        like = named and _PERSON.fullmatch(letters) and key[0].capitalize() not in REGIONS
        return bool(self.titled[key] or (like and (self.placed[key] + self.articled[key]) * 2 < self.count[key]))

    def _join_same(self) -> None:
        for key in self.count:
            plural = (*key[:-1], f"{key[-1]}s")
            # Houthi rebels, the Houthis; but Clintons are more than one Clinton, and Williams is no William.
            unjoined = self.fuller.get(plural) == plural and self.fuller[key] == key
            if unjoined and self.letters[plural] in ("N", "D") and look_up_tag(plural[-1].capitalize()) != "NNP":
                self._join(plural, key)
        for names in SAME_ENTITIES:
            there = [key for key in (tuple(name.split("_")) for name in names.split()) if key in self.count]
            for key in there[1:]:
                self._join(key, there[0])
