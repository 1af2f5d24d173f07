"""Systems -> tables of the quality of their confidence: calibration, accuracy against coverage, confident mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from asreader.evaluation.breakdowns.breakdown_table import Cell, Table
from asreader.evaluation.breakdowns.systems import NO_CANDIDATE, System
from asreader.evaluation.calibration import measure_coverage, measure_reliability
from asreader.evaluation.metrics import compute_wilson_interval

CURVE_POINTS = 50
"""Points of the curve of accuracy against coverage."""
MAX_MISTAKES = 20


def tabulate_calibration(systems: Sequence[System]) -> Table:
    """Reliability in bins of equal size. Runs are pooled; the interval counts each question once."""
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        curve, runs = measure_reliability(system.chosen_predictions), len(system.runs)
        for number, part in enumerate(curve.bins, start=1):
            interval = compute_wilson_interval(part.accuracy, max(1, part.questions // runs))
            rows.append(
                (system.name, number, part.confidence, part.questions / runs, part.accuracy, *interval, curve.error)
            )
    header = ("system", "bin", "confidence", "questions", "accuracy", "low", "high", "expected calibration error")
    return Table(header, tuple(rows))


def tabulate_coverage(systems: Sequence[System]) -> Table:
    """Accuracy on the most confident answers, by rising coverage. Runs are pooled."""
    header = ("system", "least confidence", "answered", "questions", "accuracy", "low", "high")
    return Table(header, tuple(row for system in systems for row in _iterate_coverage(system)))


def _iterate_coverage(system: System) -> Iterator[tuple[Cell, ...]]:
    """For each coverage the highest threshold that reaches it; each threshold once."""
    curve, questions = measure_coverage(system.chosen_predictions), len(system.questions)
    wanted = np.arange(1, CURVE_POINTS + 1) / CURVE_POINTS - 1e-9
    indices = len(curve.coverage) - 1 - np.searchsorted(curve.coverage[::-1], wanted)
    for index in dict.fromkeys(indices.tolist()):
        answered, accuracy = float(curve.coverage[index]), float(curve.accuracy[index])
        interval = compute_wilson_interval(accuracy, max(1, int(answered * questions + 1e-9)))
        yield system.name, float(curve.thresholds[index]), answered, answered * questions, accuracy, *interval


def tabulate_mistakes(systems: Sequence[System], most: int = MAX_MISTAKES) -> Table:
    """The most confident wrong answers of a system; several runs are averaged."""
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        chosen = system.average_choices
        wrong = np.flatnonzero((chosen.indices != system.aligned.answers) | (chosen.indices == NO_CANDIDATE))
        most_confident = wrong[np.argsort(-chosen.confidence[wrong], kind="stable")][:most]
        for row in most_confident.tolist():
            question, index = system.aligned.questions[row], int(chosen.indices[row])
            choice = None if index == NO_CANDIDATE else question.candidates[index]
            rows.append((system.name, question.id, question.answer, choice, float(chosen.confidence[row])))
    return Table(("system", "id", "answer", "said", "confidence"), tuple(rows))
