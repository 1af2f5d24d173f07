"""One cloze question in words: the Example that every format yields and all other code consumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

GAP = "XXXXX"
"""The word that marks the gap in a question, however the source writes it (@placeholder, ____, XXXXX)."""

Sentence = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A document (sentences of words), a question with a GAP, candidates in the data's own order, the answer.

    Without `candidates` every distinct word of the document is one (see `propose_candidates`). An answer need not be
    among the candidates or in the document: it then counts as missed and is never dropped silently.
    `names` are the real names of anonymous words, for display only: no reader uses them, no store contains them.
    """

    id: str
    document: tuple[Sentence, ...]
    question: Sentence
    candidates: tuple[str, ...] = ()
    answer: str | None = None
    names: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def words(self) -> Sentence:
        """The document as one sequence of words."""
        return tuple(chain.from_iterable(self.document))

    @property
    def choices(self) -> tuple[str, ...]:
        """The given candidates or, without any, those proposed from the document."""
        return self.candidates or propose_candidates(self.document)


def propose_candidates(document: tuple[Sentence, ...]) -> tuple[str, ...]:
    """Every distinct word of the document that contains a letter or digit, in order of appearance."""
    distinct = dict.fromkeys(chain.from_iterable(document))
    return tuple(word for word in distinct if word != GAP and any(map(str.isalnum, word)))


def find_problem(example: Example) -> str | None:
    """Why this is not a valid question, or None; every format applies these rules. Words never contain white space."""
    if not any(example.document):
        return "the document is empty"
    if not example.question:
        return "the question is empty"
    if example.candidates and example.answer is not None and example.answer not in example.candidates:
        return f"the answer {example.answer!r} is not among the candidates"
    return None
