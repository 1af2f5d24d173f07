"""words + candidate -> start positions: where a candidate of one or more words occurs in a document."""

from __future__ import annotations

from collections.abc import Sequence


def find_occurrences(words: Sequence[str], candidate: str) -> list[int]:
    """Every position at which the candidate's words occur in a row; an empty candidate occurs nowhere.

    Words are compared as written. Occurrences may overlap: "ha ha" occurs twice in "ha ha ha".
    """
    parts = candidate.split()
    if not parts:
        return []
    starts = [position for position, word in enumerate(words) if word == parts[0]]
    return [start for start in starts if list(words[start : start + len(parts)]) == parts]
