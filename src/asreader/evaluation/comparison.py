"""predictions of two systems on the same questions -> Comparison: who is better, by how much, how surely, and where.

Each system is one run or several that differ in their seed. No claim is made without the name of the test behind it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asreader.data.loading import load_store
from asreader.errors import InputError
from asreader.evaluation import bootstrap, ensembles
from asreader.evaluation.bootstrap import SEED, Interval
from asreader.evaluation.ensembles import AlignedPredictions
from asreader.evaluation.result_table import find_prediction_files

MAX_PERMUTATIONS = 20_000
"""Up to so many ways to deal the runs to two sides are all looked at; of more, so many are drawn."""


@dataclass(frozen=True, slots=True)
class ComparedSystem:
    """One system: the mean accuracy of its runs, and their standard deviation if there are several."""

    name: str
    runs: int
    accuracy: float
    deviation: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Against there being no difference: the name of a test, its two-sided p, and the smallest p it could give here."""

    test: str
    p: float
    least: float


@dataclass(frozen=True, slots=True)
class Flip:
    """A question that one side alone answers rightly: both answers, and what each gave the right one on average."""

    id: str
    answer: str
    first: str
    second: str
    first_probability: float
    second_probability: float
    question: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on the same questions. Counts and flips are by the vote of each side's runs."""

    first: ComparedSystem
    second: ComparedSystem
    questions: int
    both: int
    only_first: int
    only_second: int
    neither: int
    difference: float  # of the first's mean accuracy minus the second's
    interval: Interval
    evidence: Evidence
    flips: tuple[Flip, ...]  # those of the largest swing first

    def as_json(self) -> dict[str, object]:
        """The document that `compare --json` prints."""
        return asdict(self)


def compare_systems(
    first: Path, second: Path, *, split: str | None = None, data: Path | None = None, format: str | None = None
) -> Comparison:
    """Compare prediction files, runs or folders of runs; with the data they are of, flips have their question."""
    sides = [find_prediction_files(path, split or "valid") for path in (first, second)]
    said = ensembles.align_predictions([file for files in sides for file in files])
    found = compare_aligned(said, len(sides[0]), str(first), str(second))
    if data is None:
        return found
    chosen = split or ("valid" if first.is_dir() or second.is_dir() else None)
    return replace(found, flips=_with_questions(found.flips, data, chosen, format))


def compare_aligned(
    said: AlignedPredictions, first_runs: int, first: str = "first", second: str = "second"
) -> Comparison:
    """Compare the first few of some aligned runs with the rest of them."""
    alone = said.mark_correct_by_reader()
    one, two = alone[:first_runs], alone[first_runs:]
    ours = _voice(said, range(first_runs))
    theirs = _voice(said, range(first_runs, len(alone)))
    only_first, only_second = int((ours.right & ~theirs.right).sum()), int((~ours.right & theirs.right).sum())
    both = int((ours.right & theirs.right).sum())
    single = len(one) == len(two) == 1
    return Comparison(
        first=_side(first, one),
        second=_side(second, two),
        questions=alone.shape[1],
        both=both,
        only_first=only_first,
        only_second=only_second,
        neither=alone.shape[1] - both - only_first - only_second,
        difference=float(one.mean() - two.mean()),
        interval=bootstrap.compute_difference_interval(one, two),
        evidence=run_mcnemar_test(only_first, only_second)
        if single
        else run_permutation_test(one.sum(axis=1), two.sum(axis=1)),
        flips=_flips(said, ours, theirs),
    )


def run_mcnemar_test(only_first: int, only_second: int) -> Evidence:
    """Exact McNemar test: were both equally good, each question that one alone answers would be a fair coin's toss."""
    tosses = only_first + only_second
    ways = tail = 1  # of no heads; then of one more and one more
    for heads in range(min(only_first, only_second)):
        ways = ways * (tosses - heads) // (heads + 1)
        tail += ways
    return Evidence("exact McNemar test", min(1.0, 2 * tail / 2**tosses), min(1.0, 2 / 2**tosses))


def run_permutation_test(
    first: Sequence[int] | NDArray[np.integer], second: Sequence[int] | NDArray[np.integer]
) -> Evidence:
    """Permutation test on numbers of right answers: were the sides the same, runs might be dealt to them in any way.

    p is the share of the ways with a difference of means at least as large as the real one; of very many ways some
    are drawn, and the real one is counted as drawn too.
    """
    runs, taken = [*map(int, first), *map(int, second)], len(first)

    def distance(chosen: Sequence[int] | NDArray[np.intp]) -> int:
        """|mean - mean| times both numbers of runs: whole numbers, so that equals are equal."""
        return abs(len(runs) * sum(runs[run] for run in chosen) - taken * sum(runs))

    real, ways = distance(range(taken)), math.comb(len(runs), taken)
    if ways <= MAX_PERMUTATIONS:
        hits = sum(distance(chosen) >= real for chosen in combinations(range(len(runs)), taken))
        # Sides of the same size may trade places: each difference then comes twice.
        return Evidence("exact permutation test on runs", hits / ways, (2 if 2 * taken == len(runs) else 1) / ways)
    random = np.random.default_rng(SEED)
    hits = 1 + sum(distance(random.permutation(len(runs))[:taken]) >= real for _ in range(MAX_PERMUTATIONS))
    return Evidence(
        f"permutation test on runs, {MAX_PERMUTATIONS:,} draws",
        hits / (MAX_PERMUTATIONS + 1),
        1 / (MAX_PERMUTATIONS + 1),
    )


def _side(name: str, right: NDArray[np.bool_]) -> ComparedSystem:
    accuracies = right.mean(axis=1)
    deviation = float(accuracies.std(ddof=1)) if len(right) > 1 else None
    return ComparedSystem(name, len(right), float(accuracies.mean()), deviation)


@dataclass(frozen=True, slots=True, eq=False)
class _Voice:
    """What the runs of one side say of each question together."""

    choice: NDArray[np.intp]  # the candidate that most choose; of equals the first in the data's own order
    right: NDArray[np.bool_]
    support: NDArray[np.float64]  # the mean probability of the right answer


def _voice(said: AlignedPredictions, runs: Sequence[int]) -> _Voice:
    votes = np.zeros(said.probabilities.shape[1:])
    every = np.arange(len(votes))
    for run in runs:
        votes[every, said.probabilities[run].argmax(axis=-1)] += 1
    choice = votes.argmax(axis=-1)
    support = said.probabilities[list(runs)][:, every, said.answers].mean(axis=0, dtype=np.float64)
    return _Voice(choice, choice == said.answers, support)  # the answer that nobody knows has no place


def _flips(said: AlignedPredictions, ours: _Voice, theirs: _Voice) -> tuple[Flip, ...]:
    swing = np.abs(ours.support - theirs.support)
    return tuple(
        Flip(
            said.questions[row].id,
            str(said.questions[row].answer),
            said.questions[row].candidates[ours.choice[row]],
            said.questions[row].candidates[theirs.choice[row]],
            float(ours.support[row]),
            float(theirs.support[row]),
        )
        for row in np.argsort(-swing, kind="stable").tolist()
        if ours.right[row] != theirs.right[row]
    )


def _with_questions(flips: Sequence[Flip], data: Path, split: str | None, format: str | None) -> tuple[Flip, ...]:
    store = load_store(data, split=split, format=format)
    places = {id: number for number, id in enumerate(store.ids)}
    found = []
    for flip in flips:
        if flip.id not in places:
            raise InputError(
                f"{data}: the question {flip.id!r} is not in it; name the data that the predictions are of"
            )
        example = store.example(places[flip.id])
        if example.answer != flip.answer:
            raise InputError(f"{data}: the question {flip.id!r} has another answer than in the predictions")
        found.append(replace(flip, question=" ".join(example.question)))
    return tuple(found)
