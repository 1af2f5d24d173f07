"""Contract of a tagger: the sentences of a whole book in, a word class for every word out.

A tagger is a file of this folder with one function:

    def tagger(model: str = "") -> Tagger

`model` is what the user wrote behind a colon (`--tagger spacy:en_core_web_sm`). The whole book comes at once, because
what a book itself does with a word (capitals, neighbours) says more than any dictionary. The classes are those of the
Children's Book Test. Of a name of several words only the last has the class NAMED ("Anna Lee": Lee), as there.
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
    """The tagger that `name` or `name:model` asks for."""
    plugin, _, model = name.partition(":")
    build: Callable[[str], Tagger] = plugins.load("cloze.tagging", plugin).load_tagger
    return build(model)


def reject_model(name: str, model: str) -> None:
    """For taggers that have no models: a model behind the colon is a mistake."""
    if model:
        raise InputError(f"--tagger {name}:{model}: {name} has no models to choose from; write --tagger {name}")
