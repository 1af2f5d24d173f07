"""predictions of two systems on the same questions -> Comparison: difference, interval, significance test, flips.

Each system is one run, or several runs that differ in their seed. Every p-value comes with the name of its test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asreader.data.dataset import load_store
from asreader.errors import InputError
from asreader.evaluation import bootstrap, ensembles
from asreader.evaluation.bootstrap import SEED, Interval
from asreader.evaluation.ensembles import AlignedPredictions
from asreader.evaluation.result_table import find_prediction_files

MAX_PERMUTATIONS = 20_000
"""The permutation test is exact up to this number of permutations; above it, this number is sampled."""


@dataclass(frozen=True, slots=True)
class ComparedSystem:
    """One system: the mean accuracy of its runs, and their standard deviation (None for one run)."""

    name: str
    runs: int
    accuracy: float
    deviation: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence against the null hypothesis of no difference: the test, its two-sided p and the smallest possible p."""

    test: str
    p: float
    least: float


@dataclass(frozen=True, slots=True)
class Flip:
    """A question that only one system answers correctly: both answers, and the mean probability of the correct one."""

    id: str
    answer: str
    first: str
    second: str
    first_probability: float
    second_probability: float
    question: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on the same questions. Counts and flips use the majority vote of each system's runs."""

    first: ComparedSystem
    second: ComparedSystem
    questions: int
    both: int
    only_first: int
    only_second: int
    neither: int
    difference: float  # mean accuracy of the first minus that of the second
    interval: Interval
    evidence: Evidence
    flips: tuple[Flip, ...]  # largest change of probability first

    def as_json(self) -> dict[str, object]:
        """The document that `compare --json` prints."""
        return asdict(self)


def compare_systems(
    first: Path, second: Path, *, split: str | None = None, data: Path | None = None, format: str | None = None
) -> Comparison:
    """Compare prediction files, runs or folders of runs; with their data, flips include the question."""
    first_files = find_prediction_files(first, split or "valid")
    second_files = find_prediction_files(second, split or "valid")
    aligned = ensembles.align_predictions([*first_files, *second_files])
    comparison = compare_aligned(aligned, len(first_files), str(first), str(second))
    if data is None:
        return comparison
    data_split = split or ("valid" if first.is_dir() or second.is_dir() else None)
    return replace(comparison, flips=_add_questions(comparison.flips, data, data_split, format))


def compare_aligned(
    aligned: AlignedPredictions, first_runs: int, first: str = "first", second: str = "second"
) -> Comparison:
    """Compare the first `first_runs` of the aligned runs with the others."""
    correct = aligned.mark_correct_by_reader()
    first_correct, second_correct = correct[:first_runs], correct[first_runs:]
    first_vote = _count_votes(aligned, range(first_runs))
    second_vote = _count_votes(aligned, range(first_runs, len(correct)))
    both = int((first_vote.correct & second_vote.correct).sum())
    only_first = int((first_vote.correct & ~second_vote.correct).sum())
    only_second = int((~first_vote.correct & second_vote.correct).sum())
    if len(first_correct) == len(second_correct) == 1:
        evidence = run_mcnemar_test(only_first, only_second)
    else:
        evidence = run_permutation_test(first_correct.sum(axis=1), second_correct.sum(axis=1))
    return Comparison(
        first=_summarize_system(first, first_correct),
        second=_summarize_system(second, second_correct),
        questions=correct.shape[1],
        both=both,
        only_first=only_first,
        only_second=only_second,
        neither=correct.shape[1] - both - only_first - only_second,
        difference=float(first_correct.mean() - second_correct.mean()),
        interval=bootstrap.compute_difference_interval(first_correct, second_correct),
        evidence=evidence,
        flips=_find_flips(aligned, first_vote, second_vote),
    )


def run_mcnemar_test(only_first: int, only_second: int) -> Evidence:
    """Exact McNemar test: if both are equally good, each question that only one answers is a fair coin toss."""
    tosses = only_first + only_second
    ways = tail = 1  # ways to get 0 heads; the loop adds 1, 2, ... heads
    for heads in range(min(only_first, only_second)):
        ways = ways * (tosses - heads) // (heads + 1)
        tail += ways
    return Evidence("exact McNemar test", min(1.0, 2 * tail / 2**tosses), min(1.0, 2 / 2**tosses))


def run_permutation_test(
    first: Sequence[int] | NDArray[np.integer], second: Sequence[int] | NDArray[np.integer]
) -> Evidence:
    """Permutation test on the numbers of correct answers: if both systems are the same, runs are exchangeable.

    p is the fraction of permutations with a difference of means at least as large as the observed one. Above
    MAX_PERMUTATIONS, p is estimated from a sample that includes the observed permutation.
    """
    counts = [*map(int, first), *map(int, second)]
    size = len(first)

    def compute_distance(chosen: Sequence[int] | NDArray[np.intp]) -> int:
        """|mean - mean| times both numbers of runs: integers, so that equal distances compare equal."""
        return abs(len(counts) * sum(counts[run] for run in chosen) - size * sum(counts))

    observed = compute_distance(range(size))
    permutations = math.comb(len(counts), size)
    if permutations <= MAX_PERMUTATIONS:
        hits = sum(compute_distance(chosen) >= observed for chosen in combinations(range(len(counts)), size))
        # With equal numbers of runs, swapping the systems gives the same distance: the largest occurs twice.
        least = (2 if 2 * size == len(counts) else 1) / permutations
        return Evidence("exact permutation test on runs", hits / permutations, least)
    random = np.random.default_rng(SEED)
    samples = (random.permutation(len(counts))[:size] for _ in range(MAX_PERMUTATIONS))
    hits = 1 + sum(compute_distance(chosen) >= observed for chosen in samples)
    return Evidence(
        f"permutation test on runs, {MAX_PERMUTATIONS:,} draws",
        hits / (MAX_PERMUTATIONS + 1),
        1 / (MAX_PERMUTATIONS + 1),
    )


def _summarize_system(name: str, correct: NDArray[np.bool_]) -> ComparedSystem:
    accuracies = correct.mean(axis=1)
    deviation = float(accuracies.std(ddof=1)) if len(correct) > 1 else None
    return ComparedSystem(name, len(correct), float(accuracies.mean()), deviation)


@dataclass(frozen=True, slots=True, eq=False)
class _Vote:
    """The majority vote of one system's runs, for each question."""

    choice: NDArray[np.intp]  # index of the candidate with the most votes; ties keep the order of the data
    correct: NDArray[np.bool_]
    support: NDArray[np.float64]  # mean probability of the correct answer


def _count_votes(aligned: AlignedPredictions, runs: Sequence[int]) -> _Vote:
    votes = np.zeros(aligned.probabilities.shape[1:])
    rows = np.arange(len(votes))
    for run in runs:
        votes[rows, aligned.probabilities[run].argmax(axis=-1)] += 1
    choice = votes.argmax(axis=-1)
    support = aligned.probabilities[list(runs)][:, rows, aligned.answers].mean(axis=0, dtype=np.float64)
    return _Vote(choice, choice == aligned.answers, support)  # an unknown answer has index -1


def _find_flips(aligned: AlignedPredictions, first: _Vote, second: _Vote) -> tuple[Flip, ...]:
    change = np.abs(first.support - second.support)
    return tuple(
        Flip(
            aligned.questions[row].id,
            str(aligned.questions[row].answer),
            aligned.questions[row].candidates[first.choice[row]],
            aligned.questions[row].candidates[second.choice[row]],
            float(first.support[row]),
            float(second.support[row]),
        )
        for row in np.argsort(-change, kind="stable").tolist()
        if first.correct[row] != second.correct[row]
    )


def _add_questions(flips: Sequence[Flip], data: Path, split: str | None, format: str | None) -> tuple[Flip, ...]:
    store = load_store(data, split=split, format=format)
    indices = {id: index for index, id in enumerate(store.ids)}
    completed = []
    for flip in flips:
        if flip.id not in indices:
            raise InputError(f"{data}: the question {flip.id!r} is not in it; name the data of the predictions")
        example = store.decode_example(indices[flip.id])
        if example.answer != flip.answer:
            raise InputError(f"{data}: the question {flip.id!r} has another answer than in the predictions")
        completed.append(replace(flip, question=" ".join(example.question)))
    return tuple(completed)
