"""encoded store -> tensors that stay on a device -> batches of many readers, gathered there by index arithmetic alone.

The rows are those of `Batcher`; what is left to a step is to choose examples and a width. Nothing here waits for the
device: widths come from lengths that the host knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from asreader.batches.device_anonymizer import Strangers
from asreader.batches.host import Batcher
from asreader.batches.question_placement import Surroundings
from asreader.batches.unique_bound import RareWords, frequent_rows, rare_words
from asreader.data.store import NO_ANSWER, Ragged, Store
from asreader.data.vocabulary import ENTITY, FIRST_ANONYMOUS_ROW, PADDING_ROW, UNKNOWN, Vocabulary

Numbers = NDArray[np.int32]
Places = NDArray[np.int16]

NOBODY = -1
"""Where no candidate's mention stands, and the answer of an example without one."""

WIDTH_STEP = 32
"""Documents are padded to a multiple of this, so that few shapes occur."""

WORDS_STEP = 256
"""The room for distinct words is a multiple of this."""

LINES_STEP = 256
"""And that for the words of questions."""

_CHUNK = 4096  # examples encoded at a time: bounds the memory of building


class Unfit(Exception):
    """A store that cannot be held this way; the message says why."""


@dataclass(frozen=True)
class Widths:
    """How wide a batch is padded."""

    document: int
    question: int
    words: int  # room for the distinct ones
    lines: int  # room for the words of questions, and one more


@dataclass(frozen=True)
class FlatWords:
    """Sequences of embedding rows end to end."""

    rows: Int[Tensor, " words"]
    starts: Int[Tensor, " examples"]
    lengths: Int[Tensor, " examples"]


@dataclass(frozen=True)
class ReadersBatch:
    """One batch for each of N readers."""

    document: Int[Tensor, "N B T"]
    document_lengths: Int[Tensor, "N B"]
    question: Int[Tensor, "N B Q"]
    question_lengths: Int[Tensor, "N B"]
    candidate_at: Int[Tensor, "N B T"]  # whose mention stands there, or NOBODY
    answers: Int[Tensor, "N B"]
    counted: Bool[Tensor, "N B"]  # False: a place that a short batch leaves empty, an answer without support
    proper: Bool[Tensor, "N B T"] | None = None  # where the document itself stands; None: up to its length

    @cached_property
    def readable(self) -> Bool[Tensor, "N B T"]:
        """Where attention may go."""
        if self.proper is not None:
            return self.proper
        column = torch.arange(self.document.shape[-1], device=self.document.device)
        return column < self.document_lengths[..., None]

    @cached_property
    def answer_at(self) -> Bool[Tensor, "N B T"]:
        """The positions that support the answer; every readable one where the example does not count.

        So no sum is empty: an infinite loss times a weight of zero would still not be a number.
        """
        return torch.where(self.counted[..., None], self.candidate_at == self.answers[..., None], self.readable)

    @cached_property
    def shares(self) -> Float[Tensor, " N"]:
        """What an example that counts has of its reader's loss, which is the mean of those."""
        return 1 / self.counted.sum(dim=1).clamp(min=1).float()


@dataclass(frozen=True)
class Resident:
    """A whole encoded data set on a device. `anonymous` rows, behind the fixed ones, are those that may be redrawn."""

    documents: FlatWords
    questions: FlatWords
    candidate_at: Int[Tensor, " words"]
    answers: Int[Tensor, " examples"]
    supported: Bool[Tensor, " examples"]  # the answer is a candidate that stands in the document
    document_lengths: NDArray[np.integer]  # of all that is read, on the host, where widths are chosen
    question_lengths: NDArray[np.integer]
    rare: RareWords  # on the host, the distinct rows of each example that are not among the `frequent` ones
    frequent: int
    anonymous: int
    choices: int  # the largest number of candidates
    strangers: Strangers | None = None
    beside: Surroundings | None = None

    def widths(self, numbers: NDArray[np.integer]) -> Widths:
        """Room for these examples, one batch in each row: few different widths, for each costs a captured graph.

        Of distinct words only the rare ones are counted: nearly all of the frequent ones are in every batch.
        """
        batches = np.atleast_2d(numbers)
        longest, asked = (int(lengths[batches].max()) for lengths in (self.document_lengths, self.question_lengths))
        question = max(WIDTH_STEP, 1 << (asked - 1).bit_length())
        words = self.frequent + int(self.rare.different(batches).max())
        lines = int(self.question_lengths[batches].sum(axis=1).max()) + 1
        return Widths(
            -(-longest // WIDTH_STEP) * WIDTH_STEP,
            question,
            -(-words // WORDS_STEP) * WORDS_STEP,
            -(-lines // LINES_STEP) * LINES_STEP,
        )

    def batch(
        self,
        numbers: Int[Tensor, "N B"],
        sizes: Int[Tensor, " N"],
        widths: Widths,
        dealt: Int[Tensor, "N anonymous"] | None = None,
        keys: Int[Tensor, " N"] | None = None,
    ) -> ReadersBatch:
        """Gather examples; only the first `sizes` of each reader count. `dealt` are the anonymous rows dealt anew.

        With keys some candidates are strange, if the data was held to make them so.
        """
        numbers = numbers.long()
        lengths, asked = self.documents.lengths[numbers], self.questions.lengths[numbers]
        place, real = _places(self.documents.starts[numbers], lengths, widths.document, len(self.documents.rows))
        asked_place, asked_real = _places(
            self.questions.starts[numbers], asked, widths.question, len(self.questions.rows)
        )
        document = torch.where(real, self.documents.rows[place], PADDING_ROW)
        question = torch.where(asked_real, self.questions.rows[asked_place], PADDING_ROW)
        candidate_at = torch.where(real, self.candidate_at[place], NOBODY)
        if keys is not None and self.strangers is not None:
            drawn = self.strangers.rows(numbers, keys, self.choices)
            document = self.strangers.met(document, candidate_at, drawn)
            question = self.strangers.met(question, self.strangers.asked_at[asked_place], drawn)
        if dealt is not None:
            document, question = (_dealt_anew(rows, dealt) for rows in (document, question))
        proper, read = None, lengths
        if self.beside is not None:
            document = self.beside.rows(document, question, lengths, asked)
            place, proper = self.beside.place(lengths, asked, widths.document)
            candidate_at = torch.where(proper, candidate_at.gather(2, place), NOBODY)
            read = lengths + self.beside.added(asked)
        present = torch.arange(numbers.shape[1], device=numbers.device) < sizes[:, None]
        return ReadersBatch(
            document=document,
            document_lengths=read,
            question=question,
            question_lengths=asked,
            candidate_at=candidate_at,
            answers=self.answers[numbers],
            counted=present & self.supported[numbers],
            proper=proper,
        )


def resident(
    store: Store,
    vocabulary: Vocabulary,
    *,
    device: torch.device,
    question_at: str = "apart",
    anonymise: float = 0.0,
) -> Resident:
    """Encode a whole store once and put it on a device; raises Unfit where a batch depends on more than its examples'
    numbers, or where one candidate for each position is not enough."""
    beside = None if question_at == "apart" else Surroundings.of(question_at)
    if anonymise and len(store.columns["phrases"]):
        raise Unfit("data.anonymise with candidates of several words")
    lengths, asked = np.asarray(store.lengths, np.int64), np.diff(store.questions.ends, prepend=0)
    columns = _encoded(store, vocabulary, lengths, asked)
    documents, questions = columns.documents, columns.questions
    frequent = frequent_rows(documents, questions, vocabulary)
    return Resident(
        documents=_flat(documents, lengths, device),
        questions=_flat(questions, asked, device),
        candidate_at=torch.from_numpy(columns.at).to(device),
        answers=torch.from_numpy(columns.answers).to(device),
        supported=torch.from_numpy(columns.supported).to(device),
        document_lengths=lengths if beside is None else lengths + beside.added(asked),
        question_lengths=asked,
        rare=rare_words(documents, lengths, questions, asked, frequent),
        frequent=int(frequent.sum()),
        anonymous=vocabulary.unknown + vocabulary.entities,
        choices=columns.choices,
        strangers=_strangers(anonymise, vocabulary, columns, device) if anonymise else None,
        beside=beside,
    )


@dataclass(frozen=True)
class _Columns:
    """All examples, end to end."""

    documents: Numbers
    questions: Numbers
    at: Places
    asked_at: Places
    answers: Places
    supported: NDArray[np.bool_]
    unknown: NDArray[np.integer]
    choices: int


def _encoded(
    store: Store, vocabulary: Vocabulary, lengths: NDArray[np.integer], asked: NDArray[np.integer]
) -> _Columns:
    documents, questions = np.empty(lengths.sum(), np.int32), np.empty(asked.sum(), np.int32)
    at, asked_at = np.empty(len(documents), np.int16), np.empty(len(questions), np.int16)
    answers, supported = np.empty(len(store), np.int16), np.empty(len(store), np.bool_)
    unknown = np.zeros(len(store), np.int64)
    starts, asked_starts = np.cumsum(lengths) - lengths, np.cumsum(asked) - asked
    table, finder = vocabulary.rows(store.lexicon), _MentionFinder(store, vocabulary)
    for first in range(0, len(store), _CHUNK):
        chunk = slice(first, min(first + _CHUNK, len(store)))
        words, asking = _document_words(store, chunk), _stretch(store.questions, chunk)
        begin, asked_begin = starts[first], asked_starts[first]
        examples = (np.repeat(np.arange(chunk.stop - first), counts[chunk]) for counts in (lengths, asked))
        rows, unknown[chunk] = _borrowed(
            np.concatenate([words, asking]), np.concatenate([*examples]), table, vocabulary, chunk.stop - first
        )
        documents[begin : begin + len(words)] = rows[: len(words)]
        questions[asked_begin : asked_begin + len(asking)] = rows[len(words) :]
        for number in range(first, chunk.stop):
            here = slice(starts[number], starts[number] + lengths[number])
            asked_here = slice(asked_starts[number], asked_starts[number] + asked[number])
            document = words[here.start - begin : here.stop - begin]
            question = asking[asked_here.start - asked_begin : asked_here.stop - asked_begin]
            at[here], asked_at[asked_here], answers[number] = finder.find(number, document, question)
            supported[number] = answers[number] != NOBODY and (at[here] == answers[number]).any()
    return _Columns(documents, questions, at, asked_at, answers, supported, unknown, finder.choices)


def _strangers(share: float, vocabulary: Vocabulary, columns: _Columns, device: torch.device) -> Strangers:
    behind, asked = (torch.from_numpy(column).to(device) for column in (columns.unknown, columns.asked_at))
    return Strangers(share, vocabulary.unknown, vocabulary.entity_rows.stop, behind, asked)


def dealt(vocabulary: Vocabulary, generator: np.random.Generator) -> Numbers:
    """The part of `entities.redrawn` that says something: where each anonymous row goes, from the same draws."""
    pools = (vocabulary.unknown_rows, vocabulary.entity_rows)
    return np.concatenate(
        [generator.permutation(np.arange(pool.start, pool.stop, dtype=np.int32)) for pool in pools if len(pool)]
    )


class _MentionFinder:
    """Which candidate each word of a document mentions."""

    def __init__(self, store: Store, vocabulary: Vocabulary) -> None:
        self._store = store
        self._batcher = Batcher(store, vocabulary)
        self._place = np.full(len(store.lexicon), NOBODY, np.int16)  # of each word among the candidates of one example
        self._is_phrase = np.zeros(len(store.lexicon), np.bool_)
        self._is_phrase[store.columns["phrases"]] = True
        self.choices = 1

    def find(self, number: int, document: Numbers, question: Numbers) -> tuple[Places, Places, int]:
        """For each position of an example's document and question the place of its candidate, and the answer's."""
        candidates = self._store.candidates(number, document)
        if len(candidates) > np.iinfo(np.int16).max:
            raise Unfit(f"{self._store.ids[number]} has {len(candidates):,} candidates")
        self.choices = max(self.choices, len(candidates))
        if self._is_phrase[candidates].any():
            places, found = self._with_phrases(number, document)
            return places, np.full(len(question), NOBODY, np.int16), found
        # Written backwards, the first of several equal candidates is the one that stays.
        self._place[candidates[::-1]] = np.arange(len(candidates) - 1, -1, -1, dtype=np.int16)
        places, asked, answer = self._place[document], self._place[question], int(self._store.answers[number])
        found = NOBODY if answer == NO_ANSWER else int(self._place[answer])
        self._place[candidates] = NOBODY
        return places, asked, found

    def _with_phrases(self, number: int, document: Numbers) -> tuple[Places, int]:
        encoded = self._batcher.encoded(number)
        positions = encoded.mention_positions
        if len(np.unique(positions)) < len(positions):
            raise Unfit(f"in {self._store.ids[number]} one word is part of several candidates")
        places = np.full(len(document), NOBODY, np.int16)
        places[positions] = encoded.mention_candidates
        return places, encoded.answer


def _document_words(store: Store, chunk: slice) -> Numbers:
    """The words of a chunk's documents, end to end."""
    sentences, ends = _stretch(store.documents, chunk), store.sentences.ends
    lengths = np.diff(ends, prepend=0)[sentences]
    before = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) + np.repeat(ends[sentences] - lengths - before, lengths)
    words: Numbers = store.sentences.values[places]
    return words


def _stretch(ragged: Ragged, chunk: slice) -> Numbers:
    return ragged.values[ragged.ends[chunk.start - 1] if chunk.start else 0 : ragged.ends[chunk.stop - 1]]


def _borrowed(
    words: Numbers, examples: NDArray[np.integer], table: Numbers, vocabulary: Vocabulary, count: int
) -> tuple[Numbers, NDArray[np.integer]]:
    """Rows of many examples' words, all documents and then all questions: `entities.borrowed` for all at once.

    With them the number of unknown words that each example has."""
    rows: Numbers = table[words]
    distinct = {UNKNOWN: np.zeros(count, np.int64)}
    for stand_in, pool in ((UNKNOWN, vocabulary.unknown_rows), (ENTITY, vocabulary.entity_rows)):
        places = np.flatnonzero(rows == stand_in)
        if not len(places):
            continue
        places = places[np.argsort(examples[places], kind="stable")]  # reading order within each example
        whose = examples[places]
        _, first, which = np.unique(whose * len(table) + words[places], return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))  # over all examples, which come one after the other
        own = distinct[stand_in] = np.bincount(whose[first], minlength=count)
        rank -= (np.cumsum(own) - own)[whose[first]]
        rows[places] = pool.start + rank[which] % len(pool)
    return rows, distinct[UNKNOWN]


def _flat(rows: Numbers, lengths: NDArray[np.integer], device: torch.device) -> FlatWords:
    # A mask may look at one word even where there are none.
    held = rows if len(rows) else np.zeros(1, np.int32)
    starts, short = np.cumsum(lengths) - lengths, lengths.astype(np.int32)
    return FlatWords(*(torch.from_numpy(column).to(device) for column in (held, starts, short)))


def _places(
    starts: Int[Tensor, "N B"], lengths: Int[Tensor, "N B"], width: int, total: int
) -> tuple[Int[Tensor, "N B width"], Bool[Tensor, "N B width"]]:
    column = torch.arange(width, device=starts.device)
    return (starts[..., None] + column).clamp(max=total - 1), column < lengths[..., None]


def _dealt_anew(rows: Int[Tensor, "N B T"], dealt: Int[Tensor, "N anonymous"]) -> Int[Tensor, "N B T"]:
    number = rows - FIRST_ANONYMOUS_ROW
    anonymous = (number >= 0) & (number < dealt.shape[1])
    chosen = dealt.gather(1, number.clamp(0, dealt.shape[1] - 1).flatten(1).long())
    return torch.where(anonymous, chosen.view_as(rows), rows)
