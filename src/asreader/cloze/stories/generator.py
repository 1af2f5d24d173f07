"""seed -> Examples without limit: short stories about persons who carry objects, each with one question.

A small world model tracks where every person and object is. It decides what can happen next, and a question is asked
only if facts and world give exactly one answer. `generate_story` also returns the facts of a story.
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
PRONOUN_PROBABILITY = 0.25
MAX_PRONOUN_CHAIN = 2
OPENER_PROBABILITY = 0.25
DISTRACTOR_PROBABILITY = 0.5
BYSTANDER_PROBABILITY = 0.7
COMPANY_PROBABILITY = 0.7
VERB_PROBABILITIES = {"give": 0.5, "meet": 0.1, "drop": 0.4, "take": 0.85}
_WOMEN = frozenset(WOMEN)
_WEIGHTED_KINDS = tuple(name for name, kind in QUESTION_KINDS.items() for _ in range(kind.weight))


@dataclass(frozen=True, slots=True)
class Fact:
    """A person, a verb, a place, an object and another person; fields without a role are empty."""

    verb: str
    person: str = ""
    place: str = ""
    object: str = ""
    other: str = ""

    def fill_slots(self) -> dict[str, str]:
        """The words of the fact by slot."""
        return dict(zip(SLOTS, (self.person, self.other, self.object, self.place), strict=True))


@dataclass(frozen=True, slots=True)
class StoryQuestion:
    """A sentence with a GAP and its answer."""

    words: Sentence
    answer: str


@dataclass(frozen=True, slots=True)
class GeneratedStory:
    """A story with its facts in order, the kind of its question, and its Example."""

    facts: tuple[Fact, ...]
    kind: str
    example: Example


def generate_stories(count: int, seed: int, unseen: bool = False) -> Iterator[Example]:
    """Seed -> `count` Examples; with `unseen`, about persons, places and objects that no other story names."""
    words = select_word_lists(unseen)
    return (generate_story(number, seed, words).example for number in range(count))


def generate_story(number: int, seed: int, words: WordLists) -> GeneratedStory:
    """Seed and number -> one story, independent of the others; tries until the drawn kind of question is possible."""
    rng = StableRandom(f"{seed}-{number}")
    kind = rng.pick(_WEIGHTED_KINDS)
    attempts = (_try_story(f"story-{seed}-{number}", kind, words, rng) for _ in count())
    return next(attempt for attempt in attempts if attempt is not None)


class StableRandom:
    """Random choices made from random() only, the method whose sequence Python guarantees not to change."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def between(self, low: int, high: int) -> int:
        """An integer between two bounds, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[int(self._random() * len(items))]

    def sample(self, items: Sequence[T], number: int) -> list[T]:
        """`number` different items, in random order."""
        remaining = list(items)
        for position in range(number):
            other = self.between(position, len(remaining) - 1)
            remaining[position], remaining[other] = remaining[other], remaining[position]
        return remaining[:number]


@dataclass(slots=True)
class World:
    """Where persons are, who holds which object, where the other objects lie, and who entered a place last.

    What is not known yet is not a key.
    """

    standing: dict[str, str] = field(default_factory=dict)
    holder: dict[str, str] = field(default_factory=dict)
    lying: dict[str, str] = field(default_factory=dict)
    entered: dict[str, str] = field(default_factory=dict)

    def apply_fact(self, fact: Fact) -> None:
        """Update the world by one fact."""
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

    def find_reachable(self, person: str, objects: Sequence[str]) -> list[str]:
        """Objects that a person could take: those lying here, and those without a known place."""
        here = self.standing[person]
        return [thing for thing in objects if thing not in self.holder and self.lying.get(thing, here) == here]

    def describe_final_state(self) -> Iterator[Fact]:
        """The final state as facts: where persons and objects are, who holds what, who entered a place last."""
        for person, place in self.standing.items():
            yield Fact("stand", person, place)
        for thing, person in self.holder.items():
            yield Fact("hold", person, object=thing)
            yield Fact("lie", place=self.standing[person], object=thing)
        for thing, place in self.lying.items():
            yield Fact("lie", place=place, object=thing)
        for place, person in self.entered.items():
            yield Fact("enter", person, place)


def _try_story(name: str, kind: str, words: WordLists, rng: StableRandom) -> GeneratedStory | None:
    """One random story, or None if it allows no question of this kind or has too few or too many words."""
    cast = _draw_cast(words, rng)
    world = World()
    actors = WordLists(cast.persons[:-2], cast.places[:-2], cast.objects[:-2])
    facts = _draw_facts(world, actors, QUESTION_KINDS[kind].verb, rng)
    question = _draw_question([*facts, *world.describe_final_state()], QUESTION_KINDS[kind], rng)
    if question is None:
        return None
    same_class = next(group for group in (cast.persons, cast.places, cast.objects) if question.answer in group)
    distractor = rng.pick([word for word in same_class[:-2] if word != question.answer])
    document = _write_document(facts, cast, distractor, rng)
    document_words = set(chain.from_iterable(document))
    candidates = [word for word in same_class if word in document_words]
    if len(candidates) < 3 or sum(map(len, document)) not in WORD_COUNTS:
        return None
    shuffled = tuple(rng.sample(candidates, len(candidates)))
    return GeneratedStory(tuple(facts), kind, Example(name, document, question.words, shuffled, question.answer))


def _draw_cast(words: WordLists, rng: StableRandom) -> WordLists:
    """Word lists -> the words of one story. The last two of each list occur only in asides."""
    persons = rng.sample(words.persons, 2 + rng.between(3, 4))
    places = rng.sample(words.places, 2 + rng.between(3, 4))
    objects = rng.sample(words.objects, 2 + rng.between(4, 5))
    return WordLists(tuple(persons), tuple(places), tuple(objects))


def _draw_facts(world: World, cast: WordLists, frequent_verb: str, rng: StableRandom) -> list[Fact]:
    """Draw facts that can follow each other, many with `frequent_verb`, and apply them to the world."""
    facts: list[Fact] = []
    probabilities = VERB_PROBABILITIES | {frequent_verb: 0.9}
    actor = ""
    last_object = ""
    for _ in range(rng.between(*FACT_COUNTS)):
        if not actor or rng.chance(0.5):
            actor = rng.pick(cast.persons)
        fact = _draw_fact(
            world, actor, [thing for thing in cast.objects if thing != last_object], cast, probabilities, rng
        )
        world.apply_fact(fact)
        facts.append(fact)
        # An object that was just put down or given is not taken or given back at once.
        last_object = fact.object if fact.verb in ("drop", "give") else ""
    return facts


def _draw_fact(
    world: World,
    actor: str,
    objects: Sequence[str],
    cast: WordLists,
    probabilities: dict[str, float],
    rng: StableRandom,
) -> Fact:
    """Draw something that a person can do now; rarely possible actions have a higher probability."""
    here = world.standing.get(actor)
    if here is None:
        return Fact(rng.pick(("wait", "go")), actor, _draw_destination(world, here, cast.places, rng))
    near = [person for person in cast.persons if person != actor and world.standing.get(person) == here]
    held = [thing for thing in objects if world.holder.get(thing) == actor]
    if near and held and rng.chance(probabilities["give"]):
        return Fact("give", actor, here, rng.pick(held), rng.pick(near))
    if near and rng.chance(probabilities["meet"]):
        return Fact("meet", actor, here, other=rng.pick(near))
    if held and rng.chance(probabilities["drop"]):
        return Fact("drop", actor, here, rng.pick(held))
    free = world.find_reachable(actor, objects)
    free = [thing for thing in free if thing not in world.lying] or free
    if free and len(held) < 3 and rng.chance(probabilities["take"]):
        return Fact("take", actor, here, rng.pick(free))
    return Fact("go", actor, _draw_destination(world, here, cast.places, rng))


def _draw_destination(world: World, here: str | None, places: Sequence[str], rng: StableRandom) -> str:
    """Draw where to go next: preferably where somebody is, since giving and meeting need two persons."""
    company = [place for place in world.standing.values() if place != here]
    return rng.pick(
        company if company and rng.chance(COMPANY_PROBABILITY) else [place for place in places if place != here]
    )


def _draw_question(facts: Sequence[Fact], kind: QuestionKind, rng: StableRandom) -> StoryQuestion | None:
    """Draw a question of this kind that has exactly one answer; None if there is none."""
    phrase = rng.pick(kind.phrases)
    known = [fact.fill_slots() for fact in facts if fact.verb == kind.verb]
    answerable = [words for words in known if _find_answers(words, phrase, kind.slot, known) == {words[kind.slot]}]
    # Facts of one kind must differ in the answer, or the kind alone would reveal it.
    if not answerable or len({words[kind.slot] for words in known}) < 2:
        return None
    # Of two, take the one whose answer occurs in fewer facts: else the most frequent word would too often be right.
    words = min(rng.pick(answerable), rng.pick(answerable), key=lambda words: _count_facts(words[kind.slot], facts))
    return StoryQuestion(_fill_phrase(phrase, words), words[kind.slot])


def _count_facts(word: str, facts: Sequence[Fact]) -> int:
    """The number of facts that contain a word."""
    return sum(word in (fact.person, fact.other, fact.object, fact.place) for fact in facts)


def _find_answers(
    words: dict[str, str], phrase: Sentence, asked_slot: str, known: Sequence[dict[str, str]]
) -> set[str]:
    """All words that would answer a phrase filled with these words."""
    filled = [slot for slot in SLOTS if slot in phrase]
    return {other[asked_slot] for other in known if all(other[slot] == words[slot] for slot in filled)}


def _write_document(facts: Sequence[Fact], cast: WordLists, distractor: str, rng: StableRandom) -> tuple[Sentence, ...]:
    """Facts -> sentences, with asides between them that often name the distractor, so counting words does not help."""
    length = rng.between(*SENTENCE_COUNTS)
    fact_positions = set(rng.sample(range(length), len(facts)))
    asides = iter(rng.sample(ASIDES, length - len(facts)))
    remaining = iter(facts)
    writer = SentenceWriter(cast, distractor, rng)
    return tuple(
        writer.write_fact(next(remaining)) if position in fact_positions else writer.write_aside(next(asides))
        for position in range(length)
    )


class SentenceWriter:
    """Facts and asides in order -> sentences; tracks who was named last, for the pronouns he and she."""

    def __init__(self, cast: WordLists, distractor: str, rng: StableRandom) -> None:
        self._pools = {"PERSON": cast.persons, "OTHER": cast.persons, "OBJECT": cast.objects, "PLACE": cast.places}
        self._distractor = distractor
        self._rng = rng
        self._named: list[str] = []
        self._pronouns = 0

    def write_fact(self, fact: Fact) -> Sentence:
        """Fact -> a sentence, sometimes with an opener or with a pronoun for its person."""
        phrase = self._rng.pick(FACT_PHRASES[fact.verb])
        words = fact.fill_slots()
        has_pronoun = (
            phrase[0] == "PERSON" and self._is_unambiguous(fact.person) and self._rng.chance(PRONOUN_PROBABILITY)
        )
        self._pronouns = self._pronouns + 1 if has_pronoun else 0
        self._named = [words[slot] for slot in phrase if slot in ("PERSON", "OTHER")]
        if has_pronoun:
            words["PERSON"] = "she" if fact.person in _WOMEN else "he"
        opener = self._rng.pick(OPENERS) if phrase[0] == "PERSON" and self._rng.chance(OPENER_PROBABILITY) else ()
        return _fill_phrase(opener + phrase, words)

    def _is_unambiguous(self, person: str) -> bool:
        """Whether a pronoun can only mean this person: named last, and alone of that sex, in the last sentence."""
        same_sex = [name for name in self._named if (name in _WOMEN) == (person in _WOMEN)]
        return self._named[-1:] == [person] and set(same_sex) == {person} and self._pronouns < MAX_PRONOUN_CHAIN

    def write_aside(self, phrase: Sentence) -> Sentence:
        """Phrase -> a sentence without a fact."""
        words = list(phrase)
        for position, slot in enumerate(phrase):
            if slot in self._pools:
                words[position] = self._draw_word([word for word in self._pools[slot] if word not in words])
        self._named = [word for word in words if word in self._pools["PERSON"]]
        self._pronouns = 0
        return tuple(words)

    def _draw_word(self, words: list[str]) -> str:
        """Draw a word for an aside: the distractor or a bystander more often than the others."""
        if self._distractor in words and self._rng.chance(DISTRACTOR_PROBABILITY):
            return self._distractor
        return self._rng.pick(words[-2:] if self._rng.chance(BYSTANDER_PROBABILITY) else words)


def _fill_phrase(phrase: Sentence, words: dict[str, str]) -> Sentence:
    """Phrase and words by slot -> a sentence that starts with a capital."""
    first, *rest = (words.get(word, word) for word in phrase)
    return (first[0].upper() + first[1:], *rest)
