"""Systems -> Figures: the tables, plots and captions of all figures, among them section 6 and appendix B of the paper.

This module only computes; `drawing` draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from asreader.charts.figure_spec import Figure, MissingFigure, Plot, PlotAxis, PlotShape
from asreader.data.statistics import RANKS
from asreader.evaluation.breakdowns import accuracy_by, agreement, reliability
from asreader.evaluation.breakdowns.accuracy_by import name_data_sets
from asreader.evaluation.breakdowns.breakdown_table import Table, flatten_text
from asreader.evaluation.breakdowns.slices import BUCKETS, NOT_FOUND, Ints, QuestionFacts
from asreader.evaluation.breakdowns.systems import System
from asreader.system.progress import print_status


def build_figures(systems: Sequence[System], report_missing: Callable[[str], None] = print_status) -> list[Figure]:
    """All figures that the systems and their data allow; `report_missing` gets one line for each other figure."""
    if not systems:
        raise ValueError("there is no system to draw")
    figures = []
    for name, build in FIGURE_BUILDERS.items():
        figure = build(name, systems)
        if isinstance(figure, Figure):
            order = name_data_sets(systems) if figure.table.header[0] == "data" else _list_names(systems)
            figures.append(replace(figure, order=tuple(order)))
        else:
            report_missing(str(figure))
    return figures


_INTERVAL = ("low", "high")
_SAME_COUNT = "every question has the same number of candidates"
_ACCURACY = PlotAxis("accuracy", "accuracy (%)", percent=True)
_INTERVAL_NOTE = (
    "Bands and bars are 95% intervals: Wilson's for the choice of questions; where a system is several runs, the mean "
    "over the runs is drawn and the variance between runs widens the interval."
)


def _build_accuracy_by_length(name: str, systems: Sequence[System]) -> Figure:
    return Figure(
        name,
        "Accuracy against the length of the document",
        f"The questions of each data set are split into {BUCKETS} buckets of equal size by the length of the document; "
        f"a marker is at the mean length and the accuracy of a bucket. {_INTERVAL_NOTE} "
        "A falling line: long documents are harder.",
        accuracy_by.tabulate_by_length(systems),
        (Plot(PlotShape.CURVE, PlotAxis("words", "document length (words)"), _ACCURACY, interval=_INTERVAL),),
    )


def _build_lengths(name: str, systems: Sequence[System]) -> Figure:
    title, label = "Lengths of the documents", "document length (words)"
    return _build_distribution(name, name_data_sets(systems), lambda questions: questions.lengths, title, label)


def _build_accuracy_by_candidates(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    drawn = [system for system in systems if _is_varied(system.questions.candidates)]
    if not drawn:
        return MissingFigure(name, _explain_same_count(systems))
    omitted = _format_omitted(_list_names(systems), _list_names(drawn), _SAME_COUNT)
    return Figure(
        name,
        "Accuracy against the number of candidates",
        f"The questions are split into about {BUCKETS} buckets of similar size by their number of candidates, equal "
        f"numbers together; a marker is at the mean number and the accuracy of a bucket. {_INTERVAL_NOTE} "
        f"Guessing answers one in that many correctly.{omitted}",
        accuracy_by.tabulate_by_candidates(drawn),
        (Plot(PlotShape.CURVE, PlotAxis("candidates", "candidates (number)"), _ACCURACY, interval=_INTERVAL),),
    )


def _build_candidate_counts(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    data = name_data_sets(systems)
    drawn = {name: questions for name, questions in data.items() if _is_varied(questions.candidates)}
    if not drawn:
        return MissingFigure(name, _explain_same_count(systems))
    figure = _build_distribution(
        name, drawn, lambda questions: questions.candidates, "Numbers of candidates", "candidates (number)"
    )
    return replace(figure, caption=figure.caption + _format_omitted(list(data), list(drawn), _SAME_COUNT))


def _build_accuracy_by_answer_rank(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    if not any(_has_ranked_answers(system.questions) for system in systems):
        return MissingFigure(name, "no answer is among its candidates")
    rank = PlotAxis("n", "n")
    up_to = PlotAxis("accuracy up to n", "accuracy (%)", percent=True)
    return Figure(
        name,
        "Accuracy by how frequent the answer is in the document",
        f"Left: accuracy on questions whose answer is the n-th most frequent candidate of the document, n = 1 to "
        f"{RANKS}; right: whose answer is among the n most frequent. Candidates that are equally frequent share their "
        f"places: such a question counts partly for each of them. {_INTERVAL_NOTE} "
        "A falling line: the reader favours frequent candidates.",
        accuracy_by.tabulate_by_rank(systems),
        (
            Plot(PlotShape.POINTS, rank, _ACCURACY, "answer is the n-th most frequent candidate", _INTERVAL),
            Plot(PlotShape.POINTS, rank, up_to, "answer is among the n most frequent", ("low up to n", "high up to n")),
        ),
    )


def _build_answer_ranks(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    if not any(_has_ranked_answers(system.questions) for system in systems):
        return MissingFigure(name, "no answer is among its candidates")
    data_sets = name_data_sets(systems)
    table = accuracy_by.tabulate_ranks(data_sets)
    counts = {data: sum(_list_numbers(table.select_rows("data", data), "questions")) for data in data_sets}
    rest = "; ".join(
        f"{abs(round(len(questions) - counts[data])):,} in {flatten_text(data)}"
        for data, questions in data_sets.items()
    )
    return Figure(
        name,
        "How frequent the answer is in the document",
        "The number of questions whose answer is the n-th most frequent candidate of the document. Candidates that are "
        "equally frequent share their places, so that a question may count partly for several of them. "
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


def _build_calibration(name: str, systems: Sequence[System]) -> Figure:
    table = reliability.tabulate_calibration(systems)
    errors = {str(row["system"]): row["expected calibration error"] for row in table.iterate_records()}
    summary = "; ".join(
        f"{flatten_text(system)} {100 * float(error or 0):.1f} points" for system, error in errors.items()
    )
    return Figure(
        name,
        "Calibration: confidence and accuracy",
        "The answers are split into ten bins of equal size by their confidence (the probability of the chosen "
        "candidate); a marker is at the mean confidence and the accuracy of a bin. Bands are 95% Wilson intervals; "
        "several runs are pooled, each question counted once. On the diagonal confidence equals accuracy; below "
        f"it the system is overconfident. Expected calibration error, the mean distance from it: {summary}.",
        table,
        (
            Plot(
                PlotShape.CURVE,
                PlotAxis("confidence", "confidence (%)", True),
                _ACCURACY,
                interval=_INTERVAL,
                diagonal=True,
            ),
        ),
    )


def _build_accuracy_by_coverage(name: str, systems: Sequence[System]) -> Figure:
    answered = PlotAxis("answered", "questions answered (%)", percent=True)
    least = PlotAxis("least confidence", "least confidence asked for (%)", percent=True)
    return Figure(
        name,
        "Accuracy of the most confident answers",
        "Left: accuracy on the most confident fraction of the answers. Right: the fraction of questions that is "
        "answered if a minimum confidence is required. Bands are 95% Wilson intervals; several runs are pooled, "
        "each question counted once. A line that rises to the left: confidence separates right from wrong.",
        reliability.tabulate_coverage(systems),
        (
            Plot(PlotShape.CURVE, answered, _ACCURACY, "accuracy of what is answered", _INTERVAL),
            Plot(PlotShape.CURVE, least, answered, "how much is answered"),
        ),
    )


def _build_accuracy_by_answer_type(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    table = accuracy_by.tabulate_by_answer_type(systems)
    kinds = sorted(set(map(str, table.column("answer"))))
    if len(kinds) < 2:
        return MissingFigure(name, f"all answers are of one type ({kinds[0]})")
    return Figure(
        name,
        "Accuracy by type of answer",
        "The type is determined by the characters: an @entity, several words, a number, a first letter that is capital "
        f"or lower case, or letters without case. {_INTERVAL_NOTE}",
        table,
        (Plot(PlotShape.POINTS, PlotAxis("answer", "answer"), _ACCURACY, interval=_INTERVAL),),
    )


def _build_accuracy_by_distance(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    drawn = [system for system in systems if (system.questions.distances != NOT_FOUND).any()]
    if not drawn:
        return MissingFigure(name, "no answer is in its document")
    missing = "; ".join(
        f"{(questions.distances == NOT_FOUND).sum():,} in {flatten_text(data)}"
        for data, questions in name_data_sets(systems).items()
    )
    return Figure(
        name,
        "Accuracy against the distance of the answer from the question",
        "The question follows the document: the distance is the number of words after the last mention of the answer. "
        f"The questions are split into about {BUCKETS} buckets of similar size, equal distances together. "
        f"{_INTERVAL_NOTE} Answers that are not in the document are not drawn: {missing}.",
        accuracy_by.tabulate_by_distance(drawn),
        (
            Plot(
                PlotShape.CURVE,
                PlotAxis("words", "words behind the answer's last mention"),
                _ACCURACY,
                interval=_INTERVAL,
            ),
        ),
    )


def _build_accuracy_by_known_answer(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    drawn = [system for system in systems if system.vocabulary is not None]
    if not drawn:
        return MissingFigure(name, "no vocabulary is known; name a run (or a folder of runs with one vocabulary)")
    table = accuracy_by.tabulate_by_vocabulary(drawn)
    if not any(row["answer"] == accuracy_by.OUT_OF_VOCABULARY and row["questions"] for row in table.iterate_records()):
        return MissingFigure(name, "every answer is in the vocabulary")
    return Figure(
        name,
        "Accuracy on known and unknown answers",
        "An answer is known if all of its words are in the vocabulary. "
        f"{_INTERVAL_NOTE}{_format_omitted(_list_names(systems), _list_names(drawn), 'no vocabulary is known')}",
        table,
        (Plot(PlotShape.POINTS, PlotAxis("answer", "answer"), _ACCURACY, interval=_INTERVAL),),
    )


def _build_runs_right(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    drawn = [system for system in systems if len(system.runs) > 1]
    if not drawn:
        return MissingFigure(name, "it needs several runs; name a folder of runs")
    return Figure(
        name,
        "How many runs are right",
        "The number of questions that 0, 1, 2... all runs of a system answer correctly. No vote among the runs can "
        "answer the first bar; an ensemble can gain on the questions between the first and the last bar.",
        agreement.tabulate_correct_runs(drawn),
        (Plot(PlotShape.BARS, PlotAxis("runs right", "runs that are right"), PlotAxis("questions", "questions")),),
    )


def _build_runs_alike(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    drawn = [system for system in systems if len(system.runs) > 1]
    if not drawn:
        return MissingFigure(name, "it needs several runs; name a folder of runs")
    value = PlotAxis("same answer", "same answer (%)", percent=True)
    return Figure(
        name,
        "How often two runs give the same answer",
        "The fraction of questions to which two runs give the same answer, right or wrong. Runs of equal accuracy that "
        "agree less gain more as an ensemble.",
        agreement.tabulate_agreement(drawn),
        (Plot(PlotShape.MATRIX, PlotAxis("run", ""), PlotAxis("other run", ""), value=value),),
    )


def _build_confident_mistakes(name: str, systems: Sequence[System]) -> Figure | MissingFigure:
    table = reliability.tabulate_mistakes(systems)
    if not table.rows:
        return MissingFigure(name, "there is no mistake")
    return Figure(
        name,
        "Most confident mistakes",
        f"Up to {reliability.MAX_MISTAKES} wrong answers of each system, the most confident first; several runs are "
        "averaged.",
        table,
    )


FIGURE_BUILDERS: Mapping[str, Callable[[str, Sequence[System]], Figure | MissingFigure]] = {
    "accuracy-by-length": _build_accuracy_by_length,
    "lengths": _build_lengths,
    "accuracy-by-candidates": _build_accuracy_by_candidates,
    "candidates": _build_candidate_counts,
    "accuracy-by-answer-rank": _build_accuracy_by_answer_rank,
    "answer-ranks": _build_answer_ranks,
    "calibration": _build_calibration,
    "accuracy-by-coverage": _build_accuracy_by_coverage,
    "accuracy-by-answer-type": _build_accuracy_by_answer_type,
    "accuracy-by-distance": _build_accuracy_by_distance,
    "accuracy-by-known-answer": _build_accuracy_by_known_answer,
    "runs-right": _build_runs_right,
    "runs-alike": _build_runs_alike,
    "confident-mistakes": _build_confident_mistakes,
}
"""The builder of each figure by its file name, in the order of the index."""


def _build_distribution(
    name: str, sets: Mapping[str, QuestionFacts], values: Callable[[QuestionFacts], Ints], title: str, label: str
) -> Figure:
    table = accuracy_by.tabulate_distribution({data: values(questions) for data, questions in sets.items()})
    means = "; ".join(f"{values(questions).mean():,.1f} in {flatten_text(data)}" for data, questions in sets.items())
    beyond = " The last bin is open." if None in table.column("to") else ""
    return Figure(
        name,
        title,
        f"The fraction of questions in bins of equal width.{beyond} Mean: {means}.",
        table,
        (
            Plot(
                PlotShape.HISTOGRAM,
                PlotAxis("from", label),
                PlotAxis("share", "questions (%)", percent=True),
                end_column="to",
            ),
        ),
    )


def _is_varied(values: Ints) -> bool:
    return len(np.unique(values)) > 1


def _has_ranked_answers(questions: QuestionFacts) -> bool:
    return bool((questions.more_frequent != NOT_FOUND).any())


def _explain_same_count(systems: Sequence[System]) -> str:
    numbers = sorted({int(number) for system in systems for number in system.questions.candidates})
    return f"{_SAME_COUNT} ({', '.join(map(str, numbers))})"


def _format_omitted(names: Sequence[str], drawn: Sequence[str], reason: str) -> str:
    omitted = [flatten_text(name) for name in names if name not in drawn]
    return f" Not drawn, because {reason}: {', '.join(omitted)}." if omitted else ""


def _list_names(systems: Sequence[System]) -> list[str]:
    return [system.name for system in systems]


def _list_numbers(table: Table, column: str) -> list[float]:
    return [float(cell) for cell in table.column(column) if cell is not None]
