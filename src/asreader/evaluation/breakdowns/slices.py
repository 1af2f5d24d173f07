"""Examples, verdicts -> groups of questions: by length, candidates, frequency, kind, distance, with their accuracy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from math import floor

import numpy as np
from numpy.typing import NDArray

from asreader.data.example import Example, Sentence
from asreader.data.occurrences import occurrences
from asreader.data.statistics import RANKS
from asreader.data.vocabulary import ENTITY_WORD
from asreader.evaluation.metrics import compute_wilson_interval

Ints = NDArray[np.int64]
CorrectAnswers = NDArray[np.bool_]
"""Runs by questions: True where the run's answer is right."""

BUCKETS = 10
BINS = 25
"""About how many bars the bulk of a distribution gets."""
BULK_FRACTION = 0.995
"""The part of a distribution that is drawn in full; the last bar holds what lies beyond."""
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
    """What there is to know of each question with a known answer before anybody answers it; one entry a question."""

    name: str
    ids: tuple[str, ...]
    answers: tuple[str, ...]
    answer_types: tuple[str, ...]
    lengths: Ints  # words of the document
    candidates: Ints  # that count
    more_frequent: Ints  # candidates that occur more often in the document than the answer; NOWHERE: not a candidate
    as_frequent: Ints  # candidates that occur as often, the answer too
    distances: Ints  # words behind the answer's last mention; NOWHERE: not in the document

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class AccuracyShare:
    """The mean accuracy of some runs on a group of questions, with its 95% interval; None for an empty group."""

    questions: float
    accuracy: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class HistogramBin:
    """One bar of a distribution: start <= value < stop, or all from start on where stop is None."""

    start: int
    stop: int | None
    questions: int
    share: float


def describe_questions(name: str, examples: Iterable[Example]) -> QuestionFacts:
    """Examples -> what there is to know of those with a known answer."""
    rows = [(example.id, example.answer, *_facts(example)) for example in examples if example.answer is not None]
    ids, answers, *columns = zip(*rows, strict=True) if rows else ((),) * 7
    numbers = [np.array(column, dtype=np.int64) for column in columns]
    return QuestionFacts(name, ids, answers, tuple(map(classify_answer, answers)), *numbers)


def _facts(example: Example) -> tuple[int, int, int, int, int]:
    """Length, candidates, more frequent ones, as frequent ones, distance of the answer."""
    words, answer = example.words, example.answer or ""
    counts = Counter(words)
    frequencies = {word: _frequency(word, words, counts) for word in example.choices if word.strip()}
    places = occurrences(words, answer)
    distance = len(words) - places[-1] - len(answer.split()) if places else NOT_FOUND
    if answer not in frequencies:
        return len(words), len(frequencies), NOT_FOUND, NOT_FOUND, distance
    above = sum(frequency > frequencies[answer] for frequency in frequencies.values())
    tied = sum(frequency == frequencies[answer] for frequency in frequencies.values())
    return len(words), len(frequencies), above, tied, distance


def _frequency(candidate: str, words: Sentence, counts: Counter[str]) -> int:
    """One word is looked up; several are searched."""
    parts = candidate.split()
    return counts[parts[0]] if len(parts) == 1 else len(occurrences(words, candidate))


def classify_answer(answer: str) -> str:
    """What sort of word an answer is, as far as its letters tell."""
    first = next((letter for letter in answer if letter.isalpha()), "")
    if ENTITY_WORD.fullmatch(answer):
        return ENTITY
    if len(answer.split()) > 1:
        return PHRASE
    if not first and any(map(str.isdigit, answer)):
        return NUMBER
    return CAPITALISED if first.isupper() or first.istitle() else LOWER if first.islower() else CASELESS


def compute_accuracy_share(right: CorrectAnswers, weights: NDArray[np.floating] | NDArray[np.bool_]) -> AccuracyShare:
    """How often runs are right on questions that belong to a group by weights from 0 to 1.

    The interval is Wilson's for as many questions as give the variance of the mean: that of the choice of questions
    (Kish's effective number where weights are fractions), plus that of the mean over the runs by their spread.
    """
    total: float = weights.sum().item()  # a whole number where the group is a choice of questions
    if not total:
        return AccuracyShare(total, None, None, None)
    weights = weights.astype(np.float64)
    each = right @ weights / total
    accuracy = min(float(each.mean()), 1.0)
    effective = total * total / float(weights @ weights)
    variance = accuracy * (1 - accuracy)
    spread = float(each.var(ddof=1)) / len(each) if len(each) > 1 else 0.0
    if variance:
        effective = variance / (variance / effective + spread)
    return AccuracyShare(total, accuracy, *compute_wilson_interval(accuracy, max(1, floor(effective + 1e-9))))


def split_into_equal_buckets(values: Ints, buckets: int = BUCKETS) -> Iterator[NDArray[np.intp]]:
    """Questions in buckets of (nearly) equal size by rising value; equals in the data's own order."""
    return (part for part in np.array_split(np.argsort(values, kind="stable"), buckets) if len(part))


def split_into_value_buckets(values: Ints, buckets: int = BUCKETS) -> Iterator[NDArray[np.intp]]:
    """Questions in buckets of about equal size by rising value that keep equal values together.

    All questions of a value fall into the bucket in which the middle one of them would be.
    """
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = 2 * counts.cumsum() - counts
    bucket = (buckets * middles // (2 * len(values)))[which]
    return (np.flatnonzero(bucket == number) for number in np.unique(bucket))


def compute_rank_weights(asked: QuestionFacts, ranks: int = RANKS) -> NDArray[np.float64]:
    """Ranks by questions: which part of a question counts for its answer being the n-th most frequent candidate.

    An answer that is as frequent as others shares their places equally.
    """
    places = np.arange(ranks)[:, None]
    ranked = asked.more_frequent != NOT_FOUND
    inside = ranked & (places >= asked.more_frequent) & (places < asked.more_frequent + asked.as_frequent)
    weights: NDArray[np.float64] = inside / np.maximum(asked.as_frequent, 1)
    return weights


def compute_histograms(values: Sequence[Ints]) -> list[list[HistogramBin]]:
    """Distributions of several data sets in the same bins, which have round edges."""
    together = np.concatenate(values)
    least, bulk = int(together.min()), int(np.quantile(together, BULK_FRACTION, method="higher"))
    width = _round_width((bulk - least + 1) / BINS)
    edges = range(least // width * width, bulk + width + 1, width)
    spans: list[tuple[int, int | None]] = list(pairwise(edges))
    if together.max() >= edges[-1]:
        spans.append((edges[-1], None))
    return [[_bin(own, start, stop) for start, stop in spans] for own in values]


def _bin(values: Ints, start: int, stop: int | None) -> HistogramBin:
    inside = int(((values >= start) & (values < (np.inf if stop is None else stop))).sum())
    return HistogramBin(start, stop, inside, inside / len(values))


def _round_width(least: float) -> int:
    """The first of 1, 2, 5, 10, 20, 25, 50, 100, 200, 250... that is not smaller."""
    widths = (int(step * 10**power) for power in count() for step in (1, 2, 2.5, 5) if step * 10**power % 1 == 0)
    return next(width for width in widths if width >= least)
