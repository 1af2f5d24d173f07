"""Examples -> Statistics: Table 1 of the paper for any data, in one pass that keeps only the vocabulary in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TypeVar

from asreader.data.example import Example, Sentence
from asreader.data.occurrences import find_occurrences

PartKey = TypeVar("PartKey", bound=Hashable)

RANKS = 10
CACHED_SENTENCES = 4096
"""Size of the cache of counted sentences. A window over a book shares all but one sentence with the previous window."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, minimum and maximum of a count; all 0 without questions."""

    mean: float
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts and means of the questions of one split.

    vocabulary: distinct words, as written, of documents, questions (the GAP too) and candidates.
    vocabulary_lowercase: the same without case. This is what the authors of CBT counted: it gives their 9,443 for the
    NE validation file exactly, where `vocabulary` gives 10,702; the 53,063 of the paper's Table 1 is theirs too.
    candidates: those in the data, a repeated one once, without empty ones; 0 if the data have none.
    answers_not_in_document, candidates_not_in_document: questions with such an answer or any such candidate.
    lowercase_answers: fraction of the known answers that start with a lower-case letter.
    answer_ranks: of the known answers among the candidates, the fraction that is the n-th most frequent candidate in
    the document, n = 1 to 10; equally frequent candidates share their ranks, so the fractions sum to at most 1.
    """

    questions: int
    candidates: Spread
    document_tokens: Spread
    question_tokens: Spread
    vocabulary: int
    vocabulary_lowercase: int
    answers_not_in_document: int
    candidates_not_in_document: int
    lowercase_answers: float
    answer_ranks: tuple[float, ...]

    def as_json(self) -> dict[str, object]:
        """The document that `stats --json` prints for a split."""
        return asdict(self)


def compute_statistics(examples: Iterable[Example]) -> Statistics:
    """Examples, read in one pass -> Statistics."""
    tally = _Tally()
    for example in examples:
        tally.add(example)
    return tally.compute()


def compute_statistics_by_part(examples: Iterable[tuple[PartKey, Example]]) -> dict[PartKey, Statistics]:
    """(part, Example) pairs in any order -> the Statistics of each part, in one pass."""
    tallies: dict[PartKey, _Tally] = defaultdict(_Tally)
    for part, example in examples:
        tallies[part].add(example)
    return {part: tally.compute() for part, tally in tallies.items()}


class _Tally:
    """The counts of one pass; lengths are histograms, whose size does not grow with the number of questions."""

    def __init__(self) -> None:
        self.vocabulary: set[str] = set()
        self.candidates = Counter[int]()
        self.document_tokens = Counter[int]()
        self.question_tokens = Counter[int]()
        self.answers = self.lowercase_answers = self.answers_not_in_document = 0
        self.candidates_not_in_document = 0
        self.ranks = [0.0] * RANKS
        self.ranked = 0
        self.count_sentence = lru_cache(CACHED_SENTENCES)(self._count_sentence)

    def _count_sentence(self, sentence: Sentence) -> Mapping[str, int]:
        """Count the words of a sentence and add them to the vocabulary; a cached sentence is in it already."""
        self.vocabulary.update(sentence)
        return Counter(sentence)

    def add(self, example: Example) -> None:
        """Count one question."""
        counts = [self.count_sentence(sentence) for sentence in example.document]
        self.vocabulary.update(example.question, *map(str.split, example.candidates))
        candidates = {word: _count_occurrences(word, example, counts) for word in example.candidates if word.strip()}
        self.candidates[len(candidates)] += 1
        self.document_tokens[sum(map(len, example.document))] += 1
        self.question_tokens[len(example.question)] += 1
        self.candidates_not_in_document += 0 in candidates.values()
        if example.answer is not None:
            self.answers += 1
            self.lowercase_answers += example.answer[:1].islower()
            self.answers_not_in_document += not _count_occurrences(example.answer, example, counts)
            if example.answer in candidates:
                self.add_rank(candidates[example.answer], list(candidates.values()))

    def add_rank(self, answer: int, candidates: Sequence[int]) -> None:
        """Distribute one answer equally over the ranks it may have by frequency among the candidates."""
        self.ranked += 1
        above = sum(frequency > answer for frequency in candidates)
        tied = candidates.count(answer)
        for rank in range(above, min(above + tied, RANKS)):
            self.ranks[rank] += 1 / tied

    def compute(self) -> Statistics:
        """Counts -> the means and fractions that are reported."""
        return Statistics(
            questions=self.document_tokens.total(),
            candidates=_compute_spread(self.candidates),
            document_tokens=_compute_spread(self.document_tokens),
            question_tokens=_compute_spread(self.question_tokens),
            vocabulary=len(self.vocabulary),
            vocabulary_lowercase=len(set(map(str.lower, self.vocabulary))),
            answers_not_in_document=self.answers_not_in_document,
            candidates_not_in_document=self.candidates_not_in_document,
            lowercase_answers=self.lowercase_answers / max(self.answers, 1),
            answer_ranks=tuple(weight / max(self.ranked, 1) for weight in self.ranks),
        )


def _count_occurrences(candidate: str, example: Example, counts: Sequence[Mapping[str, int]]) -> int:
    """How often a candidate occurs in the document; `counts` are the word counts of its sentences.

    A single word is looked up; a phrase may cross the end of a sentence and is searched.
    """
    parts = candidate.split()
    if len(parts) != 1:
        return len(find_occurrences(example.words, candidate))
    return sum([sentence.get(parts[0], 0) for sentence in counts])


def _compute_spread(histogram: Counter[int]) -> Spread:
    """Histogram (value -> count) -> mean, minimum and maximum."""
    total = sum(value * count for value, count in histogram.items())
    return Spread(total / max(histogram.total(), 1), min(histogram, default=0), max(histogram, default=0))


TABLE_ROWS: dict[str, Callable[[Statistics], str]] = {
    "questions": lambda part: f"{part.questions:,}",
    "max candidates": lambda part: f"{part.candidates.max:,}",
    "mean candidates": lambda part: f"{part.candidates.mean:.1f}",
    "mean document words": lambda part: f"{part.document_tokens.mean:,.2f}",
    "min to max": lambda part: f"{part.document_tokens.min:,} to {part.document_tokens.max:,}",
    "mean question words": lambda part: f"{part.question_tokens.mean:.2f}",
    "vocabulary": lambda part: f"{part.vocabulary:,}",
    "vocabulary, case folded": lambda part: f"{part.vocabulary_lowercase:,}",
    "answer not in document": lambda part: f"{part.answers_not_in_document:,}",
}
"""The rows of Table 1 of the paper, for the command line and for reports."""
