"""a run, or a folder of runs -> one self-contained page: results, curves, settings, data, figures, examples, how to."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from asreader.pages import run_records
from asreader.pages.page import (
    PageSection,
    build_code_block,
    build_details,
    build_missing_note,
    build_section_or_error,
    build_table,
    format_setting,
    render_page,
)
from asreader.pages.report_data import ReportData
from asreader.pages.sections import exhibits, learning_curves
from asreader.pages.sections.results import build_results
from asreader.system import atomic_files
from asreader.system.markup import Markup, element, isolated, joined
from asreader.system.progress import waiting


def write_report(path: Path, out: Path, paper: str | None = None, data: Path | None = None) -> None:
    """The report of a run or of a folder of runs, as one file."""
    with waiting("writing the report"):
        atomic_files.write_text(out, render_report(path, out, paper, data))


def render_report(path: Path, out: Path, paper: str | None = None, data: Path | None = None) -> str:
    """The page. What is missing (data, weights, predictions) is said in its place, and the rest is there."""
    subject = ReportData(path, tuple(run_records.read_run_records(path)), paper, data)
    again = f"asreader report {shlex.quote(str(path))} --out {shlex.quote(str(out))}"
    again += f" --data {shlex.quote(str(data))}" if data else ""
    sections = [
        PageSection("results", "Results", build_section_or_error(build_results, subject)),
        PageSection("curves", "Learning curves", _curves(subject)),
        PageSection("settings", "Settings", _settings(subject)),
        PageSection("data", "Data", build_section_or_error(exhibits.data, subject)),
        PageSection("figures", "Figures", build_section_or_error(exhibits.drawings, subject)),
        PageSection("examples", "Examples", build_section_or_error(exhibits.examples, subject)),
        PageSection("environment", "Environment", _environment(subject)),
        PageSection("again", "How to make it again", _again(subject, again + (f" --paper {paper}" if paper else ""))),
    ]
    return render_page(subject.name, _lead(subject), sections)


def _lead(subject: ReportData) -> Markup:
    count, kinds = len(subject.records), dict.fromkeys(record.settings.reader_name for record in subject.records)
    many = f"{'A reader' if count == 1 else f'{count} readers'} of the kind {', '.join(kinds)}"
    train, valid = (
        Path(name).name or "unnamed data"
        for name in (subject.best.settings.data.train, subject.best.settings.data.valid)
    )
    return joined([f"{many}, trained on ", isolated(train), " and validated on ", isolated(valid), "."])


def _curves(subject: ReportData) -> Markup:
    return learning_curves.build_learning_curves(subject.records) or build_missing_note(
        "Not here: metrics.jsonl has no row yet."
    )


def _settings(subject: ReportData) -> Markup:
    """Differences from the defaults first; all the rest folded."""
    settings, differ = subject.best.settings, run_records.find_varied_settings(subject.records)
    usual, chosen = run_records.flatten_default_settings(settings), run_records.find_changed_settings(settings)
    everything = run_records.flatten_settings(settings)

    def rows(names: Sequence[str]) -> list[list[Markup]]:
        return [
            [
                element("code", key),
                element("b", "varies") if key in differ else format_setting(everything[key]),
                format_setting(usual.get(key)),
            ]
            for key in names
        ]

    header = ["setting", "value", "default"]
    first = [key for key in everything if key in chosen or key in differ]
    rest = [key for key in everything if key not in first]
    parts = [build_table(header, rows(first), caption="What differs from the defaults")]
    return joined([*parts, build_details(f"{len(rest)} settings at their defaults", build_table(header, rows(rest)))])


def _environment(subject: ReportData) -> Markup:
    told = [record.environment for record in subject.records if record.environment]
    if not told:
        return build_missing_note("Not here: environment.json is missing or damaged.")
    names = dict.fromkeys(name for own in told for name in own)
    rows = [
        [name, joined(map(isolated, dict.fromkeys(own[name] for own in told if name in own)), "; ")] for name in names
    ]
    return build_table(["what", "which"], rows)


def _again(subject: ReportData, again: str) -> Markup:
    settings, command = run_records.format_training_commands(subject.records)
    commit = subject.best.environment.get("commit")
    parts = [
        element("p", "With these settings in ", element("code", "config.toml"), ":"),
        build_code_block(settings),
        element("p", "this trains " + ("it again:" if len(subject.records) == 1 else "them again:")),
        build_code_block(command),
        element("p", "and this writes this page:"),
        build_code_block(again),
    ]
    if commit:
        parts.append(element("p", "The code was that of commit ", element("code", isolated(commit)), "."))
    return joined(parts)
