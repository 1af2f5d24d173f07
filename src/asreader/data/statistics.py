"""Examples -> Statistics: Table 1 of the paper for any data, in one pass that holds the vocabulary and no more."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TypeVar

from asreader.data.example import Example, Sentence
from asreader.data.occurrences import find_occurrences

Part = TypeVar("Part", bound=Hashable)

RANKS = 10
CACHED_SENTENCES = 4096
"""Sentences whose words stay counted. Windows over a book share all but one sentence with the window before, so a few
would do; equal sentences are found wherever they stand."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, least and greatest of some count; all 0 for no questions."""

    mean: float
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the questions of one split look like.

    vocabulary: distinct words, as written, of documents, questions (the GAP too) and candidates.
    vocabulary_lowercase: the same without case. This is what the authors of CBT counted: it gives their 9,443 for the
    NE validation file exactly, where `vocabulary` gives 10,702; the 53,063 of the paper's Table 1 is theirs too.
    candidates: those the data give, a repeated one once, an empty one not; 0 where the data give none.
    answers_not_in_document, candidates_not_in_document: questions with such an answer, with any such candidate.
    lowercase_answers: share of the known answers that start with a lower-case letter.
    answer_ranks: of the known answers among the candidates, the share that are the n-th most frequent candidate in the
    document, n = 1 to 10; candidates that are equally frequent share their places, so the shares add up to at most 1.
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
    """Examples, each looked at once and let go -> Statistics."""
    tally = _Tally()
    for example in examples:
        tally.add(example)
    return tally.statistics()


def compute_statistics_by_part(examples: Iterable[tuple[Part, Example]]) -> dict[Part, Statistics]:
    """(part, Example) pairs, in whatever order -> the Statistics of each part, in one pass."""
    tallies: dict[Part, _Tally] = defaultdict(_Tally)
    for part, example in examples:
        tallies[part].add(example)
    return {part: tally.statistics() for part, tally in tallies.items()}


class _Tally:
    """The counts of one pass; lengths are kept as histograms, which are small however many questions there are."""

    def __init__(self) -> None:
        self.vocabulary: set[str] = set()
        self.candidates = Counter[int]()
        self.document_tokens = Counter[int]()
        self.question_tokens = Counter[int]()
        self.answers = self.lowercase_answers = self.answers_not_in_document = 0
        self.candidates_not_in_document = 0
        self.ranks = [0.0] * RANKS
        self.ranked = 0
        self.counted = lru_cache(CACHED_SENTENCES)(self._counted)

    def _counted(self, sentence: Sentence) -> Mapping[str, int]:
        """How often each word occurs in a sentence, which joins the vocabulary here unless it did so lately."""
        self.vocabulary.update(sentence)
        return Counter(sentence)

    def add(self, example: Example) -> None:
        """Take in one question."""
        counts = [self.counted(sentence) for sentence in example.document]
        self.vocabulary.update(example.question, *map(str.split, example.candidates))
        candidates = {word: _frequency(word, example, counts) for word in example.candidates if word.strip()}
        self.candidates[len(candidates)] += 1
        self.document_tokens[sum(map(len, example.document))] += 1
        self.question_tokens[len(example.question)] += 1
        self.candidates_not_in_document += 0 in candidates.values()
        if example.answer is not None:
            self.answers += 1
            self.lowercase_answers += example.answer[:1].islower()
            self.answers_not_in_document += not _frequency(example.answer, example, counts)
            if example.answer in candidates:
                self.rank(candidates[example.answer], list(candidates.values()))

    def rank(self, answer: int, candidates: Sequence[int]) -> None:
        """Share one answer equally among the places it may have in the candidates' order of frequency."""
        self.ranked += 1
        above = sum(frequency > answer for frequency in candidates)
        tied = candidates.count(answer)
        for place in range(above, min(above + tied, RANKS)):
            self.ranks[place] += 1 / tied

    def statistics(self) -> Statistics:
        """Counts -> the means and shares that are reported."""
        return Statistics(
            questions=self.document_tokens.total(),
            candidates=_spread(self.candidates),
            document_tokens=_spread(self.document_tokens),
            question_tokens=_spread(self.question_tokens),
            vocabulary=len(self.vocabulary),
            vocabulary_lowercase=len(set(map(str.lower, self.vocabulary))),
            answers_not_in_document=self.answers_not_in_document,
            candidates_not_in_document=self.candidates_not_in_document,
            lowercase_answers=self.lowercase_answers / max(self.answers, 1),
            answer_ranks=tuple(share / max(self.ranked, 1) for share in self.ranks),
        )


def _frequency(candidate: str, example: Example, counts: Sequence[Mapping[str, int]]) -> int:
    """How often a candidate occurs in the document, whose sentences are counted.

    One word is looked up; several may stand across the end of a sentence and are searched.
    """
    parts = candidate.split()
    if len(parts) != 1:
        return len(find_occurrences(example.words, candidate))
    return sum([sentence.get(parts[0], 0) for sentence in counts])


def _spread(histogram: Counter[int]) -> Spread:
    """value -> how often, as mean, least and greatest."""
    total = sum(value * times for value, times in histogram.items())
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
"""The lines of Table 1 of the paper, as the command line and reports show them."""
