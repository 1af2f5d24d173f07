"""Systems -> Figures: the numbers of the paper's section 6 and appendix B and more, with words to read them by.

Computing only: `plots` draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from asreader.data.statistics import RANKS
from asreader.evaluation.breakdowns import accuracy_by, agreement, reliability
from asreader.evaluation.breakdowns.accuracy_by import data_sets
from asreader.evaluation.breakdowns.breakdown_table import Table, plain
from asreader.evaluation.breakdowns.slices import BUCKETS, NOWHERE, Ints, Questions
from asreader.evaluation.breakdowns.systems import System
from asreader.system.progress import say


class PlotShape(StrEnum):
    """How numbers become marks."""

    CURVE = "curve"  # a line through markers, its interval as a band
    POINTS = "points"  # a marker with its interval over each name
    BARS = "bars"  # a bar over each name
    HISTOGRAM = "histogram"  # the outline of a distribution
    MATRIX = "matrix"  # a square for each pair


@dataclass(frozen=True, slots=True)
class PlotAxis:
    """A column of the table and what is written beside the axis; shares of 1 are shown in per cent."""

    column: str
    label: str
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """One pair of axes. `until` ends the bins of a histogram, `shade` is what a matrix shows."""

    shape: PlotShape
    x: PlotAxis
    y: PlotAxis
    title: str = ""
    interval: tuple[str, str] | None = None
    until: str = ""
    shade: PlotAxis | None = None
    diagonal: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """What is drawn, and how to read it. Without plots it is a table alone.

    The first column of the table names the lines of the drawing; `order` has all such names, so that a system looks
    the same in every figure.
    """

    name: str
    title: str
    caption: str
    table: Table
    plots: tuple[Plot, ...] = ()
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingFigure:
    """A figure that the systems or their data cannot give, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: left out, because {self.reason}"


def build_figures(systems: Sequence[System], left_out: Callable[[str], None] = say) -> list[Figure]:
    """Every figure that these systems and their data can give; `left_out` hears, in a line each, what they cannot."""
    if not systems:
        raise ValueError("there is no system to draw")
    found = []
    for name, maker in FIGURE_BUILDERS.items():
        made = maker(name, systems)
        if isinstance(made, Figure):
            order = data_sets(systems) if made.table.header[0] == "data" else _names(systems)
            found.append(replace(made, order=tuple(order)))
        else:
            left_out(str(made))
    return found


_SHARES = ("low", "high")
_SAME = "every question has the same number of candidates"
_ACCURACY = PlotAxis("accuracy", "accuracy (%)", percent=True)
_BANDS = (
    "Bands and bars are 95% intervals: Wilson's for the choice of questions; where a system is several runs, the mean "
    "over the runs is drawn and their spread widens the interval."
)


def _accuracy_by_length(name: str, systems: Sequence[System]) -> Figure:
    return Figure(
        name,
        "Accuracy against the length of the document",
        f"The questions of each data set were put into {BUCKETS} buckets of equal size by the length of the document; "
        f"a marker stands at the mean length and the accuracy of a bucket. {_BANDS} "
        "A falling line: long documents are harder.",
        accuracy_by.by_length(systems),
        (Plot(PlotShape.CURVE, PlotAxis("words", "document length (words)"), _ACCURACY, interval=_SHARES),),
    )


def _lengths(name: str, systems: Sequence[System]) -> Figure:
    title, label = "Lengths of the documents", "document length (words)"
    return _distribution(name, data_sets(systems), lambda asked: asked.lengths, title, label)


def _accuracy_by_candidates(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    drawn = [system for system in systems if _varied(system.questions.candidates)]
    if not drawn:
        return MissingFigure(name, _constant(systems))
    absent = _absent(_names(systems), _names(drawn), _SAME)
    return Figure(
        name,
        "Accuracy against the number of candidates",
        f"The questions were put into about {BUCKETS} buckets of like size by their number of candidates, equal "
        f"numbers together; a marker stands at the mean number and the accuracy of a bucket. {_BANDS} "
        f"Guessing would get one in that many right.{absent}",
        accuracy_by.by_candidates(drawn),
        (Plot(PlotShape.CURVE, PlotAxis("candidates", "candidates (number)"), _ACCURACY, interval=_SHARES),),
    )


def _candidates(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    sets = data_sets(systems)
    drawn = {data: asked for data, asked in sets.items() if _varied(asked.candidates)}
    if not drawn:
        return MissingFigure(name, _constant(systems))
    made = _distribution(name, drawn, lambda asked: asked.candidates, "Numbers of candidates", "candidates (number)")
    return replace(made, caption=made.caption + _absent(list(sets), list(drawn), _SAME))


def _accuracy_by_rank(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    if not any(_ranked(system.questions) for system in systems):
        return MissingFigure(name, "no answer is among its candidates")
    rank = PlotAxis("n", "n")
    up_to = PlotAxis("accuracy up to n", "accuracy (%)", percent=True)
    return Figure(
        name,
        "Accuracy by how frequent the answer is in the document",
        f"Left: accuracy on questions whose answer is the n-th most frequent candidate of the document, n = 1 to "
        f"{RANKS}; right: whose answer is among the n most frequent. Candidates that are equally frequent share their "
        f"places: such a question counts for each of them in part. {_BANDS} "
        "A falling line: the reader leans on what is mentioned often.",
        accuracy_by.by_rank(systems),
        (
            Plot(PlotShape.POINTS, rank, _ACCURACY, "answer is the n-th most frequent candidate", _SHARES),
            Plot(PlotShape.POINTS, rank, up_to, "answer is among the n most frequent", ("low up to n", "high up to n")),
        ),
    )


def _ranks(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    if not any(_ranked(system.questions) for system in systems):
        return MissingFigure(name, "no answer is among its candidates")
    table = accuracy_by.ranks(data_sets(systems))
    rest = "; ".join(
        f"{abs(round(len(asked) - sum(_numbers(table.where('data', data), 'questions')))):,} in {plain(data)}"
        for data, asked in data_sets(systems).items()
    )
    return Figure(
        name,
        "How frequent the answer is in the document",
        "The number of questions whose answer is the n-th most frequent candidate of the document. Candidates that are "
        "equally frequent share their places, so that a question may count for several of them in part. "
        f"Answers beyond the first {RANKS} places or not among the candidates: {rest}.",
        table,
        (
            Plot(
                PlotShape.BARS,
                PlotAxis("n", "answer is the n-th most frequent candidate"),
                PlotAxis("questions", "questions"),
            ),
        ),
    )


def _calibration(name: str, systems: Sequence[System]) -> Figure:
    table = reliability.calibration_table(systems)
    errors = {str(row["system"]): row["expected calibration error"] for row in table.records()}
    told = "; ".join(f"{plain(system)} {100 * float(error or 0):.1f} points" for system, error in errors.items())
    return Figure(
        name,
        "Calibration: is the confidence deserved?",
        "The answers were put into ten bins of equal size by their confidence (the probability of the chosen "
        "candidate); a marker stands at the mean confidence and the accuracy of a bin. Bands are 95% Wilson intervals; "
        "several runs are pooled, each question counted once. On the diagonal confidence is deserved; below it the "
        f"system is too sure. Expected calibration error, the mean distance from it: {told}.",
        table,
        (
            Plot(
                PlotShape.CURVE,
                PlotAxis("confidence", "confidence (%)", True),
                _ACCURACY,
                interval=_SHARES,
                diagonal=True,
            ),
        ),
    )


def _coverage(name: str, systems: Sequence[System]) -> Figure:
    answered = PlotAxis("answered", "questions answered (%)", percent=True)
    least = PlotAxis("least confidence", "least confidence asked for (%)", percent=True)
    return Figure(
        name,
        "Answering only when sure",
        "Left: accuracy on the questions that are answered, when only the surest part of all is. Right: how many are "
        "answered when a certain confidence is asked for. Bands are 95% Wilson intervals; several runs are pooled, "
        "each question counted once. A line that rises to the left: the confidence tells right answers from wrong.",
        reliability.coverage_table(systems),
        (
            Plot(PlotShape.CURVE, answered, _ACCURACY, "accuracy of what is answered", _SHARES),
            Plot(PlotShape.CURVE, least, answered, "how much is answered"),
        ),
    )


def _accuracy_by_kind(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    table = accuracy_by.by_kind(systems)
    kinds = sorted(set(map(str, table.column("answer"))))
    if len(kinds) < 2:
        return MissingFigure(name, f"all answers are of one type ({kinds[0]})")
    return Figure(
        name,
        "Accuracy by type of answer",
        "Types are told by letters alone: an @entity, several words, a number, a first letter that is capital or "
        f"lower case, or letters without case. {_BANDS}",
        table,
        (Plot(PlotShape.POINTS, PlotAxis("answer", "answer"), _ACCURACY, interval=_SHARES),),
    )


def _accuracy_by_distance(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    drawn = [system for system in systems if (system.questions.distances != NOWHERE).any()]
    if not drawn:
        return MissingFigure(name, "no answer stands in its document")
    nowhere = "; ".join(
        f"{(asked.distances == NOWHERE).sum():,} in {plain(data)}" for data, asked in data_sets(systems).items()
    )
    return Figure(
        name,
        "Accuracy against the distance of the answer from the question",
        "The question follows the document: the distance is the number of words behind the last mention of the answer. "
        f"The questions were put into about {BUCKETS} buckets of like size, equal distances together. {_BANDS} "
        f"Answers that are not in the document are not drawn: {nowhere}.",
        accuracy_by.by_distance(drawn),
        (
            Plot(
                PlotShape.CURVE,
                PlotAxis("words", "words behind the answer's last mention"),
                _ACCURACY,
                interval=_SHARES,
            ),
        ),
    )


def _accuracy_by_knowledge(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    drawn = [system for system in systems if system.vocabulary is not None]
    if not drawn:
        return MissingFigure(name, "no vocabulary is known; name a run (or a folder of runs with one vocabulary)")
    table = accuracy_by.by_knowledge(drawn)
    if not any(row["answer"] == accuracy_by.STRANGE and row["questions"] for row in table.records()):
        return MissingFigure(name, "every answer is in the vocabulary")
    return Figure(
        name,
        "Accuracy on known and unknown answers",
        "An answer is known if each of its words has a vector of its own; all others borrow one for the occasion. "
        f"{_BANDS}{_absent(_names(systems), _names(drawn), 'no vocabulary is known')}",
        table,
        (Plot(PlotShape.POINTS, PlotAxis("answer", "answer"), _ACCURACY, interval=_SHARES),),
    )


def _runs_right(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    drawn = [system for system in systems if len(system.runs) > 1]
    if not drawn:
        return MissingFigure(name, "it takes several runs; name a folder of runs")
    return Figure(
        name,
        "How many runs are right",
        "The number of questions that 0, 1, 2... all runs of a system answer rightly. The first bar is out of reach of "
        "any vote among them; what lies between the first and the last is what an ensemble can win.",
        agreement.right_table(drawn),
        (Plot(PlotShape.BARS, PlotAxis("runs right", "runs that are right"), PlotAxis("questions", "questions")),),
    )


def _runs_alike(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    drawn = [system for system in systems if len(system.runs) > 1]
    if not drawn:
        return MissingFigure(name, "it takes several runs; name a folder of runs")
    shade = PlotAxis("same answer", "same answer (%)", percent=True)
    return Figure(
        name,
        "How often two runs give the same answer",
        "The share of questions to which two runs give the same answer, right or wrong. The less alike runs of equal "
        "accuracy are, the more an ensemble of them gains.",
        agreement.pair_table(drawn),
        (Plot(PlotShape.MATRIX, PlotAxis("run", ""), PlotAxis("other run", ""), shade=shade),),
    )


def _mistakes(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    table = reliability.mistakes_table(systems)
    if not table.rows:
        return MissingFigure(name, "there is no mistake")
    return Figure(
        name,
        "Mistakes the systems were surest of",
        f"Of each system up to {reliability.MISTAKES} wrong answers, the most confident first; several runs speak as "
        "their average.",
        table,
    )


FIGURE_BUILDERS: Mapping[str, Callable[[str, Sequence[System]], Figure | MissingFigure]] = {
    "accuracy-by-length": _accuracy_by_length,
    "lengths": _lengths,
    "accuracy-by-candidates": _accuracy_by_candidates,
    "candidates": _candidates,
    "accuracy-by-answer-rank": _accuracy_by_rank,
    "answer-ranks": _ranks,
    "calibration": _calibration,
    "accuracy-by-coverage": _coverage,
    "accuracy-by-answer-type": _accuracy_by_kind,
    "accuracy-by-distance": _accuracy_by_distance,
    "accuracy-by-known-answer": _accuracy_by_knowledge,
    "runs-right": _runs_right,
    "runs-alike": _runs_alike,
    "confident-mistakes": _mistakes,
}
"""What is made, by the name of its files and in the order of the page."""


def _distribution(
    name: str, sets: Mapping[str, Questions], values: Callable[[Questions], Ints], title: str, label: str
) -> Figure:
    table = accuracy_by.distribution({data: values(asked) for data, asked in sets.items()})
    means = "; ".join(f"{values(asked).mean():,.1f} in {plain(data)}" for data, asked in sets.items())
    beyond = " The last bin holds everything beyond." if None in table.column("to") else ""
    return Figure(
        name,
        title,
        f"The share of questions in bins of equal width.{beyond} Mean: {means}.",
        table,
        (
            Plot(
                PlotShape.HISTOGRAM,
                PlotAxis("from", label),
                PlotAxis("share", "questions (%)", percent=True),
                until="to",
            ),
        ),
    )


def _varied(values: Ints) -> bool:
    return len(np.unique(values)) > 1


def _ranked(asked: Questions) -> bool:
    return bool((asked.more_frequent != NOWHERE).any())


def _constant(systems: Sequence[System]) -> str:
    numbers = sorted({int(number) for system in systems for number in system.questions.candidates})
    return f"{_SAME} ({', '.join(map(str, numbers))})"


def _absent(every: Sequence[str], drawn: Sequence[str], why: str) -> str:
    names = [plain(name) for name in every if name not in drawn]
    return f" Not drawn, because {why}: {', '.join(names)}." if names else ""


def _names(systems: Sequence[System]) -> list[str]:
    return [system.name for system in systems]


def _numbers(table: Table, column: str) -> list[float]:
    return [float(cell) for cell in table.column(column) if cell is not None]
