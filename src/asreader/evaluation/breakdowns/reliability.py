"""Systems -> tables of how far their confidence can be trusted: calibration, answering only when sure, mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from asreader.evaluation.breakdowns.breakdown_table import Cell, Table
from asreader.evaluation.breakdowns.systems import NO_CANDIDATE, System
from asreader.evaluation.calibration import measure_coverage, measure_reliability
from asreader.evaluation.metrics import compute_wilson_interval

CURVE_POINTS = 50
"""Points of the curve of accuracy against the share of questions answered."""
MAX_MISTAKES = 20


def tabulate_calibration(systems: Sequence[System]) -> Table:
    """Reliability in bins of equally many answers. Runs are pooled; the interval counts each question once."""
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        found, runs = measure_reliability(system.chosen_predictions), len(system.runs)
        for number, part in enumerate(found.bins, start=1):
            interval = compute_wilson_interval(part.accuracy, max(1, part.questions // runs))
            rows.append(
                (system.name, number, part.confidence, part.questions / runs, part.accuracy, *interval, found.error)
            )
    header = ("system", "bin", "confidence", "questions", "accuracy", "low", "high", "expected calibration error")
    return Table(header, tuple(rows))


def tabulate_coverage(systems: Sequence[System]) -> Table:
    """Accuracy when only answers of at least some confidence are given, from few to all. Runs are pooled."""
    header = ("system", "least confidence", "answered", "questions", "accuracy", "low", "high")
    return Table(header, tuple(row for system in systems for row in _covered(system)))


def _covered(system: System) -> Iterator[tuple[Cell, ...]]:
    """For each share of the answers the highest confidence that still gives as many; each such confidence once."""
    curve, every = measure_coverage(system.chosen_predictions), len(system.questions)
    wanted = np.arange(1, CURVE_POINTS + 1) / CURVE_POINTS - 1e-9
    places = len(curve.coverage) - 1 - np.searchsorted(curve.coverage[::-1], wanted)
    for place in dict.fromkeys(places.tolist()):
        answered, accuracy = float(curve.coverage[place]), float(curve.accuracy[place])
        interval = compute_wilson_interval(accuracy, max(1, int(answered * every + 1e-9)))
        yield system.name, float(curve.thresholds[place]), answered, answered * every, accuracy, *interval


def tabulate_mistakes(systems: Sequence[System], most: int = MAX_MISTAKES) -> Table:
    """The wrong answers that a system was surest of; several runs speak as their average."""
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        chosen = system.average_choices
        wrong = np.flatnonzero((chosen.indices != system.aligned.answers) | (chosen.indices == NO_CANDIDATE))
        surest = wrong[np.argsort(-chosen.confidence[wrong], kind="stable")][:most]
        for number in surest.tolist():
            one, place = system.aligned.questions[number], int(chosen.indices[number])
            said = None if place == NO_CANDIDATE else one.candidates[place]
            rows.append((system.name, one.id, one.answer, said, float(chosen.confidence[number])))
    return Table(("system", "id", "answer", "said", "confidence"), tuple(rows))
