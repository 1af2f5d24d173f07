"""Systems -> tables of how far their confidence can be trusted: calibration, answering only when sure, mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from asreader.evaluation.breakdowns.breakdown_table import Cell, Table
from asreader.evaluation.breakdowns.systems import NONE, System
from asreader.evaluation.calibration import calibration, coverage
from asreader.evaluation.metrics import wilson

STEPS = 50
"""Points of the curve of accuracy against the share of questions answered."""
MISTAKES = 20


def calibration_table(systems: Sequence[System]) -> Table:
    """Reliability in bins of equally many answers. Runs are pooled; the interval counts each question once."""
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        found, runs = calibration(system.answers), len(system.runs)
        for number, part in enumerate(found.bins, start=1):
            interval = wilson(part.accuracy, max(1, part.questions // runs))
            rows.append(
                (system.name, number, part.confidence, part.questions / runs, part.accuracy, *interval, found.error)
            )
    header = ("system", "bin", "confidence", "questions", "accuracy", "low", "high", "expected calibration error")
    return Table(header, tuple(rows))


def coverage_table(systems: Sequence[System]) -> Table:
    """Accuracy when only answers of at least some confidence are given, from few to all. Runs are pooled."""
    header = ("system", "least confidence", "answered", "questions", "accuracy", "low", "high")
    return Table(header, tuple(row for system in systems for row in _covered(system)))


def _covered(system: System) -> Iterator[tuple[Cell, ...]]:
    """For each share of the answers the highest confidence that still gives as many; each such confidence once."""
    curve, every = coverage(system.answers), len(system.questions)
    wanted = np.arange(1, STEPS + 1) / STEPS - 1e-9
    places = len(curve.coverage) - 1 - np.searchsorted(curve.coverage[::-1], wanted)
    for place in dict.fromkeys(places.tolist()):
        answered, accuracy = float(curve.coverage[place]), float(curve.accuracy[place])
        interval = wilson(accuracy, max(1, int(answered * every + 1e-9)))
        yield system.name, float(curve.thresholds[place]), answered, answered * every, accuracy, *interval


def mistakes_table(systems: Sequence[System], most: int = MISTAKES) -> Table:
    """The wrong answers that a system was surest of; several runs speak as their average."""
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        chosen = system.together
        wrong = np.flatnonzero((chosen.places != system.said.answers) | (chosen.places == NONE))
        surest = wrong[np.argsort(-chosen.confidence[wrong], kind="stable")][:most]
        for number in surest.tolist():
            one, place = system.said.questions[number], int(chosen.places[number])
            said = None if place == NONE else one.candidates[place]
            rows.append((system.name, one.id, one.answer, said, float(chosen.confidence[number])))
    return Table(("system", "id", "answer", "said", "confidence"), tuple(rows))
