"""Systems of several runs -> tables of the agreement between the runs, on which the gain of an ensemble depends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from asreader.evaluation.breakdowns.breakdown_table import Cell, Table
from asreader.evaluation.breakdowns.systems import System


def tabulate_correct_runs(systems: Sequence[System]) -> Table:
    """How many questions are answered correctly by 0, 1, 2, ... all runs."""
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        counts = np.bincount(system.correct.sum(axis=0), minlength=len(system.runs) + 1).tolist()
        rows += [(system.name, correct, count, count / len(system.questions)) for correct, count in enumerate(counts)]
    return Table(("system", "runs right", "questions", "share"), tuple(rows))


def tabulate_agreement(systems: Sequence[System]) -> Table:
    """For each pair of runs the fraction of questions with the same answer."""
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        agreement = compute_pairwise_agreement(system)
        for (first, name), (second, other) in product(enumerate(label_runs(system.runs)), repeat=2):
            rows.append((system.name, name, other, float(agreement[first, second])))
    return Table(("system", "run", "other run", "same answer"), tuple(rows))


def compute_pairwise_agreement(system: System) -> NDArray[np.float64]:
    """Runs by runs: the fraction of questions with the same answer."""
    indices = system.run_choices.indices
    return np.array([(indices == run).mean(axis=1) for run in indices])


def label_runs(runs: Sequence[str]) -> list[str]:
    """The names of the runs, with numbers if names repeat."""
    return list(runs) if len(set(runs)) == len(runs) else [f"{number} {run}" for number, run in enumerate(runs, 1)]
