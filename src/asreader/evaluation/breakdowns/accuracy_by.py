"""Systems -> tables of their accuracy on groups of questions, and of the sizes of these groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple

import numpy as np
from numpy.typing import NDArray

from asreader.data.vocabulary import UNKNOWN, Vocabulary
from asreader.evaluation.breakdowns import slices
from asreader.evaluation.breakdowns.breakdown_table import Cell, Table
from asreader.evaluation.breakdowns.slices import ANSWER_TYPES, NOT_FOUND, Ints, QuestionFacts, compute_accuracy_share
from asreader.evaluation.breakdowns.systems import System

ACCURACY_COLUMNS = ("questions", "accuracy", "low", "high")
IN_VOCABULARY, OUT_OF_VOCABULARY = "known", "unknown"

Splitter = Callable[[Ints], Iterable[NDArray[np.intp]]]
Rows = Iterator[tuple[Cell, ...]]


def name_data_sets(systems: Sequence[System]) -> dict[str, QuestionFacts]:
    """The distinct data sets of all systems, each under a unique name."""
    distinct = list({id(system.questions): system.questions for system in systems}.values())
    names = [questions.name for questions in distinct]
    return {
        name if names.count(name) == 1 else f"{name} ({names[:index].count(name) + 1})": questions
        for index, (name, questions) in enumerate(zip(names, distinct, strict=True))
    }


def tabulate_by_length(systems: Sequence[System]) -> Table:
    """Accuracy in ten buckets of equal size by the length of the document."""
    return _tabulate_by_value(
        systems, ("words", "shortest", "longest"), lambda questions: questions.lengths, slices.split_into_equal_buckets
    )


def tabulate_by_candidates(systems: Sequence[System]) -> Table:
    """Accuracy by the number of candidates, in about ten buckets."""
    return _tabulate_by_value(
        systems,
        ("candidates", "fewest", "most"),
        lambda questions: questions.candidates,
        slices.split_into_value_buckets,
    )


def tabulate_by_distance(systems: Sequence[System]) -> Table:
    """Accuracy by the number of words after the last mention of the answer, in about ten buckets."""
    return _tabulate_by_value(
        systems, ("words", "least", "most"), lambda questions: questions.distances, slices.split_into_value_buckets
    )


def _tabulate_by_value(
    systems: Sequence[System], names: tuple[str, str, str], values: Callable[[QuestionFacts], Ints], split: Splitter
) -> Table:
    def rows(system: System) -> Rows:
        numbers = values(system.questions)
        present = np.flatnonzero(numbers != NOT_FOUND)
        for number, part in enumerate(split(numbers[present]), start=1):
            bucket = present[part]
            inside = numbers[bucket]
            limits = int(inside.min()), int(inside.max())
            yield number, float(inside.mean()), *limits, *_make_accuracy_cells(system, _mark_members(system, bucket))

    return _build_table(systems, ("bucket", *names, *ACCURACY_COLUMNS), rows)


def tabulate_by_rank(systems: Sequence[System]) -> Table:
    """Accuracy when the answer is the n-th most frequent candidate of the document, and among the first n."""

    def rows(system: System) -> Rows:
        weights = slices.compute_rank_weights(system.questions)
        for rank, (at_rank, up_to_rank) in enumerate(zip(weights, weights.cumsum(axis=0), strict=True), start=1):
            yield rank, *_make_accuracy_cells(system, at_rank), *_make_accuracy_cells(system, up_to_rank)

    return _build_table(systems, ("n", *ACCURACY_COLUMNS, *(f"{column} up to n" for column in ACCURACY_COLUMNS)), rows)


def tabulate_by_answer_type(systems: Sequence[System]) -> Table:
    """Accuracy by the type of the answer, for the types that occur in any data set."""
    present = {answer_type for system in systems for answer_type in system.questions.answer_types}

    def rows(system: System) -> Rows:
        answer_types = np.array(system.questions.answer_types)
        for answer_type in ANSWER_TYPES:
            if answer_type in present:
                yield answer_type, *_make_accuracy_cells(system, answer_types == answer_type)

    return _build_table(systems, ("answer", *ACCURACY_COLUMNS), rows)


def tabulate_by_vocabulary(systems: Sequence[System]) -> Table:
    """Accuracy by whether every word of the answer is in the vocabulary, for systems that have one."""

    def rows(system: System) -> Rows:
        assert system.vocabulary is not None
        is_unknown = np.array([has_unknown_word(answer, system.vocabulary) for answer in system.questions.answers])
        yield IN_VOCABULARY, *_make_accuracy_cells(system, ~is_unknown)
        yield OUT_OF_VOCABULARY, *_make_accuracy_cells(system, is_unknown)

    return _build_table(
        [system for system in systems if system.vocabulary is not None], ("answer", *ACCURACY_COLUMNS), rows
    )


def has_unknown_word(answer: str, vocabulary: Vocabulary) -> bool:
    """Whether a word of the answer is not in the vocabulary; @entityN words are not expected to be in it."""
    return bool((vocabulary.rows(answer.split()) == UNKNOWN).any())


def tabulate_distribution(sets: Mapping[str, Ints]) -> Table:
    """How many questions of each data set have values in each bin."""
    histograms = slices.compute_histograms(list(sets.values()))
    rows = tuple((name, *astuple(part)) for name, parts in zip(sets, histograms, strict=True) for part in parts)
    return Table(("data", "from", "to", "questions", "share"), rows)


def tabulate_ranks(sets: Mapping[str, QuestionFacts]) -> Table:
    """How many answers of each data set are the n-th most frequent candidate."""
    rows: list[tuple[Cell, ...]] = []
    for name, questions in sets.items():
        totals = slices.compute_rank_weights(questions).sum(axis=1).tolist()
        rows += [(name, rank, total, total / len(questions)) for rank, total in enumerate(totals, start=1)]
    return Table(("data", "n", "questions", "share"), tuple(rows))


def _build_table(systems: Sequence[System], header: tuple[str, ...], rows: Callable[[System], Rows]) -> Table:
    return Table(("system", *header), tuple((system.name, *row) for system in systems for row in rows(system)))


def _mark_members(system: System, indices: NDArray[np.intp]) -> NDArray[np.bool_]:
    inside = np.zeros(len(system.questions), dtype=np.bool_)
    inside[indices] = True
    return inside


def _make_accuracy_cells(system: System, weights: NDArray[np.bool_] | NDArray[np.float64]) -> tuple[Cell, ...]:
    return astuple(compute_accuracy_share(system.correct, weights))
