"""The people, places and things of the generated stories: words for training, and words kept back from it.

No word is in two lists or in a phrase of `phrases.py`, so that a word's class is never in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass

WOMEN = tuple(
    """
    Marta Ingrid Amina Yuki Priya Leila Chiara Zuzana Fatima Noor Solveig Mei Ana Beatriz Camila Daria Elif Freya
    Gita Hana Ines Jana Kavya Lotte Malin Nadia Olga Paloma Rosa Sunita Tamar Uma Vera Wanjiru Ximena Yasmin Zora
    Aiko Bronwyn Chidera Dolores Esther Fiona Greta Halima Irina Jasmine Katya Lucia Mirela Nkechi Oksana Petra
    Quyen Ruth Saoirse Thandi Ursula Valentina Wilma Xiulan Yara Zainab Adele Birgit Carmen Dilnoza Emma Farah
    Giulia Helena Isolde Judit Keiko Laila Magda Nomvula Orla Pilar Radka Sofia Tove Violeta Wendy Ayesha Blanka
    Clara Deepa Elena Femke Gudrun Hedda Ilse Jelena Kirsi Ludmila Maeve Niamh Odile Parisa Renata Sigrid Teresa
    """.split()
)
MEN = tuple(
    """
    Oskar Ahmed Kenji Ravi Diego Luca Pavel Omar Bjorn Wei Andrei Bruno Carlos Dmitri Emre Finn Goran Hugo Ivan
    Jamal Kofi Liam Mateo Nikolai Otto Pedro Rashid Sven Tariq Ulrich Viktor Wim Xavier Yusuf Zoltan Arjun Bashir
    Cormac David Enzo Farid Gustav Hamid Isaac Joao Kwame Lars Milos Naveen Orhan Piotr Quentin Ruben Samir Tomas
    Umberto Vikram Walter Yannick Zdenek Aleksi Babak Chinedu Darius Eamon Felipe Giorgos Henrik Idris Jorge Kiran
    Lorenzo Magnus Nuno Oleg Paolo Rafael Stefan Tadeusz Vasily Wojtek Youssef Zheng Amir Bogdan Cedric Duc Elias
    Francisco Gabor Hassan Ismael Jiro Karim Levi Marek Nils Obi Pascal Radu Sanjay Thiago
    """.split()
)
PLACES = tuple(
    """
    kitchen harbour market garden attic library cellar bakery forest station orchard barn museum chapel stable
    workshop theatre school village meadow tower castle greenhouse pantry hallway courtyard mill inn pharmacy studio
    office laundry vineyard valley desert cave tunnel park zoo hospital hotel cinema gallery palace prison shed tent
    cottage lighthouse monastery nursery playground quarry restaurant stadium swamp tavern temple warehouse yard
    bathroom bedroom cabin classroom factory gym jungle laboratory lobby parlour bookshop shipyard dairy dungeon
    foundry hangar bazaar embassy grotto pagoda
    """.split()
)
OBJECTS = tuple(
    """
    lantern violin kettle map umbrella compass basket key trumpet mirror teapot candle hammer blanket ladder drum
    whistle necklace telescope bucket spoon notebook coin ring scarf broom clock doll flute guitar helmet jar kite
    lamp mug needle oar pencil quilt rope saddle tambourine urn vase wallet accordion backpack camera diary envelope
    feather globe harp inkwell jacket knife locket marble napkin paddle pillow rucksack shovel statue thimble trophy
    wrench anchor balloon cushion dictionary fiddle goblet hourglass jug ladle medal net ornament painting pitcher
    puppet rattle sandal shield suitcase tray trowel vest watch bell yoyo axe bracelet brush cane comb crown cup
    ribbon fan flag fork glove hat
    """.split()
)


@dataclass(frozen=True, slots=True)
class WordLists:
    """The words one set of stories draws from."""

    persons: tuple[str, ...]
    places: tuple[str, ...]
    objects: tuple[str, ...]


def word_lists(unseen: bool = False) -> WordLists:
    """Which part -> its words: every fifth word of each list is kept back, so that both parts are alike."""
    women, men, places, objects = (_part(words, unseen) for words in (WOMEN, MEN, PLACES, OBJECTS))
    return WordLists(women + men, places, objects)


def _part(words: tuple[str, ...], unseen: bool) -> tuple[str, ...]:
    return tuple(word for position, word in enumerate(words) if (position % 5 == 4) == unseen)
