"""encoded store -> data set on a device -> Batches of N readers, gathered there by index arithmetic alone.

The batches are those of `Batcher`. Nothing here waits for the device: shapes come from lengths that the host knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from asreader.batches.anonymous_rows import IntArray
from asreader.batches.batch import NO_ANSWER_INDEX, NO_CANDIDATE, Batch, Words
from asreader.batches.device_anonymizer import CandidateAnonymizer
from asreader.batches.host import Batcher
from asreader.batches.question_placement import QuestionPlacement
from asreader.batches.unique_bound import RareRows, find_frequent_rows, find_rare_rows
from asreader.data.store import NO_ANSWER, Ragged, Store
from asreader.data.vocabulary import ENTITY, FIRST_ANONYMOUS_ROW, PADDING_ROW, UNKNOWN, Vocabulary

ShortArray = NDArray[np.int16]

WIDTH_STEP = 32
"""Documents are padded to a multiple of this, so that few shapes occur."""

UNIQUE_STEP = 256
"""The bound on unique rows is a multiple of this, and so is that on the words of questions."""

_CHUNK = 4096  # examples encoded at a time: bounds the memory of building


class Unsupported(Exception):
    """A store that cannot be held this way; the message says why."""


@dataclass(frozen=True)
class BatchShape:
    """Static sizes of a batch; each combination costs a captured CUDA graph, so they are rounded up."""

    document: int
    question: int
    unique: int  # bound on unique rows
    tokens: int  # bound on the words of all questions, and one more


@dataclass(frozen=True)
class FlatRows:
    """Sequences of embedding rows end to end."""

    rows: Int[Tensor, " words"]
    starts: Int[Tensor, " examples"]
    lengths: Int[Tensor, " examples"]

    def gather(self, examples: Int[Tensor, "N B"], width: int) -> tuple[Int[Tensor, "N B T"], Bool[Tensor, "N B T"]]:
        """Indices of the words of some sequences in `rows`, and where there are words."""
        column = torch.arange(width, device=examples.device)
        index = (self.starts[examples][..., None] + column).clamp(max=len(self.rows) - 1)
        return index, column < self.lengths[examples][..., None]


@dataclass(frozen=True)
class DeviceDataset:
    """A whole encoded data set on a device."""

    documents: FlatRows
    questions: FlatRows
    candidates: FlatRows
    eligible: Bool[Tensor, " candidates"]
    candidate_at: Int[Tensor, " words"]
    answers: Int[Tensor, " examples"]
    supported: Bool[Tensor, " examples"]  # the answer is a candidate that is mentioned in the document
    document_lengths: NDArray[np.integer]  # of all that the document encoder reads; on the host, which chooses shapes
    question_lengths: NDArray[np.integer]
    rare: RareRows  # on the host: the distinct rows of each example that are not among the `frequent` ones
    frequent: int
    anonymous: int  # rows behind the fixed ones that may be shuffled
    candidate_count: int  # the largest number of candidates
    anonymizer: CandidateAnonymizer | None = None
    placement: QuestionPlacement | None = None

    def choose_shape(self, numbers: NDArray[np.integer]) -> BatchShape:
        """Sizes that hold these examples, one batch in each row."""
        batches = np.atleast_2d(numbers)
        longest, asked = (int(lengths[batches].max()) for lengths in (self.document_lengths, self.question_lengths))
        unique = self.frequent + int(self.rare.count_unique(batches).max())
        tokens = int(self.question_lengths[batches].sum(axis=1).max()) + 1
        return BatchShape(
            _round_up(longest, WIDTH_STEP),
            max(WIDTH_STEP, 1 << (asked - 1).bit_length()),
            _round_up(unique, UNIQUE_STEP),
            _round_up(tokens, UNIQUE_STEP),
        )

    def make_batch(
        self,
        numbers: Int[Tensor, "N B"],
        shape: BatchShape,
        shuffled_rows: Int[Tensor, "N anonymous"] | None = None,
        keys: Int[Tensor, " N"] | None = None,
    ) -> Batch:
        """Gather examples; with shuffled rows and keys, as training sees them."""
        numbers = numbers.long()
        lengths, asked = self.documents.lengths[numbers], self.questions.lengths[numbers]
        index, is_word = self.documents.gather(numbers, shape.document)
        question_index, is_question = self.questions.gather(numbers, shape.question)
        candidate_index, is_candidate = self.candidates.gather(numbers, self.candidate_count)
        document = torch.where(is_word, self.documents.rows[index], PADDING_ROW)
        question = torch.where(is_question, self.questions.rows[question_index], PADDING_ROW)
        candidates = torch.where(is_candidate, self.candidates.rows[candidate_index], PADDING_ROW)
        candidate_at = torch.where(is_word, self.candidate_at[index], NO_CANDIDATE)
        if keys is not None and self.anonymizer is not None:
            drawn = self.anonymizer.draw_rows(numbers, keys, self.candidate_count)
            document = self.anonymizer.replace_rows(document, candidate_at, drawn)
            question_candidate_at = self.anonymizer.question_candidate_at[question_index]
            question = self.anonymizer.replace_rows(question, question_candidate_at, drawn)
            own = torch.arange(self.candidate_count, device=numbers.device).expand(candidates.shape)
            candidates = self.anonymizer.replace_rows(candidates, own, drawn)
        if shuffled_rows is not None:
            document, question, candidates = (
                _shuffle(rows, shuffled_rows) for rows in (document, question, candidates)
            )
        in_document, read = is_word, lengths
        if self.placement is not None:
            document = self.placement.place_rows(document, question, lengths, asked)
            position, in_document = self.placement.map_positions(lengths, asked, shape.document)
            candidate_at = torch.where(in_document, candidate_at.gather(2, position), NO_CANDIDATE)
            read = lengths + self.placement.added_words(asked)
        return Batch(
            document=Words(document, read),
            question=Words(question, asked),
            in_document=in_document,
            candidates=candidates,
            eligible=is_candidate & self.eligible[candidate_index],
            candidate_at=candidate_at[..., None],
            answers=self.answers[numbers],
        )


def load_on_device(
    store: Store,
    vocabulary: Vocabulary,
    *,
    device: torch.device,
    question_at: str = "apart",
    anonymise: float = 0.0,
) -> DeviceDataset:
    """Encode a whole store once and put it on a device; raises Unsupported if a position mentions two candidates."""
    placement = None if question_at == "apart" else QuestionPlacement.from_setting(question_at)
    if anonymise and len(store.columns["phrases"]):
        raise Unsupported("data.anonymise with candidates of several words")
    lengths, asked = np.asarray(store.lengths, np.int64), np.diff(store.questions.ends, prepend=0)
    columns = _encode(store, vocabulary, lengths, asked)
    documents, questions = columns.documents, columns.questions
    frequent = find_frequent_rows(documents, questions, vocabulary)
    counts = columns.candidate_counts
    return DeviceDataset(
        documents=_put_flat(documents, lengths, device),
        questions=_put_flat(questions, asked, device),
        candidates=_put_flat(columns.candidates, counts, device),
        eligible=torch.from_numpy(columns.eligible).to(device),
        candidate_at=torch.from_numpy(columns.candidate_at).to(device),
        answers=torch.from_numpy(columns.answers).to(device),
        supported=torch.from_numpy(columns.supported).to(device),
        document_lengths=lengths if placement is None else lengths + placement.added_words(asked),
        question_lengths=asked,
        rare=find_rare_rows(documents, lengths, *_with_candidates(columns, asked), frequent),
        frequent=int(frequent.sum()),
        anonymous=vocabulary.unknown + vocabulary.entities,
        candidate_count=max(1, int(counts.max(initial=1))),
        anonymizer=_make_anonymizer(anonymise, vocabulary, columns, device) if anonymise else None,
        placement=placement,
    )


@dataclass(frozen=True)
class _Columns:
    """All examples, end to end."""

    documents: IntArray
    questions: IntArray
    candidates: IntArray
    candidate_counts: NDArray[np.int64]
    eligible: NDArray[np.bool_]
    candidate_at: ShortArray
    question_candidate_at: ShortArray
    answers: ShortArray
    supported: NDArray[np.bool_]
    unknown_counts: NDArray[np.integer]


def _encode(store: Store, vocabulary: Vocabulary, lengths: NDArray[np.integer], asked: NDArray[np.integer]) -> _Columns:
    documents, questions = np.empty(lengths.sum(), np.int32), np.empty(asked.sum(), np.int32)
    candidate_at, question_at = np.empty(len(documents), np.int16), np.empty(len(questions), np.int16)
    answers, supported = np.empty(len(store), np.int16), np.empty(len(store), np.bool_)
    unknown_counts, candidate_counts = np.zeros(len(store), np.int64), np.zeros(len(store), np.int64)
    candidates: list[IntArray] = []
    eligible: list[NDArray[np.bool_]] = []
    starts, asked_starts = np.cumsum(lengths) - lengths, np.cumsum(asked) - asked
    table, finder = vocabulary.rows(store.lexicon), _MentionFinder(store, vocabulary)
    for first in range(0, len(store), _CHUNK):
        chunk = slice(first, min(first + _CHUNK, len(store)))
        words, asking = _document_words(store, chunk), _slice_ragged(store.questions, chunk)
        begin, asked_begin = starts[first], asked_starts[first]
        found = []
        for number in range(first, chunk.stop):
            here = slice(starts[number], starts[number] + lengths[number])
            asked_here = slice(asked_starts[number], asked_starts[number] + asked[number])
            document = words[here.start - begin : here.stop - begin]
            question = asking[asked_here.start - asked_begin : asked_here.stop - asked_begin]
            example = finder.find_mentions(number, document, question)
            candidate_at[here], question_at[asked_here] = example.candidate_at, example.question_candidate_at
            answers[number], candidate_counts[number] = example.answer, len(example.heads)
            supported[number] = example.answer != NO_ANSWER_INDEX and (candidate_at[here] == example.answer).any()
            eligible.append(example.eligible)
            found.append(example.heads)
        heads = np.concatenate(found) if found else np.zeros(0, np.int32)
        counts = lengths[chunk], asked[chunk], candidate_counts[chunk]
        rows, unknown_counts[chunk] = _assign_rows((words, asking, heads), counts, table, vocabulary)
        documents[begin : begin + len(words)] = rows[: len(words)]
        questions[asked_begin : asked_begin + len(asking)] = rows[len(words) : len(words) + len(asking)]
        candidates.append(rows[len(words) + len(asking) :])
    return _Columns(
        documents,
        questions,
        np.concatenate(candidates) if candidates else np.zeros(0, np.int32),
        candidate_counts,
        np.concatenate([*eligible, np.zeros(1, np.bool_)]),
        candidate_at,
        question_at,
        answers,
        supported,
        unknown_counts,
    )


def _with_candidates(columns: _Columns, asked: NDArray[np.integer]) -> tuple[IntArray, NDArray[np.integer]]:
    """Rows of questions and candidates, example by example: both need entries in a batch's table of unique rows."""
    examples = np.arange(len(asked))
    owner = np.concatenate([np.repeat(examples, asked), np.repeat(examples, columns.candidate_counts)])
    rows = np.concatenate([columns.questions, columns.candidates])
    return rows[np.argsort(owner, kind="stable")], asked + columns.candidate_counts


def _make_anonymizer(
    probability: float, vocabulary: Vocabulary, columns: _Columns, device: torch.device
) -> CandidateAnonymizer:
    counts, candidate_at = (
        torch.from_numpy(column).to(device) for column in (columns.unknown_counts, columns.question_candidate_at)
    )
    return CandidateAnonymizer(probability, vocabulary.unknown, vocabulary.entity_rows.stop, counts, candidate_at)


@dataclass(frozen=True)
class _ExampleMentions:
    candidate_at: ShortArray
    question_candidate_at: ShortArray
    answer: int
    heads: IntArray  # the word whose vector stands for each candidate
    eligible: NDArray[np.bool_]


class _MentionFinder:
    """Which candidate each word of a document mentions."""

    def __init__(self, store: Store, vocabulary: Vocabulary) -> None:
        self._store = store
        self._batcher = Batcher(store, vocabulary)
        self._index = np.full(len(store.lexicon), NO_CANDIDATE, np.int16)  # of each word among one example's candidates
        self._is_phrase = np.zeros(len(store.lexicon), np.bool_)
        self._is_phrase[store.columns["phrases"]] = True

    def find_mentions(self, number: int, document: IntArray, question: IntArray) -> _ExampleMentions:
        """For each position of an example's document and question the index of its candidate, and the answer's."""
        candidates = self._store.candidates(number, document)
        if len(candidates) > np.iinfo(np.int16).max:
            raise Unsupported(f"{self._store.ids[number]} has {len(candidates):,} candidates")
        if self._is_phrase[candidates].any():
            return self._find_phrases(number, document, question, candidates)
        order = np.arange(len(candidates), dtype=np.int16)
        self._index[candidates[::-1]] = order[::-1]  # backwards, so that the first of several equal ones stays
        mentions, asked = self._index[document], self._index[question]
        answer = int(self._store.answers[number])
        answer_index = NO_ANSWER_INDEX if answer == NO_ANSWER else int(self._index[answer])
        eligible = self._index[candidates] == order
        self._index[candidates] = NO_CANDIDATE
        return _ExampleMentions(mentions, asked, answer_index, candidates, eligible)

    def _find_phrases(
        self, number: int, document: IntArray, question: IntArray, candidates: IntArray
    ) -> _ExampleMentions:
        encoded = self._batcher.encode_example(number)
        positions = encoded.mention_positions
        if len(np.unique(positions)) < len(positions):
            raise Unsupported(f"in {self._store.ids[number]} one word is part of several candidates")
        mentions = np.full(len(document), NO_CANDIDATE, np.int16)
        mentions[positions] = encoded.mention_candidates
        heads = np.array([self._batcher.find_head(int(candidate)) for candidate in candidates], np.int32)
        nothing = np.full(len(question), NO_CANDIDATE, np.int16)
        return _ExampleMentions(mentions, nothing, encoded.answer, heads, encoded.eligible)


def _document_words(store: Store, chunk: slice) -> IntArray:
    """The words of a chunk's documents, end to end."""
    sentences, ends = _slice_ragged(store.documents, chunk), store.sentences.ends
    lengths = np.diff(ends, prepend=0)[sentences]
    before = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) + np.repeat(ends[sentences] - lengths - before, lengths)
    words: IntArray = store.sentences.values[places]
    return words


def _slice_ragged(ragged: Ragged, chunk: slice) -> IntArray:
    return ragged.values[ragged.ends[chunk.start - 1] if chunk.start else 0 : ragged.ends[chunk.stop - 1]]


def _assign_rows(
    parts: tuple[IntArray, ...], counts: tuple[NDArray[np.integer], ...], table: IntArray, vocabulary: Vocabulary
) -> tuple[IntArray, NDArray[np.integer]]:
    """`assign_anonymous_rows` for many examples at once: rows of all documents, all questions, all candidates, and the
    number of unknown words in each example's document and question."""
    words, examples = np.concatenate(parts), np.arange(len(counts[0]))
    owners = np.concatenate([np.repeat(examples, own) for own in counts])
    rows: IntArray = table[words]
    read = len(parts[0]) + len(parts[1])
    unknown_counts = np.zeros(len(examples), np.int64)
    for stand_in, pool in ((UNKNOWN, vocabulary.unknown_rows), (ENTITY, vocabulary.entity_rows)):
        positions = np.flatnonzero(rows == stand_in)
        if not len(positions):
            continue
        positions = positions[np.argsort(owners[positions], kind="stable")]  # reading order within each example
        owner = owners[positions]
        _, first, which = np.unique(owner * len(table) + words[positions], return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))  # over all examples, which come one after the other
        own = np.bincount(owner[first], minlength=len(examples))
        rank -= (np.cumsum(own) - own)[owner[first]]
        rows[positions] = pool.start + rank[which] % len(pool)
        if stand_in == UNKNOWN:
            in_text = positions[first] < read
            unknown_counts = np.bincount(owner[first][in_text], minlength=len(examples))
    return rows, unknown_counts


def _put_flat(rows: IntArray, lengths: NDArray[np.integer], device: torch.device) -> FlatRows:
    # A masked index may point at one word even where there are none.
    held = rows if len(rows) else np.zeros(1, np.int32)
    starts, short = np.cumsum(lengths) - lengths, lengths.astype(np.int32)
    return FlatRows(*(torch.from_numpy(column).to(device) for column in (held, starts, short)))


def _shuffle(rows: Int[Tensor, "N B T"], shuffled_rows: Int[Tensor, "N anonymous"]) -> Int[Tensor, "N B T"]:
    number = rows - FIRST_ANONYMOUS_ROW
    is_anonymous = (number >= 0) & (number < shuffled_rows.shape[1])
    chosen = shuffled_rows.gather(1, number.clamp(0, shuffled_rows.shape[1] - 1).flatten(1).long())
    return torch.where(is_anonymous, chosen.view_as(rows), rows)


def _round_up(count: int, step: int) -> int:
    return -(-count // step) * step
