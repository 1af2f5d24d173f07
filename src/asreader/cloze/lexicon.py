"""English word -> its most frequent Penn Treebank tag, from the lexicon file of the textblob package.

The lexicon comes from Eric Brill's tagger (MIT licence): 94,000 words of the Brown corpus and the Penn Treebank, with
additions of the TweetNLP project (CC BY 3.0). Nothing is downloaded.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path


def look_up_tag(word: str) -> str | None:
    """The tag of a word in this spelling, such as NN, NNP or VBD; None if it is not in the lexicon."""
    return load_tags().get(word)


@cache
def load_tags() -> dict[str, str]:
    """Word -> tag for the whole lexicon."""
    # Only the file is read: importing textblob would take half a second.
    spec = find_spec("textblob")
    assert spec is not None and spec.origin is not None
    tags = {}
    with (Path(spec.origin).parent / "en" / "en-lexicon.txt").open(encoding="utf-8") as lines:
        for line in lines:
            word, _, tag = line.strip().partition(" ")
            if tag and not line.startswith(";;;"):
                tags[word] = tag.split("|")[0]
    return tags


@cache
def load_lowercase_words() -> frozenset[str]:
    """The words of the lexicon in lower case, including names in newspapers (Carter, Armour)."""
    return frozenset(map(str.lower, load_tags()))
