"""Systems of several runs -> tables of how alike the runs answer: what an ensemble lives on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from asreader.evaluation.breakdowns.breakdown_table import Cell, Table
from asreader.evaluation.breakdowns.systems import System


def tabulate_correct_runs(systems: Sequence[System]) -> Table:
    """How many questions 0, 1, 2... all runs answer rightly."""
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        counts = np.bincount(system.correct.sum(axis=0), minlength=len(system.runs) + 1).tolist()
        rows += [(system.name, right, count, count / len(system.questions)) for right, count in enumerate(counts)]
    return Table(("system", "runs right", "questions", "share"), tuple(rows))


def tabulate_agreement(systems: Sequence[System]) -> Table:
    """For each two runs the share of questions to which they give the same answer."""
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        same = compute_pairwise_agreement(system)
        for (one, name), (two, other) in product(enumerate(label_runs(system.runs)), repeat=2):
            rows.append((system.name, name, other, float(same[one, two])))
    return Table(("system", "run", "other run", "same answer"), tuple(rows))


def compute_pairwise_agreement(system: System) -> NDArray[np.float64]:
    """Runs by runs: the share of questions to which both give the same answer."""
    return np.array([(system.run_choices.indices == own).mean(axis=1) for own in system.run_choices.indices])


def label_runs(runs: Sequence[str]) -> list[str]:
    """The names of the runs; numbers where names are the same."""
    return list(runs) if len(set(runs)) == len(runs) else [f"{number} {run}" for number, run in enumerate(runs, 1)]
