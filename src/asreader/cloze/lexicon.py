"""English word -> its commonest Penn Treebank tag, from the lexicon that textblob's wheel carries.

It is the lexicon of Eric Brill's tagger (MIT licence): 94,000 words as they were tagged in the Brown corpus and the
Penn Treebank, with some additions of the TweetNLP project (CC BY 3.0). Nothing is downloaded.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path


def look_up_tag(word: str) -> str | None:
    """The tag of a word as it is written, such as NN, NNP or VBD; None if it is not in the lexicon."""
    return load_tags().get(word)


@cache
def load_tags() -> dict[str, str]:
    """Every word of the lexicon with its tag."""
    # The file is read as it lies there: importing textblob itself would take half a second and is not needed.
    spec = find_spec("textblob")
    assert spec is not None and spec.origin is not None
    found = {}
    with (Path(spec.origin).parent / "en" / "en-lexicon.txt").open(encoding="utf-8") as lines:
        for line in lines:
            word, _, kind = line.strip().partition(" ")
            if kind and not line.startswith(";;;"):
                found[word] = kind.split("|")[0]
    return found


@cache
def load_lowercase_words() -> frozenset[str]:
    """The lexicon's words in lower case: the names of its newspapers (Carter, Armour) are known words too."""
    return frozenset(map(str.lower, load_tags()))
