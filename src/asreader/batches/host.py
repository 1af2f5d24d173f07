"""encoded store -> Batches: padded tensors with every candidate's mentions in the document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from asreader.batches.anonymous_rows import borrowed, redrawn, strange
from asreader.data.store import Store
from asreader.data.vocabulary import PADDING_ROW, SEPARATOR_ROW, UNKNOWN, Vocabulary

Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Words:
    """Padded sequences of embedding rows; a mask is True at real words."""

    rows: Int[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    lengths: Int[Tensor, " B"]  # stays on the CPU, where packing wants it

    def to(self, device: torch.device) -> Words:
        """The same sequences on a device."""
        return Words(self.rows.to(device, non_blocking=True), self.mask.to(device, non_blocking=True), self.lengths)


@dataclass(frozen=True)
class Mentions:
    """I(w, d) of equation 2 as pairs: candidate number b * C + c is mentioned at position number b * T + t."""

    candidates: Int[Tensor, " M"]
    positions: Int[Tensor, " M"]


@dataclass(frozen=True)
class Batch:
    """Padded Examples as tensors. `answers` holds a place among the candidates, or -1."""

    document: Words
    question: Words
    readable: Bool[Tensor, "B T"]  # where attention may go: the document without a question put beside it
    candidates: Int[Tensor, "B C"]  # rows, for readers that compare vectors
    eligible: Bool[Tensor, "B C"]  # False: padding, an empty candidate, a further copy of one
    mentions: Mentions
    answers: Int[Tensor, " B"]

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device."""
        if self.readable.device == device:
            return self
        moved: dict[str, Any] = {field.name: _moved(getattr(self, field.name), device) for field in fields(self)}
        return Batch(**moved)


@dataclass(frozen=True)
class Encoded:
    """One Example in rows of a vocabulary, unpadded."""

    document: Numbers
    question: Numbers
    candidates: Numbers
    eligible: NDArray[np.bool_]
    mention_candidates: NDArray[np.intp]
    mention_positions: NDArray[np.intp]
    answer: int
    start: int  # the document proper; words before and behind it are the question's
    stop: int


class Batcher:
    """Makes Batches of a store for one vocabulary."""

    def __init__(
        self, store: Store, vocabulary: Vocabulary, *, question_at: str = "apart", anonymise: float = 0.0
    ) -> None:
        self.store = store
        self.vocabulary = vocabulary
        self.question_at = question_at
        self.anonymise = anonymise
        self._rows = vocabulary.rows(store.lexicon)

    def encoded(self, number: int, key: int | None = None) -> Encoded:
        """One Example of the store as rows, with the mentions of its candidates; with a key some are `strange`."""
        document, question = self.store.document(number), self.store.questions[number]
        candidates = self.store.candidates(number, document)
        heads = np.array([self._head(int(candidate)) for candidate in candidates], np.int32)
        words = np.concatenate([document, question, heads])
        rows = borrowed(words, self._rows[words], self.vocabulary)
        if key is not None and self.anonymise:
            rows = self._estranged(rows, words, number, candidates, key)
        document_rows, question_rows, candidate_rows = np.split(rows, [len(document), len(document) + len(question)])
        distinct, first = np.unique(candidates, return_index=True)
        eligible = np.zeros(len(candidates), np.bool_)
        eligible[first] = True
        eligible &= np.array([self.store.phrases.get(int(name)) != () for name in candidates], np.bool_)
        mentioned, positions = self._mentions(document, distinct, first)
        before, behind = beside(question_rows, self.question_at)
        place = first[distinct == self.store.answers[number]]
        return Encoded(
            document=np.concatenate([before, document_rows, behind]),
            question=question_rows,
            candidates=candidate_rows,
            eligible=eligible,
            mention_candidates=mentioned,
            mention_positions=positions + len(before),
            answer=int(place[0]) if len(place) else -1,
            start=len(before),
            stop=len(before) + len(document),
        )

    def _head(self, candidate: int) -> int:
        """The word whose vector stands for a candidate: the last one of several (a surname, a noun)."""
        words = self.store.phrases.get(candidate)
        return words[-1] if words else candidate

    def _mentions(
        self, document: Numbers, distinct: Numbers, first: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pairs (candidate, position). A position supports each candidate whose words, side by side, cover it."""
        place = np.searchsorted(distinct, document).clip(max=max(len(distinct) - 1, 0))
        hits = np.flatnonzero(distinct[place] == document) if len(distinct) else np.zeros(0, np.intp)
        mentioned, positions = [first[place[hits]]], [hits]
        for name, candidate in zip(distinct, first, strict=True):
            words = self.store.phrases.get(int(name))
            if words and len(words) <= len(document):
                windows = np.lib.stride_tricks.sliding_window_view(document, len(words))
                starts = np.flatnonzero((windows == words).all(axis=1))
                covered = np.unique(starts[:, None] + np.arange(len(words)))
                mentioned.append(np.full(len(covered), candidate, np.intp))
                positions.append(covered)
        return np.concatenate(mentioned), np.concatenate(positions)

    def batch(self, numbers: Sequence[int] | NDArray[np.integer], redraw: np.random.Generator | None = None) -> Batch:
        """A Batch of these Examples; `redraw` deals the anonymous rows anew (training only)."""
        dealt = None if redraw is None else redrawn(self.vocabulary, redraw)
        key = None if redraw is None else int(redraw.integers(1 << 31))
        examples = [self.encoded(int(number), key) for number in numbers]
        document = _padded([example.document for example in examples])
        question = _padded([example.question for example in examples])
        candidates = _padded([example.candidates for example in examples])
        if dealt is not None:
            document, question, candidates = dealt[document], dealt[question], dealt[candidates]
        width, choices = document.shape[1], candidates.shape[1]
        lengths = np.array([len(example.document) for example in examples])
        starts, stops = np.array([(example.start, example.stop) for example in examples]).T[..., None]
        column = np.arange(width)
        mask = column < lengths[:, None]
        eligible = np.zeros((len(examples), choices), np.bool_)
        for row, example in enumerate(examples):
            eligible[row, : len(example.eligible)] = example.eligible
        question_lengths = np.array([len(example.question) for example in examples])
        return Batch(
            document=_words(document, mask, lengths),
            question=_words(question, np.arange(question.shape[1]) < question_lengths[:, None], question_lengths),
            readable=torch.from_numpy((column >= starts) & (column < stops)),
            candidates=torch.from_numpy(candidates.astype(np.int64)),
            eligible=torch.from_numpy(eligible),
            mentions=_flat_mentions(examples, width, choices),
            answers=torch.from_numpy(np.array([example.answer for example in examples])),
        )

    def _estranged(self, rows: Numbers, words: Numbers, number: int, candidates: Numbers, key: int) -> Numbers:
        """Rows of an example in which some candidates are as unknown as its unknown words, and come behind them."""
        pool, read = self.vocabulary.unknown_rows, len(words) - len(candidates)
        behind = len(np.unique(words[:read][self._rows[words[:read]] == UNKNOWN]))
        rows = rows.copy()
        _, first = np.unique(candidates, return_index=True)
        for place in first[strange(key, number, first, self.anonymise)]:
            if self._rows[candidates[place]] >= self.vocabulary.entity_rows.stop:
                rows[words == candidates[place]] = pool[(behind + place) % len(pool)]
        return rows

    def by_length(self, size: int) -> Iterator[NDArray[np.intp]]:
        """All Examples in batches of like length: for evaluation, where the order does not matter."""
        order = np.argsort(self.store.lengths, kind="stable")
        for start in range(0, len(order), size):
            yield order[start : start + size]


def plan(
    lengths: NDArray[np.integer], numbers: NDArray[np.intp], *, size: int, prefetch: int, seed: int, epoch: int
) -> list[NDArray[np.intp]]:
    """The batches of one epoch, a pure function of seed and epoch, so that a resumed run meets the same ones.

    Appendix A of the paper: reshuffled every epoch; `prefetch` batches at a time are sorted by document length.
    """
    shuffled = np.random.default_rng([seed, epoch]).permutation(numbers)
    batches = []
    for start in range(0, len(shuffled), size * prefetch):
        chunk = shuffled[start : start + size * prefetch]
        chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
        batches += [chunk[place : place + size] for place in range(0, len(chunk), size)]
    return batches


def beside(question: Numbers, at: str) -> tuple[Numbers, Numbers]:
    """What the document encoder reads before and behind the document: the question and a separator, or nothing."""
    separator, nothing = np.array([SEPARATOR_ROW], np.int32), np.zeros(0, np.int32)
    before = np.concatenate([question, separator]) if at in ("before", "around") else nothing
    behind = np.concatenate([separator, question]) if at in ("after", "around") else nothing
    return before, behind


def _padded(sequences: Sequence[Numbers]) -> Numbers:
    padded = np.full((len(sequences), max(1, *map(len, sequences))), PADDING_ROW, np.int32)
    for row, sequence in enumerate(sequences):
        padded[row, : len(sequence)] = sequence
    return padded


def _words(rows: Numbers, mask: NDArray[np.bool_], lengths: NDArray[np.integer]) -> Words:
    return Words(torch.from_numpy(rows.astype(np.int64)), torch.from_numpy(mask), torch.from_numpy(lengths))


def _flat_mentions(examples: Sequence[Encoded], width: int, choices: int) -> Mentions:
    candidates = [row * choices + example.mention_candidates for row, example in enumerate(examples)]
    positions = [row * width + example.mention_positions for row, example in enumerate(examples)]
    return Mentions(torch.from_numpy(np.concatenate(candidates)), torch.from_numpy(np.concatenate(positions)))


def _moved(value: Tensor | Words | Mentions, device: torch.device) -> Tensor | Words | Mentions:
    if isinstance(value, Words):
        return value.to(device)
    if isinstance(value, Mentions):
        return Mentions(*(_moved(pairs, device) for pairs in (value.candidates, value.positions)))  # type: ignore[arg-type]
    return value.to(device, non_blocking=True)
