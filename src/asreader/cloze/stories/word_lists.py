"""The persons, places and objects of the generated stories: words for training, and held-out words.

No word is in two lists or in a phrase of `phrases.py`, so the class of a word is always clear.
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
    """The words that a set of stories uses."""

    persons: tuple[str, ...]
    places: tuple[str, ...]
    objects: tuple[str, ...]


def select_word_lists(unseen: bool = False) -> WordLists:
    """The words for training, or with `unseen` the held-out ones: every other word of each list.

    The lists are short so that two minutes of training are enough to learn the class of each word.
    """
    women, men, places, objects = (_select_half(words, unseen) for words in (WOMEN, MEN, PLACES, OBJECTS))
    return WordLists(women + men, places, objects)


def _select_half(words: tuple[str, ...], unseen: bool) -> tuple[str, ...]:
    return tuple(word for position, word in enumerate(words) if position % 2 == unseen)
