"""word -> row of the embedding table; line number in vocabulary.txt = row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asreader.data.example import GAP
from asreader.errors import InputError
from asreader.system import atomic_files

PADDING_ROW = 0
GAP_ROW = 1
SEPARATOR_ROW = 2
FIRST_ANONYMOUS_ROW = 3
UNKNOWN, ENTITY = -1, -2
"""Placeholders in a table of rows for words that get one of the anonymous rows, example by example."""

ENTITY_WORD = re.compile(r"@entity\d+")
# Words never contain a space, so these names cannot collide with words of a text.
_FIXED_NAMES = ("<the padding>", "<the gap>", "<the separator>")


@dataclass(frozen=True)
class Vocabulary:
    """Rows: padding, gap, separator, `unknown` and `entities` anonymous rows, then the known words by frequency."""

    words: tuple[str, ...]
    unknown: int
    entities: int = 0

    @property
    def size(self) -> int:
        """Number of rows of the embedding table."""
        return FIRST_ANONYMOUS_ROW + self.unknown + self.entities + len(self.words)

    @property
    def unknown_rows(self) -> range:
        """The anonymous rows of unknown words."""
        return range(FIRST_ANONYMOUS_ROW, FIRST_ANONYMOUS_ROW + self.unknown)

    @property
    def entity_rows(self) -> range:
        """The anonymous rows of @entityN words."""
        return range(self.unknown_rows.stop, self.unknown_rows.stop + self.entities)

    @cached_property
    def _row_by_word(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words, self.entity_rows.stop)} | {GAP: GAP_ROW}

    def rows(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Row of each word; UNKNOWN or ENTITY for words without a row of their own."""
        known = np.fromiter((self._row_by_word.get(word, UNKNOWN) for word in words), np.int32, len(words))
        if self.entities:
            known[[index for index, word in enumerate(words) if ENTITY_WORD.fullmatch(word)]] = ENTITY
        return known

    def row(self, word: str) -> int:
        """Row of a single word; UNKNOWN or ENTITY if it has none of its own."""
        return ENTITY if self.entities and ENTITY_WORD.fullmatch(word) else self._row_by_word.get(word, UNKNOWN)

    def save(self, path: Path) -> None:
        """Write vocabulary.txt."""
        anonymous = [f"<unknown {n}>" for n in range(self.unknown)] + [f"<entity {n}>" for n in range(self.entities)]
        atomic_files.write_text(path, "".join(f"{word}\n" for word in (*_FIXED_NAMES, *anonymous, *self.words)))


def load_vocabulary(path: Path) -> Vocabulary:
    """Read vocabulary.txt; rows in another order than that of `save` are refused."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable vocabulary: {error}") from None
    rest = lines[len(_FIXED_NAMES) :]
    unknown = sum(line.startswith("<unknown ") for line in rest)
    entities = sum(line.startswith("<entity ") for line in rest)
    vocabulary = Vocabulary(tuple(rest[unknown + entities :]), unknown, entities)
    if tuple(lines[: len(_FIXED_NAMES)]) != _FIXED_NAMES or len(set(lines)) != len(lines):
        raise InputError(f"{path}: not a vocabulary of asreader, or damaged; take the file from the run again")
    return vocabulary


def build_vocabulary(
    counts: Mapping[str, int], *, min_count: int, unknown: int, extra: Iterable[str] = ()
) -> Vocabulary:
    """Known words from the counts of the training data; `extra` words (of evaluation data) are added with any count.

    Entities have no fixed meaning, so they get anonymous rows: as many as the training data has entity names.
    """
    frequent = {word: count for word, count in counts.items() if count >= min_count}
    frequent |= {word: 0 for word in extra if word not in frequent}
    entities = {word for word in (*counts, *frequent) if ENTITY_WORD.fullmatch(word)}
    known = frequent.keys() - entities - {GAP}
    ordered = sorted(known, key=lambda word: (-frequent[word], word))
    return Vocabulary(tuple(ordered), max(unknown, 1), len(entities))
