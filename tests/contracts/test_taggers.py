"""The contract that every tagger fulfils."""

from __future__ import annotations

from pathlib import Path

import pytest

from asreader import plugins
from asreader.cloze import tagging
from asreader.cloze.books.window_questions import WORD_CLASSES
from asreader.errors import InputError

BOOK = [
    tuple("Velda walked to the old mill with Tom Marsh .".split()),
    tuple("小 红 在 北京 看见 了 一 只 猫 。".split()),
    ("``", "123", "''"),
    (),
]


@pytest.fixture(scope="module")
def spacy_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spaCy pipeline on disk whose rules are defined here."""
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns(
        [
            {"label": "PERSON", "pattern": "Velda"},
            {"label": "PERSON", "pattern": "Tom Marsh"},
            {"label": "CARDINAL", "pattern": "123"},
        ]
    )
    ruler = pipeline.add_pipe("attribute_ruler")
    for word, kind in {"walked": "VERB", "mill": "NOUN", "to": "ADP", "with": "ADP"}.items():
        ruler.add([[{"ORTH": word}]], {"POS": kind})
    folder = tmp_path_factory.mktemp("spacy") / "rules"
    pipeline.to_disk(folder)
    return folder


def load_tagger(name: str, spacy_model: Path) -> tagging.Tagger:
    return tagging.resolve_tagger(f"spacy:{spacy_model}" if name == "spacy" else name)


@pytest.mark.parametrize("name", plugins.list_plugins("cloze.tagging"))
def test_a_class_for_every_word(name: str, spacy_model: Path) -> None:
    found = load_tagger(name, spacy_model)(BOOK)
    assert [len(classes) for classes in found] == [len(sentence) for sentence in BOOK]
    assert {kind for classes in found for kind in classes} <= {*WORD_CLASSES, tagging.OTHER}
    assert not load_tagger(name, spacy_model)([])


@pytest.mark.parametrize("name", plugins.list_plugins("cloze.tagging"))
def test_output_is_deterministic(name: str, spacy_model: Path) -> None:
    assert load_tagger(name, spacy_model)(BOOK) == load_tagger(name, spacy_model)(BOOK)


def test_spacy_uses_the_classes_of_the_model(spacy_model: Path) -> None:
    (first, *_, numbers, _) = tagging.resolve_tagger(f"spacy:{spacy_model}")(BOOK)
    assert first == ("ne", "v", "p", "", "", "cn", "p", "", "ne", "")
    assert numbers == ("", "", "")


def test_jieba_knows_persons_places_nouns_verbs_and_prepositions() -> None:
    (classes,) = tagging.resolve_tagger("jieba")([("李明", "在", "北京", "看见", "老师", "了", "。")])
    assert classes == ("ne", "p", "ne", "v", "cn", "", "")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lexikal", "did you mean 'lexical'?"),
        ("lexical:large", "has no models"),
        ("jieba:large", "has no models"),
        ("spacy", "name a model"),
        ("spacy:en_core_web_nothing", "python -m spacy download en_core_web_nothing"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(name: str, reason: str) -> None:
    with pytest.raises(InputError, match=r"^[^\n]*$") as error:
        tagging.resolve_tagger(name)
    assert reason in str(error.value)
