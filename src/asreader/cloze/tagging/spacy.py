"""any language: a spaCy model that you have installed (extra `spacy`), as `--tagger spacy:en_core_web_sm`"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from asreader.cloze.tagging import NAMED, NOUN, OTHER, PREPOSITION, VERB, Tagger, WordClasses
from asreader.data.example import Sentence
from asreader.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

_CLASSES = {"NOUN": NOUN, "VERB": VERB, "AUX": VERB, "ADP": PREPOSITION}
# What a model marks for its meaning in a text, but which nobody can guess from a story.
_NO_NAMES = ("CARDINAL", "QUANTITY", "PERCENT", "MONEY")


def load_tagger(model: str = "") -> Tagger:
    """The pipeline of that name or folder."""
    if not model:
        raise InputError("--tagger spacy: name a model, as --tagger spacy:en_core_web_sm")
    pipeline = _pipeline(model)

    def classes(book: Sequence[Sentence]) -> list[WordClasses]:
        from spacy.tokens import Doc

        # The words are cut already; the model only says what they are.
        documents = (Doc(pipeline.vocab, words=list(sentence)) for sentence in book)
        return [tuple(_classes(document)) for document in pipeline.pipe(documents)]

    return classes


def _pipeline(model: str) -> Language:
    try:
        import spacy
    except ImportError:
        raise InputError("--tagger spacy: spaCy is not installed; pip install 'asreader[spacy]'") from None
    try:
        pipeline = spacy.load(model)
    except (OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(
            f"--tagger spacy:{model}: {reason}; install it with `python -m spacy download {model}`"
        ) from error
    if not {"ner", "entity_ruler"} & set(pipeline.pipe_names):
        raise InputError(f"--tagger spacy:{model}: the model finds no names (it has no ner); choose another")
    return pipeline


def _classes(document: Doc) -> Iterator[str]:
    for word in document:
        if word.ent_type_ and word.ent_type_ not in _NO_NAMES:
            ends = word.i + 1 == len(document) or document[word.i + 1].ent_iob_ != "I"
            yield NAMED if ends else OTHER
        else:
            yield _CLASSES.get(word.pos_, OTHER)
