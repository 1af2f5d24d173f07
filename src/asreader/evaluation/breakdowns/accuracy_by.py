"""Systems -> tables of their accuracy on groups of like questions, and of how many such questions there are."""

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
    """The questions of all systems, each data set once, by a name of its own."""
    distinct = list({id(system.questions): system.questions for system in systems}.values())
    names = [asked.name for asked in distinct]
    return {
        asked.name if names.count(asked.name) == 1 else f"{asked.name} ({names[:place].count(asked.name) + 1})": asked
        for place, asked in enumerate(distinct)
    }


def tabulate_by_length(systems: Sequence[System]) -> Table:
    """Accuracy in ten buckets of equal size by the length of the document."""
    return _by_value(
        systems, ("words", "shortest", "longest"), lambda asked: asked.lengths, slices.split_into_equal_buckets
    )


def tabulate_by_candidates(systems: Sequence[System]) -> Table:
    """Accuracy by the number of candidates, in about ten buckets."""
    return _by_value(
        systems, ("candidates", "fewest", "most"), lambda asked: asked.candidates, slices.split_into_value_buckets
    )


def tabulate_by_distance(systems: Sequence[System]) -> Table:
    """Accuracy by the number of words behind the answer's last mention, in about ten buckets."""
    return _by_value(
        systems, ("words", "least", "most"), lambda asked: asked.distances, slices.split_into_value_buckets
    )


def _by_value(
    systems: Sequence[System], names: tuple[str, str, str], values: Callable[[QuestionFacts], Ints], split: Splitter
) -> Table:
    def rows(system: System) -> Rows:
        own = values(system.questions)
        present = np.flatnonzero(own != NOT_FOUND)
        for number, part in enumerate(split(own[present]), start=1):
            bucket = present[part]
            inside = own[bucket]
            mean, least, most = float(inside.mean()), int(inside.min()), int(inside.max())
            yield number, mean, least, most, *_share(system, _members(system, bucket))

    return _table(systems, ("bucket", *names, *ACCURACY_COLUMNS), rows)


def tabulate_by_rank(systems: Sequence[System]) -> Table:
    """Accuracy when the answer is the n-th most frequent candidate of the document, and among the first n."""

    def rows(system: System) -> Rows:
        weights = slices.compute_rank_weights(system.questions)
        for rank, (own, up_to) in enumerate(zip(weights, weights.cumsum(axis=0), strict=True), start=1):
            yield rank, *_share(system, own), *_share(system, up_to)

    return _table(systems, ("n", *ACCURACY_COLUMNS, *(f"{column} up to n" for column in ACCURACY_COLUMNS)), rows)


def tabulate_by_answer_type(systems: Sequence[System]) -> Table:
    """Accuracy by what sort of word the answer is, of the sorts that occur anywhere."""
    present = {kind for system in systems for kind in system.questions.answer_types}

    def rows(system: System) -> Rows:
        own = np.array(system.questions.answer_types)
        for kind in ANSWER_TYPES:
            if kind in present:
                yield kind, *_share(system, own == kind)

    return _table(systems, ("answer", *ACCURACY_COLUMNS), rows)


def tabulate_by_vocabulary(systems: Sequence[System]) -> Table:
    """Accuracy by whether every word of the answer has a vector of its own; of systems with a vocabulary."""

    def rows(system: System) -> Rows:
        assert system.vocabulary is not None
        strange = np.array([has_unknown_word(answer, system.vocabulary) for answer in system.questions.answers])
        yield IN_VOCABULARY, *_share(system, ~strange)
        yield OUT_OF_VOCABULARY, *_share(system, strange)

    return _table([system for system in systems if system.vocabulary is not None], ("answer", *ACCURACY_COLUMNS), rows)


def has_unknown_word(answer: str, vocabulary: Vocabulary) -> bool:
    """Whether a word of the answer is not in the vocabulary; @entityN words are not meant to be."""
    return bool((vocabulary.rows(answer.split()) == UNKNOWN).any())


def tabulate_distribution(sets: Mapping[str, Ints]) -> Table:
    """How many questions of each data set have values in each bin."""
    found = slices.compute_histograms(list(sets.values()))
    rows = tuple((name, *astuple(part)) for name, parts in zip(sets, found, strict=True) for part in parts)
    return Table(("data", "from", "to", "questions", "share"), rows)


def tabulate_ranks(sets: Mapping[str, QuestionFacts]) -> Table:
    """How many answers of each data set are the n-th most frequent candidate."""
    rows: list[tuple[Cell, ...]] = []
    for name, asked in sets.items():
        totals = slices.compute_rank_weights(asked).sum(axis=1).tolist()
        rows += [(name, rank, total, total / len(asked)) for rank, total in enumerate(totals, start=1)]
    return Table(("data", "n", "questions", "share"), tuple(rows))


def _table(systems: Sequence[System], header: tuple[str, ...], rows: Callable[[System], Rows]) -> Table:
    return Table(("system", *header), tuple((system.name, *row) for system in systems for row in rows(system)))


def _members(system: System, places: NDArray[np.intp]) -> NDArray[np.bool_]:
    inside = np.zeros(len(system.questions), dtype=np.bool_)
    inside[places] = True
    return inside


def _share(system: System, weights: NDArray[np.bool_] | NDArray[np.float64]) -> tuple[Cell, ...]:
    return astuple(compute_accuracy_share(system.correct, weights))
