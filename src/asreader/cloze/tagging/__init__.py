"""sentences of a whole book -> a word class for every word: the contract of a tagger.

A tagger is a file in this folder with one function:

    def load_tagger(model: str = "") -> Tagger

`model` is the part after the colon in `--tagger spacy:en_core_web_sm`. A tagger receives the whole book at once: how
the book uses a word (capitals, neighbours) is better evidence than a dictionary. The classes are those of the
Children's Book Test. As there, only the last word of a name has the class NAMED ("Anna Lee": Lee).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from asreader import plugins
from asreader.data.example import Sentence
from asreader.errors import InputError

NAMED, NOUN, VERB, PREPOSITION, OTHER = "ne", "cn", "v", "p", ""

WordClasses = tuple[str, ...]
Tagger = Callable[[Sequence[Sentence]], list[WordClasses]]


def resolve_tagger(name: str) -> Tagger:
    """Load the tagger given as `name` or `name:model`."""
    plugin, _, model = name.partition(":")
    load_tagger: Callable[[str], Tagger] = plugins.load_plugin("cloze.tagging", plugin).load_tagger
    return load_tagger(model)


def reject_model(name: str, model: str) -> None:
    """Raise an InputError if a model was given to a tagger that has none."""
    if model:
        raise InputError(f"--tagger {name}:{model}: {name} has no models to choose from; write --tagger {name}")
