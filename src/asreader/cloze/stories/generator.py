"""Seed -> unlimited Examples: short stories of people who carry things about, each with one question on what happened.

A small world keeps track of where everyone and everything is. It decides what may happen next, and the question is one
to which facts and world give exactly one answer. `stories` is the door; `tale` also shows what lies under a story.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import TypeVar

from asreader.cloze.stories.phrases import ASIDES, FACT_PHRASES, OPENERS, QUESTION_KINDS, SLOTS, QuestionKind
from asreader.cloze.stories.word_lists import WOMEN, WordLists, select_word_lists
from asreader.data.example import Example, Sentence

T = TypeVar("T")

FACT_COUNTS = (5, 7)
SENTENCE_COUNTS = (9, 11)
WORD_COUNTS = range(50, 120)
PRONOUN, LONGEST_PRONOUN_CHAIN = 0.25, 2
OPENER = 0.25
RIVAL = 0.5
BYSTANDER = 0.7
COMPANY = 0.7
ODDS = {"give": 0.5, "meet": 0.1, "drop": 0.4, "take": 0.85}
_WOMEN = frozenset(WOMEN)
_KINDS = tuple(kind for kind, asking in QUESTION_KINDS.items() for _ in range(asking.weight))


@dataclass(frozen=True, slots=True)
class Fact:
    """Who did what (or is what), where, with which thing and towards whom; a word that has no part is empty."""

    verb: str
    person: str = ""
    place: str = ""
    object: str = ""
    other: str = ""

    def words(self) -> dict[str, str]:
        """The fact as slot -> word."""
        return dict(zip(SLOTS, (self.person, self.other, self.object, self.place), strict=True))


@dataclass(frozen=True, slots=True)
class StoryQuestion:
    """A sentence with a GAP and the word for it."""

    words: Sentence
    answer: str


@dataclass(frozen=True, slots=True)
class GeneratedStory:
    """A story with what lies under it: the facts in the order told, the kind of question, the Example."""

    facts: tuple[Fact, ...]
    kind: str
    example: Example


def generate_stories(count: int, seed: int, unseen: bool = False) -> Iterator[Example]:
    """Seed -> `count` Examples; with `unseen`, about people, places and things that no other story names."""
    words = select_word_lists(unseen)
    return (generate_story(number, seed, words).example for number in range(count))


def generate_story(number: int, seed: int, words: WordLists) -> GeneratedStory:
    """Seed and number -> one story, whatever came before it: tried until it allows the kind of question thrown."""
    dice = StableRandom(f"{seed}-{number}")
    kind = dice.pick(_KINDS)
    attempts = (_attempt(f"story-{seed}-{number}", kind, words, dice) for _ in count())
    return next(attempt for attempt in attempts if attempt is not None)


class StableRandom:
    """Random choices made from random() alone, the one method whose sequence Python promises not to change."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """True that often."""
        return self._random() < probability

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[int(self._random() * len(items))]

    def deal(self, items: Sequence[T], number: int) -> list[T]:
        """So many different items, in random order."""
        pack = list(items)
        for position in range(number):
            other = self.between(position, len(pack) - 1)
            pack[position], pack[other] = pack[other], pack[position]
        return pack[:number]


@dataclass(slots=True)
class World:
    """Who is where, who holds what and where the rest lies. What is not known yet is not a key."""

    standing: dict[str, str] = field(default_factory=dict)
    holder: dict[str, str] = field(default_factory=dict)
    lying: dict[str, str] = field(default_factory=dict)
    entered: dict[str, str] = field(default_factory=dict)

    def happen(self, fact: Fact) -> None:
        """World and fact -> the world after it."""
        match fact.verb:
            case "wait":
                self.standing[fact.person] = fact.place
            case "go":
                self.standing[fact.person] = fact.place
                self.entered[fact.place] = fact.person
            case "take":
                self.holder[fact.object] = fact.person
                self.lying.pop(fact.object, None)
            case "drop":
                self.lying[fact.object] = fact.place
                del self.holder[fact.object]
            case "give":
                self.holder[fact.object] = fact.other

    def within_reach(self, person: str, objects: Sequence[str]) -> list[str]:
        """Things this person could take: those lying here, and those of which nobody has told yet where they are."""
        here = self.standing[person]
        return [thing for thing in objects if thing not in self.holder and self.lying.get(thing, here) == here]

    def ending(self) -> Iterator[Fact]:
        """World -> what is so in the end: where people stand, who holds and where lies what, who came in last."""
        for person, place in self.standing.items():
            yield Fact("stand", person, place)
        for thing, person in self.holder.items():
            yield Fact("hold", person, object=thing)
            yield Fact("lie", place=self.standing[person], object=thing)
        for thing, place in self.lying.items():
            yield Fact("lie", place=place, object=thing)
        for place, person in self.entered.items():
            yield Fact("enter", person, place)


def _attempt(name: str, kind: str, words: WordLists, dice: StableRandom) -> GeneratedStory | None:
    """Dice -> a story, or None when it leaves nothing good to ask or comes out too short or too long."""
    cast = _drawn(words, dice)
    world = World()
    facts = _plot(
        world, WordLists(cast.persons[:-2], cast.places[:-2], cast.objects[:-2]), QUESTION_KINDS[kind].verb, dice
    )
    question = _question([*facts, *world.ending()], QUESTION_KINDS[kind], dice)
    if question is None:
        return None
    alike = next(group for group in (cast.persons, cast.places, cast.objects) if question.answer in group)
    rival = dice.pick([word for word in alike[:-2] if word != question.answer])
    document = _document(facts, cast, question.answer, rival, dice)
    told = set(chain.from_iterable(document))
    candidates = [word for word in alike if word in told]
    if len(candidates) < 3 or sum(map(len, document)) not in WORD_COUNTS:
        return None
    shuffled = tuple(dice.deal(candidates, len(candidates)))
    return GeneratedStory(tuple(facts), kind, Example(name, document, question.words, shuffled, question.answer))


def _drawn(words: WordLists, dice: StableRandom) -> WordLists:
    """Word lists -> the few words of one story. The last two of each are only talked about, in asides."""
    persons = dice.deal(words.persons, 2 + dice.between(3, 4))
    places = dice.deal(words.places, 2 + dice.between(3, 4))
    objects = dice.deal(words.objects, 2 + dice.between(4, 5))
    return WordLists(tuple(persons), tuple(places), tuple(objects))


def _plot(world: World, cast: WordLists, favoured: str, dice: StableRandom) -> list[Fact]:
    """World -> facts that can follow each other, many with the favoured verb; it is left as after the last of them."""
    facts: list[Fact] = []
    odds = ODDS | {favoured: 0.9}
    actor, settled = "", ""
    for _ in range(dice.between(*FACT_COUNTS)):
        if not actor or dice.chance(0.5):
            actor = dice.pick(cast.persons)
        fact = _next(world, actor, [thing for thing in cast.objects if thing != settled], cast, odds, dice)
        world.happen(fact)
        facts.append(fact)
        # What has just been put down or given is left alone for a moment: nobody takes it up or gives it back at once.
        settled = fact.object if fact.verb in ("drop", "give") else ""
    return facts


def _next(
    world: World, actor: str, objects: Sequence[str], cast: WordLists, odds: dict[str, float], dice: StableRandom
) -> Fact:
    """World and person -> something this person can do now; the less often it is possible, the better its odds."""
    here = world.standing.get(actor)
    if here is None:
        return Fact(dice.pick(("wait", "go")), actor, _goal(world, here, cast.places, dice))
    near = [person for person in cast.persons if person != actor and world.standing.get(person) == here]
    held = [thing for thing in objects if world.holder.get(thing) == actor]
    if near and held and dice.chance(odds["give"]):
        return Fact("give", actor, here, dice.pick(held), dice.pick(near))
    if near and dice.chance(odds["meet"]):
        return Fact("meet", actor, here, other=dice.pick(near))
    if held and dice.chance(odds["drop"]):
        return Fact("drop", actor, here, dice.pick(held))
    free = world.within_reach(actor, objects)
    free = [thing for thing in free if thing not in world.lying] or free
    if free and len(held) < 3 and dice.chance(odds["take"]):
        return Fact("take", actor, here, dice.pick(free))
    return Fact("go", actor, _goal(world, here, cast.places, dice))


def _goal(world: World, here: str | None, places: Sequence[str], dice: StableRandom) -> str:
    """World -> where to go next: rather where somebody is, since giving and meeting take two."""
    company = [place for place in world.standing.values() if place != here]
    return dice.pick(company if company and dice.chance(COMPANY) else [place for place in places if place != here])


def _question(facts: Sequence[Fact], asking: QuestionKind, dice: StableRandom) -> StoryQuestion | None:
    """Facts -> a question of this kind that only one word answers, or None."""
    phrase = dice.pick(asking.phrases)
    known = [fact.words() for fact in facts if fact.verb == asking.verb]
    answerable = [words for words in known if _answers(words, phrase, asking.asked, known) == {words[asking.asked]}]
    # Facts of one kind must differ in the answer, or the kind alone would give it away.
    if not answerable or len({words[asking.asked] for words in known}) < 2:
        return None
    # Of two, the one whose answer is told of less often: otherwise the busiest word would too often be right.
    words = min(dice.pick(answerable), dice.pick(answerable), key=lambda words: _mentions(words[asking.asked], facts))
    return StoryQuestion(_filled(phrase, words), words[asking.asked])


def _mentions(word: str, facts: Sequence[Fact]) -> int:
    """How many facts a word has part in."""
    return sum(word in (fact.person, fact.other, fact.object, fact.place) for fact in facts)


def _answers(words: dict[str, str], phrase: Sentence, asked: str, known: Sequence[dict[str, str]]) -> set[str]:
    """A phrase filled with these words -> every word that would answer it."""
    given = [slot for slot in SLOTS if slot in phrase]
    return {other[asked] for other in known if all(other[slot] == words[slot] for slot in given)}


def _document(
    facts: Sequence[Fact], cast: WordLists, answer: str, rival: str, dice: StableRandom
) -> tuple[Sentence, ...]:
    """Facts -> sentences, with asides between them that rather name the rival, so that counting words is no use."""
    length = dice.between(*SENTENCE_COUNTS)
    places = set(dice.deal(range(length), len(facts)))
    asides = iter(dice.deal(ASIDES, length - len(facts)))
    remaining = iter(facts)
    telling = SentenceWriter(cast, answer, rival, dice)
    return tuple(
        telling.fact(next(remaining)) if position in places else telling.aside(next(asides))
        for position in range(length)
    )


class SentenceWriter:
    """Facts and asides one after the other -> sentences; remembers who was named last, for he and she."""

    def __init__(self, cast: WordLists, answer: str, rival: str, dice: StableRandom) -> None:
        self._pools = {"PERSON": cast.persons, "OTHER": cast.persons, "OBJECT": cast.objects, "PLACE": cast.places}
        self._answer, self._rival, self._dice = answer, rival, dice
        self._named: list[str] = []
        self._pronouns = 0

    def fact(self, fact: Fact) -> Sentence:
        """Fact -> a sentence, at times with an opener or with a pronoun for its person."""
        phrase = self._dice.pick(FACT_PHRASES[fact.verb])
        words = fact.words()
        pronoun = phrase[0] == "PERSON" and self._plain(fact.person) and self._dice.chance(PRONOUN)
        self._pronouns = self._pronouns + 1 if pronoun else 0
        self._named = [words[slot] for slot in phrase if slot in ("PERSON", "OTHER")]
        if pronoun:
            words["PERSON"] = "she" if fact.person in _WOMEN else "he"
        opener = self._dice.pick(OPENERS) if phrase[0] == "PERSON" and self._dice.chance(OPENER) else ()
        return _filled(opener + phrase, words)

    def _plain(self, person: str) -> bool:
        """Whether a pronoun could only mean this person: named last, and alone of that sex, in the last sentence."""
        alike = [name for name in self._named if (name in _WOMEN) == (person in _WOMEN)]
        return self._named[-1:] == [person] and set(alike) == {person} and self._pronouns < LONGEST_PRONOUN_CHAIN

    def aside(self, phrase: Sentence) -> Sentence:
        """Phrase -> a sentence that changes nothing."""
        words = list(phrase)
        for position, slot in enumerate(phrase):
            if slot in self._pools:
                words[position] = self._talked_about([word for word in self._pools[slot] if word not in words])
        self._named = [word for word in words if word in self._pools["PERSON"]]
        self._pronouns = 0
        return tuple(words)

    def _talked_about(self, words: list[str]) -> str:
        """Words that could be named -> one of them: the rival or a bystander more often than the rest."""
        if self._rival in words and self._dice.chance(RIVAL):
            return self._rival
        return self._dice.pick(words[-2:] if self._dice.chance(BYSTANDER) else words)


def _filled(phrase: Sentence, words: dict[str, str]) -> Sentence:
    """Phrase and words by slot -> a sentence that begins with a capital."""
    first, *rest = (words.get(word, word) for word in phrase)
    return (first[0].upper() + first[1:], *rest)
