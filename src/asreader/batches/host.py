"""encoded store -> Batches on the host, padded to the longest example. This is the definition of a Batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from asreader.batches.anonymous_rows import IntArray, assign_anonymous_rows, draw_anonymized
from asreader.batches.batch import NO_ANSWER_INDEX, NO_CANDIDATE, Batch, Words
from asreader.batches.plan import StepPlan
from asreader.batches.question_placement import place_question
from asreader.data.store import Store
from asreader.data.vocabulary import FIRST_ANONYMOUS_ROW, PADDING_ROW, UNKNOWN, Vocabulary


@dataclass(frozen=True)
class EncodedExample:
    """One Example in rows of a vocabulary, unpadded."""

    document: IntArray
    question: IntArray
    candidates: IntArray
    eligible: NDArray[np.bool_]
    mention_candidates: NDArray[np.intp]
    mention_positions: NDArray[np.intp]
    answer: int
    start: int  # of the document itself; words before and behind it belong to the question
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

    def encode_example(self, number: int, key: int | None = None) -> EncodedExample:
        """One Example of the store, with the mentions of its candidates; with a key some are anonymized."""
        document, question = self.store.document(number), self.store.questions[number]
        candidates = self.store.candidates(number, document)
        heads = np.array([self.find_head(int(candidate)) for candidate in candidates], np.int32)
        words = np.concatenate([document, question, heads])
        rows = assign_anonymous_rows(words, self._rows[words], self.vocabulary)
        if key is not None and self.anonymise:
            rows = self._anonymize_candidates(rows, words, number, candidates, key)
        document_rows, question_rows, candidate_rows = np.split(rows, [len(document), len(document) + len(question)])
        unique, first = np.unique(candidates, return_index=True)
        eligible = np.zeros(len(candidates), np.bool_)
        eligible[first] = True
        eligible &= np.array([self.store.phrases.get(int(name)) != () for name in candidates], np.bool_)
        mentioned, positions = self._find_mentions(document, unique, first)
        before, behind = place_question(question_rows, self.question_at)
        answer = first[unique == self.store.answers[number]]
        return EncodedExample(
            document=np.concatenate([before, document_rows, behind]),
            question=question_rows,
            candidates=candidate_rows,
            eligible=eligible,
            mention_candidates=mentioned,
            mention_positions=positions + len(before),
            answer=int(answer[0]) if len(answer) else NO_ANSWER_INDEX,
            start=len(before),
            stop=len(before) + len(document),
        )

    def find_head(self, candidate: int) -> int:
        """The word whose vector stands for a candidate: the last one of several (a surname, a noun)."""
        words = self.store.phrases.get(candidate)
        return words[-1] if words else candidate

    def _find_mentions(
        self, document: IntArray, unique: IntArray, first: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pairs (candidate, position). A position mentions each candidate whose words, side by side, cover it."""
        match = np.searchsorted(unique, document).clip(max=max(len(unique) - 1, 0))
        hits = np.flatnonzero(unique[match] == document) if len(unique) else np.zeros(0, np.intp)
        mentioned, positions = [first[match[hits]]], [hits]
        for name, candidate in zip(unique, first, strict=True):
            words = self.store.phrases.get(int(name))
            if words and len(words) <= len(document):
                windows = np.lib.stride_tricks.sliding_window_view(document, len(words))
                starts = np.flatnonzero((windows == words).all(axis=1))
                covered = np.unique(starts[:, None] + np.arange(len(words)))
                mentioned.append(np.full(len(covered), candidate, np.intp))
                positions.append(covered)
        return np.concatenate(mentioned), np.concatenate(positions)

    def _anonymize_candidates(
        self, rows: IntArray, words: IntArray, number: int, candidates: IntArray, key: int
    ) -> IntArray:
        """Rows of an example in which some candidates are unknown words, numbered behind those that it has anyway."""
        pool, read = self.vocabulary.unknown_rows, len(words) - len(candidates)
        unknown_count = len(np.unique(words[:read][self._rows[words[:read]] == UNKNOWN]))
        rows = rows.copy()
        _, first = np.unique(candidates, return_index=True)
        for index in first[draw_anonymized(key, number, first, self.anonymise)]:
            if self._rows[candidates[index]] >= self.vocabulary.entity_rows.stop:
                rows[words == candidates[index]] = pool[(unknown_count + index) % len(pool)]
        return rows

    def make_batch(self, numbers: Sequence[int] | NDArray[np.integer], plan: StepPlan | None = None) -> Batch:
        """A Batch of these Examples; with a plan, as training sees them: anonymous rows shuffled."""
        examples = [self.encode_example(int(number), plan.key if plan else None) for number in numbers]
        document = _pad([example.document for example in examples], PADDING_ROW)
        question = _pad([example.question for example in examples], PADDING_ROW)
        candidates = _pad([example.candidates for example in examples], PADDING_ROW)
        if plan is not None:
            table = np.arange(self.vocabulary.size, dtype=np.int32)
            table[FIRST_ANONYMOUS_ROW : FIRST_ANONYMOUS_ROW + len(plan.shuffled_rows)] = plan.shuffled_rows
            document, question, candidates = table[document], table[question], table[candidates]
        column = np.arange(document.shape[1])
        starts, stops = np.array([(example.start, example.stop) for example in examples]).T[..., None]
        return Batch(
            document=_words(document, [len(example.document) for example in examples]),
            question=_words(question, [len(example.question) for example in examples]),
            in_document=torch.from_numpy((column >= starts) & (column < stops)),
            candidates=torch.from_numpy(candidates.astype(np.int64)),
            eligible=torch.from_numpy(_pad([example.eligible for example in examples], False)),
            candidate_at=torch.from_numpy(_place_mentions(examples, document.shape[1])),
            answers=torch.tensor([example.answer for example in examples]),
        )

    def group_by_length(self, size: int) -> Iterator[NDArray[np.intp]]:
        """All Examples in batches of like length: for evaluation, where the order does not matter."""
        order = np.argsort(self.store.lengths, kind="stable")
        for start in range(0, len(order), size):
            yield order[start : start + size]


def _pad(sequences: Sequence[NDArray[np.generic]], value: object) -> NDArray[np.generic]:
    padded = np.full((len(sequences), max(1, *map(len, sequences))), value, sequences[0].dtype)
    for row, sequence in enumerate(sequences):
        padded[row, : len(sequence)] = sequence
    return padded


def _words(rows: NDArray[np.generic], lengths: list[int]) -> Words:
    return Words(torch.from_numpy(rows.astype(np.int64)), torch.tensor(lengths))


def _place_mentions(examples: Sequence[EncodedExample], width: int) -> NDArray[np.int64]:
    """candidate_at: a position of most documents mentions one candidate at most."""
    layers = [np.full((len(examples), width), NO_CANDIDATE, np.int64)]
    for row, example in enumerate(examples):
        candidates, positions, depth = example.mention_candidates, example.mention_positions, 0
        while len(positions):
            if depth == len(layers):
                layers.append(np.full((len(examples), width), NO_CANDIDATE, np.int64))
            _, first = np.unique(positions, return_index=True)
            layers[depth][row, positions[first]] = candidates[first]
            candidates, positions, depth = np.delete(candidates, first), np.delete(positions, first), depth + 1
    return np.stack(layers, axis=-1)
