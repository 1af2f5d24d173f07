"""ReportData -> results section: key figures, the paper's result table, baselines, all runs."""

from __future__ import annotations

from collections.abc import Sequence

from asreader import baselines
from asreader.errors import InputError
from asreader.evaluation.metrics import Scores
from asreader.evaluation.result_table import ResultRow
from asreader.pages.page import (
    KeyFigure,
    build_details,
    build_grouped_table,
    build_key_figures,
    build_missing_note,
    build_section_or_error,
    build_table,
    format_setting,
)
from asreader.pages.report_data import ReportData
from asreader.pages.run_records import RunRecord, find_varied_settings, flatten_complete_settings
from asreader.system.markup import Content, Markup, element, isolate_word, join_content, shorten_word

BASELINES = {"maximum_frequency": "most frequent candidate", "uniform": "chance"}


def build_results(report: ReportData) -> Markup:
    """Key figures, one table of results, the baselines and a folded table of all runs."""
    if not report.scored_runs:
        raise InputError("no run has predicted its validation data yet (predictions/valid.jsonl); train it to its end")
    parts = [_build_key_figures(report)]
    if len(report.scored_runs) < len(report.records):
        unscored = [shorten_word(record.name) for record in report.records if record not in report.scored_runs]
        parts.append(build_missing_note(f"Without predictions and so not counted: {', '.join(unscored)}."))
    if len(report.scored_runs) == 1 and not report.paper:
        parts.append(_build_score_table(report.scored_runs[0]))
    else:
        parts.append(_build_result_table(report.result_rows))
    parts.append(build_section_or_error(_build_baselines, report))
    if len(report.records) > 1:
        parts.append(_build_run_table(report))
    return join_content(parts)


def _build_key_figures(report: ReportData) -> Markup:
    best = report.best_run.scores["valid"]
    low, high = best.interval
    interval = f"95% interval {100 * low:.1f} to {100 * high:.1f}"
    accuracy = f"{best.accuracy:.1%}"
    if len(report.scored_runs) > 1:
        figures = [KeyFigure("best single run", accuracy, interval)]
        figures += _list_ensemble_figures(report.result_rows)[:1]
        figures.append(KeyFigure("runs", f"{len(report.records):,}"))
    else:
        figures = [KeyFigure("validation accuracy", accuracy, interval)]
    wrong = best.questions - round(best.accuracy * best.questions)
    figures.append(KeyFigure("questions", f"{best.questions:,}", f"{wrong:,} wrong"))
    metrics = report.best_run.metrics
    validations = sum(row.kind == "valid" for row in metrics)
    if validations:
        figures.append(KeyFigure("steps", f"{metrics[-1].step:,}", f"{validations} validations"))
    return build_key_figures(figures)


def _list_ensemble_figures(rows: Sequence[ResultRow]) -> list[KeyFigure]:
    """The validation accuracies of the greedy ensembles."""
    return [
        KeyFigure(row.name, f"{row.valid:.1%}")
        for row in rows
        if row.part == "ensembles" and row.valid is not None and "greedy ensemble" in row.name
    ]


def _build_score_table(record: RunRecord) -> Markup:
    """The scores of a single run, one column per split."""
    columns = list(record.scores.values())
    rows: list[list[Content]] = [
        ["accuracy", *(_render_interval(scores.accuracy, scores.interval) for scores in columns)]
    ]
    for top in columns[0].accuracy_at:
        if top > 1:
            accuracies = [_format_percent(scores.accuracy_at[top]) for scores in columns]
            rows.append([f"answer in the best {top}", *accuracies])
    rows.append(["questions", *(f"{scores.questions:,}" for scores in columns)])
    return build_table(
        ["", *record.scores], rows, caption="In per cent, with 95% intervals", numbers=range(1, len(columns) + 1)
    )


def _build_result_table(rows: Sequence[ResultRow]) -> Markup:
    """The paper's table; empty columns are left out."""
    titles = {"valid": "valid", "test": "test", "paper_valid": "paper, valid", "paper_test": "paper, test"}
    columns = {key: title for key, title in titles.items() if any(getattr(row, key) is not None for row in rows)}
    groups: dict[str, list[list[Content]]] = {}
    for row in rows:
        groups.setdefault(row.part, []).append([row.name, *(_render_cell(row, column) for column in columns)])
    caption = "In per cent, with 95% intervals over questions; ± is the standard deviation between seeds"
    return build_grouped_table(["", *columns.values()], groups, caption=caption, numbers=range(1, len(columns) + 1))


def _render_cell(row: ResultRow, column: str) -> Content:
    """An accuracy with its standard deviation or its interval, if there is one."""
    accuracy = getattr(row, column)
    if accuracy is None:
        return None
    deviation = getattr(row, f"{column}_deviation", None)
    if deviation is not None:
        return f"{_format_percent(accuracy)} ± {_format_percent(deviation)}"
    interval = getattr(row, f"{column}_interval", None)
    return _format_percent(accuracy) if interval is None else _render_interval(accuracy, interval)


def _render_interval(accuracy: float, interval: tuple[float, float]) -> Markup:
    low, high = map(_format_percent, interval)
    return join_content([_format_percent(accuracy), " ", element("span", f"{low}–{high}", class_="interval")])


def _build_baselines(report: ReportData) -> Markup:
    """The accuracies of baselines that learn nothing, on the same questions."""
    accuracies = [
        f"{title} {_format_percent(baselines.evaluate_baseline(name, report.questions).scores.accuracy)}"
        for name, title in BASELINES.items()
    ]
    return element("p", f"On the same questions, without learning anything: {'; '.join(accuracies)}.", class_="quiet")


def _build_run_table(report: ReportData) -> Markup:
    """One row per run, the best first, with the settings that vary."""
    varied = find_varied_settings(report.records)
    splits = [split for split in ("valid", "test") if any(split in record.scores for record in report.records)]
    header = ["run", *varied, *splits]
    rows = []
    for record in sorted(report.records, key=lambda record: -record.accuracy):
        settings = flatten_complete_settings(record.settings)
        values = [format_setting(settings.get(key)) for key in varied]
        accuracies = [_render_accuracy(record.scores.get(split)) for split in splits]
        rows.append([isolate_word(record.name), *values, *accuracies])
    numbers = range(1 + len(varied), len(header))
    return build_details(f"all {len(rows)} runs", build_table(header, rows, numbers=numbers))


def _render_accuracy(scores: Scores | None) -> Content:
    return None if scores is None else _render_interval(scores.accuracy, scores.interval)


def _format_percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}"
