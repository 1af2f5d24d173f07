"""Subject -> the results of a report: figures that matter, the paper's table, rules that learn nothing, every run."""

from __future__ import annotations

from collections.abc import Sequence

from asreader import baselines
from asreader.errors import InputError
from asreader.evaluation.metrics import Scores
from asreader.evaluation.result_table import Row
from asreader.pages import run_records
from asreader.pages.page import (
    build_details,
    build_grouped_table,
    build_key_figures,
    build_missing_note,
    build_section_or_error,
    build_table,
    format_setting,
)
from asreader.pages.report_data import ReportData
from asreader.pages.run_records import RunRecord
from asreader.system.markup import Markup, Part, element, isolated, joined, shortened

RULES = {"maximum_frequency": "most frequent candidate", "uniform": "chance"}


def build_results(subject: ReportData) -> Markup:
    if not subject.answered:
        raise InputError("no run has predicted its validation data yet (predictions/valid.jsonl); train it to its end")
    parts = [_facts(subject)]
    if len(subject.answered) < len(subject.records):
        left = [record.name for record in subject.records if record not in subject.answered]
        parts.append(build_missing_note(f"Without predictions and so not counted: {', '.join(map(shortened, left))}."))
    alone = len(subject.answered) == 1 and not subject.paper
    parts.append(_single(subject.answered[0]) if alone else _rows(subject.rows))
    parts.append(build_section_or_error(_rules, subject))
    if len(subject.records) > 1:
        parts.append(_runs(subject))
    return joined(parts)


def _facts(subject: ReportData) -> Markup:
    best = subject.best.scores["valid"]
    interval = f"95% interval {_between(best.interval)}"
    facts = [("validation accuracy", f"{best.accuracy:.1%}", interval)]
    if len(subject.answered) > 1:
        together = [row for row in subject.rows if row.part == "ensembles" and row.valid is not None]
        facts = [("best single run", f"{best.accuracy:.1%}", interval)]
        facts += [(row.name, _percent(row.valid), "") for row in together if "greedy ensemble" in row.name][:1]
        facts.append(("runs", f"{len(subject.records):,}", ""))
    facts.append(
        ("questions", f"{best.questions:,}", f"{best.questions - round(best.accuracy * best.questions):,} wrong")
    )
    validated = [point for point in subject.best.points if point.kind == "valid"]
    if validated:
        facts.append(("steps", f"{subject.best.points[-1].step:,}", f"{len(validated)} validations"))
    return build_key_figures(facts)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _single(record: RunRecord) -> Markup:
    found = record.scores
    rows: list[list[Part]] = [["accuracy", *(_figure(one.accuracy, one.interval) for one in found.values())]]
    tops = [top for top in next(iter(found.values())).accuracy_at if top > 1]
    rows += [[f"answer in the best {top}", *(_share(one.accuracy_at[top]) for one in found.values())] for top in tops]
    rows.append(["questions", *(f"{one.questions:,}" for one in found.values())])
    return build_table(["", *found], rows, caption="In per cent, with 95% intervals", numbers=range(1, len(found) + 1))


def _rows(found: Sequence[Row]) -> Markup:
    """The paper's table; columns without any figure are left out."""
    titles = {"valid": "valid", "test": "test", "paper_valid": "paper, valid", "paper_test": "paper, test"}
    used = {key: title for key, title in titles.items() if any(getattr(row, key) is not None for row in found)}
    body: dict[str, list[list[Part]]] = {}
    for row in found:
        body.setdefault(row.part, []).append([row.name, *(_cell(row, key) for key in used)])
    note = "In per cent, with 95% intervals over questions; ± is the standard deviation between seeds"
    return build_grouped_table(["", *used.values()], body, caption=note, numbers=range(1, len(used) + 1))


def _cell(row: Row, key: str) -> Part:
    value = getattr(row, key)
    if value is None:
        return None
    deviation, interval = (getattr(row, f"{key}_{what}", None) for what in ("deviation", "interval"))
    if deviation is not None:
        return f"{_share(value)} ± {_share(deviation)}"
    return _figure(value, interval) if interval is not None else _share(value)


def _figure(value: float, interval: tuple[float, float]) -> Markup:
    low, high = map(_share, interval)
    return joined([_share(value), " ", element("span", f"{low}–{high}", class_="interval")])


def _rules(subject: ReportData) -> Markup:
    """What rules score on the same questions that learn nothing."""
    said = [
        f"{told} {_share(baselines.evaluate(name, subject.questions).scores.accuracy)}" for name, told in RULES.items()
    ]
    return element("p", f"On the same questions, without learning anything: {'; '.join(said)}.", class_="quiet")


def _runs(subject: ReportData) -> Markup:
    """One line a run, the best first."""
    differ = run_records.find_varied_settings(subject.records)
    splits = [split for split in ("valid", "test") if any(split in record.scores for record in subject.records)]
    header = ["run", *differ, *splits]
    rows = []
    for record in sorted(subject.records, key=lambda record: -record.accuracy):
        own = run_records.flatten_settings(record.settings)
        told = [format_setting(own.get(key)) for key in differ]
        figures = [_accuracy(record.scores.get(split)) for split in splits]
        rows.append([isolated(record.name), *told, *figures])
    numbers = range(1 + len(differ), len(header))
    return build_details(f"all {len(rows)} runs", build_table(header, rows, numbers=numbers))


def _accuracy(found: Scores | None) -> Part:
    return None if found is None else _figure(found.accuracy, found.interval)


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _between(interval: tuple[float, float]) -> str:
    return f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}"
