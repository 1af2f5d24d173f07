"""names of one text -> groups that name the same entity: Barack Obama, Obama, President Obama."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from asreader.cloze.lexicon import look_up_tag
from asreader.cloze.news.name_words import (
    CLASS_LETTERS,
    COMPANY_SUFFIXES,
    CONNECTING_WORDS,
    LOCATION_PREPOSITIONS,
    REGIONS,
    SAME_ENTITIES,
)

Key = tuple[str, ...]
"""The words of a name in lower case, without dots, hyphens and accents: equal for all its spellings."""

# The class letters of a person's name: first name, initials or particles, last name or suffix (George W. Bush Jr.).
_PERSON = re.compile(r"[NCi][NCip]*[NCr]")

_VARIANT, _END, _START, _INITIALS = range(4)
"""Kinds of short forms, the most reliable first."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of words that names something."""

    sentence: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Name:
    """A mention, the class letters of its words, its key, and the word before it."""

    mention: Mention
    letters: str
    key: Key
    before: str


class NameGroups:
    """Keys that name the same entity: every key points to a fuller one or to itself."""

    def __init__(self, names: list[Name]) -> None:
        self._count = Counter(name.key for name in names)
        self._weight = Counter(self._count)
        self._order = {key: index for index, key in enumerate(self._count)}
        self._letters = {name.key: name.letters for name in names}
        self._after_title = Counter(name.key for name in names if CLASS_LETTERS.get(name.before) == "t")
        self._after_location = Counter(name.key for name in names if name.before in LOCATION_PREPOSITIONS)
        self._after_article = Counter(name.key for name in names if name.before.lower() in ("the", "a", "an"))
        self._fuller = {key: key for key in self._count}
        self._join_short_forms()
        self._join_plurals()
        self._join_synonyms()

    def find_fullest(self, key: Key) -> Key:
        """The key that represents the group."""
        while self._fuller[key] != key:
            key = self._fuller[key]
        return key

    def _join(self, key: Key, other: Key) -> None:
        key, other = self.find_fullest(key), self.find_fullest(other)
        if key != other:
            self._fuller[key] = other
            self._weight[other] += self._weight[key]

    def _join_short_forms(self) -> None:
        offers: defaultdict[Key, list[tuple[int, Key]]] = defaultdict(list)
        for long in self._count:
            for rank, short in self._list_short_forms(long):
                is_possible = rank < _INITIALS or self._letters.get(short) == "A"
                if short in self._count and short != long and is_possible:
                    offers[short].append((rank, long))
        for short in sorted(offers, key=len, reverse=True):
            best = min(rank for rank, _ in offers[short])
            full = dict.fromkeys(self.find_fullest(long) for rank, long in offers[short] if rank == best)
            # If two persons share a surname, the bare surname means the more frequent one: reporters use first names
            # for the others. But "the University" is neither of two universities.
            if len(full) == 1 or self._after_article[short] * 2 < self._count[short]:
                self._join(short, max(full, key=self._weight.__getitem__))

    def _list_short_forms(self, long: Key) -> Iterator[tuple[int, Key]]:
        """What else may stand for a name, with the kind of short form."""
        if len(long) > 2:  # two initials are too ambiguous
            yield _INITIALS, ("".join(word[0] for word in long),)
            yield _INITIALS, ("".join(word[0] for word in long if word not in CONNECTING_WORDS and word != "the"),)
        if len(long) == 1 or self._letters[long][0] == "Q":
            return
        whole = long[:-1] if long[-1] == "jr" else long
        is_person = self._is_person(long)
        link = next((index for index, word in enumerate(whole) if word in CONNECTING_WORDS), 0)
        yield _VARIANT, whole
        if is_person:
            yield _VARIANT, (whole[0], whole[-1])
        if not link:  # New England Patriots -> Patriots, but neither England Patriots, nor New Mexico -> Mexico
            cuts = range(1 + (whole[0].capitalize() in REGIONS), len(whole))
            ends = (end for cut in cuts for end in (whole[cut:], long[cut:]))
            yield from ((_END, end) for end in ends if self._is_end(end, long))
        # Department of Homeland Security -> Homeland Security
        if link and re.fullmatch("[CM]{2,}", self._letters.get(whole[link + 1 :], "")):
            yield _END, whole[link + 1 :]
        if is_person or whole[-1] in COMPANY_SUFFIXES:
            starts = (whole[:cut] for cut in range(1, len(whole)))
            yield from ((_START, start) for start in starts if self._is_start(start, long))
        elif link:
            yield _START, whole[:link]

    def _is_start(self, short: Key, long: Key) -> bool:
        """Whether the start of a name may stand for it: not a place, and only after the full name."""
        return not self._after_location[short] and self._order[long] < self._order.get(short, 0)

    def _is_end(self, short: Key, long: Key) -> bool:
        """Whether the end of a name may stand for it: not a place (Inter Milan), a people, or House (White House)."""
        is_place = self._after_location[short] * 2 >= self._count[short]
        # A bare surname may precede the full name of a person; else Marketplace Africa would absorb Africa.
        is_earlier = self._order.get(short, 0) < self._order[long]
        is_other_name = (len(long) > 2 or self._letters[long][0] == "C") and is_earlier
        letters = self._letters.get(short)
        is_other = is_place or (is_other_name and letters == "N") or letters == "D"
        return not is_other and long[-2:] != ("white", "house")

    def _is_person(self, key: Key) -> bool:
        letters = self._letters[key]
        last = key[-1:]
        # Tim Cook is a person, Boston Marathon is not: a bare Cook has no article.
        has_surname = letters[-1] != "C" or self._after_article[last] * 2 < self._count[last]
        is_like_person = has_surname and _PERSON.fullmatch(letters) and key[0].capitalize() not in REGIONS
        is_thing = (self._after_location[key] + self._after_article[key]) * 2 >= self._count[key]
        return bool(self._after_title[key] or (is_like_person and not is_thing))

    def _join_plurals(self) -> None:
        """Houthi rebels, the Houthis. But Clintons are more than one Clinton, and Williams is not a William."""
        for key in self._count:
            plural = (*key[:-1], f"{key[-1]}s")
            is_free = self._fuller.get(plural) == plural and self._fuller[key] == key
            if is_free and self._letters[plural] in ("N", "D") and look_up_tag(plural[-1].capitalize()) != "NNP":
                self._join(plural, key)

    def _join_synonyms(self) -> None:
        for names in SAME_ENTITIES:
            keys = [key for key in (tuple(name.split("_")) for name in names.split()) if key in self._count]
            for key in keys[1:]:
                self._join(key, keys[0])
