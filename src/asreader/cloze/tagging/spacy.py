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
# Entity types whose words cannot be inferred from a document.
_IGNORED_ENTITIES = ("CARDINAL", "QUANTITY", "PERCENT", "MONEY")


def load_tagger(model: str = "") -> Tagger:
    """Load the spaCy pipeline of this name or folder."""
    if not model:
        raise InputError("--tagger spacy: name a model, as --tagger spacy:en_core_web_sm")
    pipeline = _load_pipeline(model)

    def classify_words(book: Sequence[Sentence]) -> list[WordClasses]:
        from spacy.tokens import Doc

        # The text is already tokenized; the model only classifies the words.
        documents = (Doc(pipeline.vocab, words=list(sentence)) for sentence in book)
        return [tuple(_classify_document(document)) for document in pipeline.pipe(documents)]

    return classify_words


def _load_pipeline(model: str) -> Language:
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


def _classify_document(document: Doc) -> Iterator[str]:
    for word in document:
        if word.ent_type_ and word.ent_type_ not in _IGNORED_ENTITIES:
            is_last = word.i + 1 == len(document) or document[word.i + 1].ent_iob_ != "I"
            yield NAMED if is_last else OTHER
        else:
            yield _CLASSES.get(word.pos_, OTHER)
