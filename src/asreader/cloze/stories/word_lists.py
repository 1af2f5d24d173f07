"""The people, places and things of the generated stories: words for training, and words kept back from it.

No word is in two lists or in a phrase of `phrases.py`, so that a word's class is never in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass

WOMEN = tuple(
    """
    Marta Ingrid Amina Yuki Priya Leila Chiara Zuzana Fatima Noor Solveig Mei Ana Beatriz Camila Daria Elif Freya
    Gita Hana Ines Jana Kavya Lotte
    """.split()
)
MEN = tuple(
    """
    Oskar Ahmed Kenji Ravi Diego Luca Pavel Omar Bjorn Wei Andrei Bruno Carlos Dmitri Emre Finn Goran Hugo Ivan
    Jamal Kofi Liam Mateo Nikolai
    """.split()
)
PLACES = tuple(
    """
    kitchen harbour market garden attic library cellar bakery forest station orchard barn museum chapel stable
    workshop theatre school village meadow tower castle greenhouse pantry
    """.split()
)
OBJECTS = tuple(
    """
    lantern violin kettle map umbrella compass basket key trumpet mirror teapot candle hammer blanket ladder drum
    whistle necklace telescope bucket spoon notebook coin ring scarf broom clock doll flute guitar helmet jar
    """.split()
)


@dataclass(frozen=True, slots=True)
class WordLists:
    """The words one set of stories draws from."""

    persons: tuple[str, ...]
    places: tuple[str, ...]
    objects: tuple[str, ...]


def select_word_lists(unseen: bool = False) -> WordLists:
    """Which part -> its words: every other word of each list is kept back, so that both parts are alike.

    The lists are short on purpose: two minutes of training are enough to learn what each word can be.
    """
    women, men, places, objects = (_part(words, unseen) for words in (WOMEN, MEN, PLACES, OBJECTS))
    return WordLists(women + men, places, objects)


def _part(words: tuple[str, ...], unseen: bool) -> tuple[str, ...]:
    return tuple(word for position, word in enumerate(words) if position % 2 == unseen)
