"""Examples -> QuestionFacts -> groups of questions by length, candidates, frequency, answer type and distance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from math import floor

import numpy as np
from numpy.typing import NDArray

from asreader.data.example import Example, Sentence
from asreader.data.occurrences import find_occurrences
from asreader.data.statistics import RANKS
from asreader.data.vocabulary import ENTITY_WORD
from asreader.evaluation.metrics import compute_wilson_interval

Ints = NDArray[np.int64]
CorrectAnswers = NDArray[np.bool_]
"""Runs by questions: True where the run is correct."""

BUCKETS = 10
BINS = 25
"""Approximate number of bins for the bulk of a distribution."""
BULK_FRACTION = 0.995
"""Fraction of a distribution that gets bins of equal width; one last bin holds the tail."""
NOT_FOUND = -1

ENTITY, PHRASE, NUMBER, CAPITALISED, LOWER, CASELESS = ANSWER_TYPES = (
    "@entity",
    "several words",
    "number",
    "capitalised",
    "lower case",
    "no case",
)


@dataclass(frozen=True, slots=True, eq=False)
class QuestionFacts:
    """Properties of the questions with a known answer that do not depend on predictions; one entry per question."""

    name: str
    ids: tuple[str, ...]
    answers: tuple[str, ...]
    answer_types: tuple[str, ...]
    lengths: Ints  # words of the document
    candidates: Ints  # distinct and not empty
    more_frequent: Ints  # candidates more frequent in the document than the answer; NOT_FOUND: not a candidate
    as_frequent: Ints  # candidates as frequent as the answer, with the answer itself
    distances: Ints  # words after the last mention of the answer; NOT_FOUND: not in the document

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class AccuracyShare:
    """Mean accuracy of the runs on a group of questions, with its 95% interval; None for an empty group."""

    questions: float
    accuracy: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class HistogramBin:
    """One bin of a distribution: start <= value < stop, or start <= value if stop is None."""

    start: int
    stop: int | None
    questions: int
    share: float


def describe_questions(name: str, examples: Iterable[Example]) -> QuestionFacts:
    """Compute the facts of all examples with a known answer."""
    rows = [
        (example.id, example.answer, *_measure_example(example)) for example in examples if example.answer is not None
    ]
    ids, answers, *columns = zip(*rows, strict=True) if rows else ((),) * 7
    numbers = [np.array(column, dtype=np.int64) for column in columns]
    return QuestionFacts(name, ids, answers, tuple(map(classify_answer, answers)), *numbers)


def _measure_example(example: Example) -> tuple[int, int, int, int, int]:
    """Document length, candidates, more frequent candidates, as frequent candidates, distance of the answer."""
    words, answer = example.words, example.answer or ""
    counts = Counter(words)
    frequencies = {word: _count_mentions(word, words, counts) for word in example.choices if word.strip()}
    mentions = find_occurrences(words, answer)
    distance = len(words) - mentions[-1] - len(answer.split()) if mentions else NOT_FOUND
    if answer not in frequencies:
        return len(words), len(frequencies), NOT_FOUND, NOT_FOUND, distance
    above = sum(frequency > frequencies[answer] for frequency in frequencies.values())
    tied = sum(frequency == frequencies[answer] for frequency in frequencies.values())
    return len(words), len(frequencies), above, tied, distance


def _count_mentions(candidate: str, words: Sentence, counts: Counter[str]) -> int:
    """Single words are looked up in the counts; phrases are searched."""
    parts = candidate.split()
    return counts[parts[0]] if len(parts) == 1 else len(find_occurrences(words, candidate))


def classify_answer(answer: str) -> str:
    """The type of an answer, by its characters."""
    first = next((letter for letter in answer if letter.isalpha()), "")
    if ENTITY_WORD.fullmatch(answer):
        return ENTITY
    if len(answer.split()) > 1:
        return PHRASE
    if not first and any(map(str.isdigit, answer)):
        return NUMBER
    return CAPITALISED if first.isupper() or first.istitle() else LOWER if first.islower() else CASELESS


def compute_accuracy_share(correct: CorrectAnswers, weights: NDArray[np.floating] | NDArray[np.bool_]) -> AccuracyShare:
    """Accuracy on a group of questions; weights from 0 to 1 give the membership of each question.

    The interval is Wilson's for an effective number of questions. It accounts for the sampling variance of the
    questions (Kish's effective sample size for fractional weights) and the variance of the mean over the runs.
    """
    total: float = weights.sum().item()  # an int for Boolean weights
    if not total:
        return AccuracyShare(total, None, None, None)
    weights = weights.astype(np.float64)
    accuracies = correct @ weights / total
    accuracy = min(float(accuracies.mean()), 1.0)
    effective = total * total / float(weights @ weights)
    variance = accuracy * (1 - accuracy)
    run_variance = float(accuracies.var(ddof=1)) / len(accuracies) if len(accuracies) > 1 else 0.0
    if variance:
        effective = variance / (variance / effective + run_variance)
    return AccuracyShare(total, accuracy, *compute_wilson_interval(accuracy, max(1, floor(effective + 1e-9))))


def split_into_equal_buckets(values: Ints, buckets: int = BUCKETS) -> Iterator[NDArray[np.intp]]:
    """Indices of the questions in buckets of (nearly) equal size by rising value; ties keep their order."""
    return (part for part in np.array_split(np.argsort(values, kind="stable"), buckets) if len(part))


def split_into_value_buckets(values: Ints, buckets: int = BUCKETS) -> Iterator[NDArray[np.intp]]:
    """Indices of the questions in buckets of about equal size by rising value; equal values share a bucket.

    The bucket of a value is that of the middle one of its questions.
    """
    _, value_indices, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = 2 * counts.cumsum() - counts
    bucket_numbers = (buckets * middles // (2 * len(values)))[value_indices]
    return (np.flatnonzero(bucket_numbers == number) for number in np.unique(bucket_numbers))


def compute_rank_weights(questions: QuestionFacts, ranks: int = RANKS) -> NDArray[np.float64]:
    """Ranks by questions: the weight of each question for "the answer is the n-th most frequent candidate".

    An answer that is as frequent as other candidates shares their ranks equally.
    """
    rank = np.arange(ranks)[:, None]
    is_candidate = questions.more_frequent != NOT_FOUND
    is_tied = (rank >= questions.more_frequent) & (rank < questions.more_frequent + questions.as_frequent)
    weights: NDArray[np.float64] = (is_candidate & is_tied) / np.maximum(questions.as_frequent, 1)
    return weights


def compute_histograms(values: Sequence[Ints]) -> list[list[HistogramBin]]:
    """Distributions of several data sets over the same bins, which have round edges."""
    pooled = np.concatenate(values)
    least, bulk = int(pooled.min()), int(np.quantile(pooled, BULK_FRACTION, method="higher"))
    width = _round_up_width((bulk - least + 1) / BINS)
    edges = range(least // width * width, bulk + width + 1, width)
    spans: list[tuple[int, int | None]] = list(pairwise(edges))
    if pooled.max() >= edges[-1]:
        spans.append((edges[-1], None))
    return [[_make_bin(numbers, start, stop) for start, stop in spans] for numbers in values]


def _make_bin(values: Ints, start: int, stop: int | None) -> HistogramBin:
    inside = int(((values >= start) & (values < (np.inf if stop is None else stop))).sum())
    return HistogramBin(start, stop, inside, inside / len(values))


def _round_up_width(least: float) -> int:
    """The first of 1, 2, 5, 10, 20, 25, 50, 100, 200, 250... that is at least `least`."""
    widths = (int(step * 10**power) for power in count() for step in (1, 2, 2.5, 5) if step * 10**power % 1 == 0)
    return next(width for width in widths if width >= least)
