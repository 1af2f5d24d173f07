"""Examples -> encoded store: every distinct sentence once, memory-mapped, checked on opening.

Each store has its own lexicon, which contains every word: a lexicon number *is* the identity of a word, so two unknown
words never merge, and one store serves every vocabulary setting. A document is a list of sentence numbers: in the
overlapping windows of a book a repeated sentence costs four bytes.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from asreader.data.example import GAP, Example, Sentence
from asreader.data.occurrences import find_occurrences
from asreader.errors import InputError

VERSION = 1
NO_ANSWER = -1
_INDEX = "store.json"
_TYPES: dict[str, np.dtype[np.integer]] = {"b": np.dtype("<i1"), "i": np.dtype("<i4"), "q": np.dtype("<i8")}
_COLUMNS: dict[str, Literal["b", "i", "q"]] = {
    "sentences": "i",  # words of the distinct sentences, concatenated
    "sentence_ends": "q",
    "documents": "i",  # sentence numbers of each document
    "document_ends": "q",
    "document_lengths": "i",
    "questions": "i",
    "question_ends": "q",
    "candidates": "i",  # empty = every word of the document
    "candidate_ends": "q",
    "answers": "i",
    "answerable": "b",  # the answer is in the document, so a reader can point at it
    "phrases": "i",  # lexicon numbers of candidates that are not exactly one word, and their words
    "phrase_words": "i",
    "phrase_ends": "q",
}


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths in one flat array."""

    values: NDArray[np.int32]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        return self.values[self.ends[row - 1] if row else 0 : self.ends[row]]


@dataclass(frozen=True)
class Store:
    """Encoded Examples. All numbers are lexicon numbers: indices into `lexicon`."""

    lexicon: tuple[str, ...]
    ids: tuple[str, ...]
    columns: dict[str, NDArray[np.integer]]

    def __len__(self) -> int:
        return len(self.ids)

    def _ragged(self, values: str, ends: str) -> Ragged:
        return Ragged(self.columns[values], self.columns[ends])  # type: ignore[arg-type]

    @cached_property
    def sentences(self) -> Ragged:
        """The distinct sentences."""
        return self._ragged("sentences", "sentence_ends")

    @cached_property
    def documents(self) -> Ragged:
        """Sentence numbers of each document."""
        return self._ragged("documents", "document_ends")

    @cached_property
    def questions(self) -> Ragged:
        """Words of each question."""
        return self._ragged("questions", "question_ends")

    @cached_property
    def given_candidates(self) -> Ragged:
        """Candidates of the data; empty where they are proposed from the document."""
        return self._ragged("candidates", "candidate_ends")

    @cached_property
    def phrases(self) -> dict[int, tuple[int, ...]]:
        """Words of each candidate that is not exactly one word (zero or several), by its lexicon number."""
        parts = self._ragged("phrase_words", "phrase_ends")
        return {int(number): tuple(map(int, parts[row])) for row, number in enumerate(self.columns["phrases"])}

    @cached_property
    def proposable(self) -> NDArray[np.bool_]:
        """Which words may be proposed as candidates (see `example.propose_candidates`)."""
        return np.array([word != GAP and any(map(str.isalnum, word)) for word in self.lexicon], np.bool_)

    @property
    def lengths(self) -> NDArray[np.integer]:
        """Number of words of each document."""
        return self.columns["document_lengths"]

    @property
    def answers(self) -> NDArray[np.integer]:
        """The right answer of each question, or NO_ANSWER."""
        return self.columns["answers"]

    @property
    def answerable(self) -> NDArray[np.integer]:
        """1 where the answer is in the document."""
        return self.columns["answerable"]

    def document(self, example: int) -> NDArray[np.int32]:
        """The words of a document."""
        return np.concatenate([self.sentences[number] for number in self.documents[example]])

    def candidates(self, example: int, document: NDArray[np.int32]) -> NDArray[np.int32]:
        """The given candidates or, without any, each distinct word of the document in order of appearance."""
        given = self.given_candidates[example]
        if len(given):
            return given
        distinct, first = np.unique(document, return_index=True)
        return document[np.sort(first[self.proposable[distinct]])]

    def decode_example(self, number: int) -> Example:
        """An Example in words."""
        word = self.lexicon.__getitem__
        answer = int(self.answers[number])
        return Example(
            id=self.ids[number],
            document=tuple(tuple(map(word, self.sentences[sentence])) for sentence in self.documents[number]),
            question=tuple(map(word, self.questions[number])),
            candidates=tuple(map(word, self.given_candidates[number])),
            answer=None if answer == NO_ANSWER else word(answer),
        )

    def count_words(self) -> dict[str, int]:
        """How often each word was written: the maximum of its counts in distinct sentences and in questions.

        In windows over a book a sentence is in twenty documents and in a question; its words were written once.
        """
        size = len(self.lexicon)
        in_sentences = np.bincount(self.columns["sentences"], minlength=size)
        in_questions = np.bincount(self.columns["questions"], minlength=size)
        counts = np.maximum(in_sentences, in_questions)
        return {word: int(count) for word, count in zip(self.lexicon, counts, strict=True) if count}


class Encoder:
    """Collects Examples as columns, in memory or (for `asreader prepare`) in files of a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._columns = {name: array(kind) for name, kind in _COLUMNS.items()}
        self._files = {name: (folder / name).open("wb") for name in _COLUMNS} if folder else {}
        self._written = dict.fromkeys(_COLUMNS, 0)
        self._lexicon: defaultdict[str, int] = defaultdict()
        self._lexicon.default_factory = self._lexicon.__len__  # a new word gets the next number
        self._sentences: dict[Sentence, int] = {}
        self._phrases: set[str] = set()
        self._ids: list[str] = []

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, example: Example) -> None:
        """Append one Example."""
        column, number = self._columns, self._lexicon.__getitem__
        for sentence in filter(None, example.document):
            index = self._sentences.get(sentence)
            if index is None:
                index = self._sentences[sentence] = len(self._sentences)
                self._append_row("sentences", "sentence_ends", map(number, sentence))
            column["documents"].append(index)
        self._append_end("documents", "document_ends")
        column["document_lengths"].append(sum(map(len, example.document)))
        self._append_row("questions", "question_ends", map(number, example.question))
        self._append_row("candidates", "candidate_ends", map(self._number_candidate, example.candidates))
        column["answers"].append(NO_ANSWER if example.answer is None else self._number_candidate(example.answer))
        column["answerable"].append(_is_answerable(example))
        self._ids.append(example.id)
        if self._folder and not len(self._ids) % 4096:
            self._flush()

    def _append_row(self, values: str, ends: str, row: Iterable[int]) -> None:
        self._columns[values].extend(row)
        self._append_end(values, ends)

    def _append_end(self, values: str, ends: str) -> None:
        self._columns[ends].append(self._written[values] + len(self._columns[values]))

    def _number_candidate(self, candidate: str) -> int:
        """The lexicon number of a candidate; one that is not a single word also becomes a phrase."""
        parts = candidate.split()
        if parts != [candidate] and candidate not in self._phrases:
            self._phrases.add(candidate)
            self._columns["phrases"].append(self._lexicon[candidate])
            self._append_row("phrase_words", "phrase_ends", map(self._lexicon.__getitem__, parts))
        return self._lexicon[candidate]

    def _flush(self) -> None:
        for name, column in self._columns.items():
            self._written[name] += len(column)
            column.tofile(self._files[name])
            del column[:]

    def build_store(self) -> Store:
        """The collected Examples as a store in memory."""
        columns = {name: np.array(column, _TYPES[_COLUMNS[name]]) for name, column in self._columns.items()}
        return Store(tuple(self._lexicon), tuple(self._ids), columns)

    def close(self, about: str) -> None:
        """Finish the folder: write the texts, then the index with the hashes that `open_store` checks."""
        assert self._folder
        self._flush()
        for file in self._files.values():
            file.close()
        for name, lines in (("words.txt", self._lexicon), ("ids.txt", self._ids)):
            (self._folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        hashes = {name: _hash_file(self._folder / name) for name in sorted((*_COLUMNS, "words.txt", "ids.txt"))}
        index = {"format": "asreader store", "version": VERSION, "about": about, "questions": len(self._ids)}
        (self._folder / _INDEX).write_text(json.dumps(index | {"sha256": hashes}, indent=1) + "\n", encoding="utf-8")


def encode_examples(examples: Iterable[Example]) -> Store:
    """Encode Examples in memory."""
    encoder = Encoder()
    for example in examples:
        encoder.add(example)
    return encoder.build_store()


def is_store(path: Path) -> bool:
    """Whether this folder holds an encoded store."""
    return (path / _INDEX).is_file()


def open_store(path: Path) -> Store:
    """Memory-map a store, shared with every other process that opens it; a damaged store is refused."""
    try:
        index = json.loads((path / _INDEX).read_text(encoding="utf-8"))
        version, hashes = index["version"], dict(index["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not an encoded store; make one with `asreader prepare`") from None
    if version != VERSION:
        raise InputError(
            f"{path}: store version {version}, this asreader reads {VERSION}; run `asreader prepare` again"
        )
    for name in (*_COLUMNS, "words.txt", "ids.txt"):
        if not (path / name).is_file() or _hash_file(path / name) != hashes.get(name):
            raise InputError(f"{path / name}: damaged or missing; run `asreader prepare` again")
    lexicon, ids = (_read_lines(path / name) for name in ("words.txt", "ids.txt"))
    return Store(lexicon, ids, {name: _map_column(path / name, _TYPES[kind]) for name, kind in _COLUMNS.items()})


def _map_column(path: Path, kind: np.dtype[np.integer]) -> NDArray[np.integer]:
    # An empty file cannot be mapped; a plain view is sliced several times faster than a memmap object.
    return np.memmap(path, kind, mode="r").view(np.ndarray) if path.stat().st_size else np.zeros(0, kind)


def _read_lines(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8").split("\n")[:-1])


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_answerable(example: Example) -> bool:
    """Whether the answer is in the document."""
    answer = example.answer
    if answer is None:
        return False
    if len(answer.split()) == 1:
        return any(answer in sentence for sentence in example.document)
    return bool(find_occurrences(example.words, answer))
