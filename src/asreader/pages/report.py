"""a run, or a folder of runs -> one self-contained page: results, curves, settings, data, figures, examples, how to."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from asreader.pages import records
from asreader.pages.page import Section, folded, lines, missing, sheet, table, tried, value
from asreader.pages.sections import curves, exhibits
from asreader.pages.sections.results import outcome
from asreader.pages.subject import Subject
from asreader.system import atomic_files
from asreader.system.markup import Markup, element, isolate_word, join_content
from asreader.system.progress import show_spinner


def write(path: Path, out: Path, paper: str | None = None, data: Path | None = None) -> None:
    """The report of a run or of a folder of runs, as one file."""
    with show_spinner("writing the report"):
        atomic_files.write_text(out, report(path, out, paper, data))


def report(path: Path, out: Path, paper: str | None = None, data: Path | None = None) -> str:
    """The page. What is missing (data, weights, predictions) is said in its place, and the rest is there."""
    subject = Subject(path, tuple(records.read(path)), paper, data)
    again = f"asreader report {shlex.quote(str(path))} --out {shlex.quote(str(out))}"
    again += f" --data {shlex.quote(str(data))}" if data else ""
    sections = [
        Section("results", "Results", tried(outcome, subject)),
        Section("curves", "Learning curves", _curves(subject)),
        Section("settings", "Settings", _settings(subject)),
        Section("data", "Data", tried(exhibits.data, subject)),
        Section("figures", "Figures", tried(exhibits.drawings, subject)),
        Section("examples", "Examples", tried(exhibits.examples, subject)),
        Section("environment", "Environment", _environment(subject)),
        Section("again", "How to make it again", _again(subject, again + (f" --paper {paper}" if paper else ""))),
    ]
    return sheet(subject.name, _lead(subject), sections)


def _lead(subject: Subject) -> Markup:
    count, kinds = len(subject.records), dict.fromkeys(record.settings.reader_name for record in subject.records)
    many = f"{'A reader' if count == 1 else f'{count} readers'} of the kind {', '.join(kinds)}"
    train, valid = (
        Path(name).name or "unnamed data"
        for name in (subject.best.settings.data.train, subject.best.settings.data.valid)
    )
    return join_content([f"{many}, trained on ", isolate_word(train), " and validated on ", isolate_word(valid), "."])


def _curves(subject: Subject) -> Markup:
    return curves.learning(subject.records) or missing("Not here: metrics.jsonl has no row yet.")


def _settings(subject: Subject) -> Markup:
    """Differences from the defaults first; all the rest folded."""
    settings, differ = subject.best.settings, records.varied(subject.records)
    usual, chosen = records.defaults(settings), records.changed(settings)
    everything = records.flat(settings)

    def rows(names: Sequence[str]) -> list[list[Markup]]:
        return [
            [
                element("code", key),
                element("b", "varies") if key in differ else value(everything[key]),
                value(usual.get(key)),
            ]
            for key in names
        ]

    header = ["setting", "value", "default"]
    first = [key for key in everything if key in chosen or key in differ]
    rest = [key for key in everything if key not in first]
    parts = [table(header, rows(first), caption="What differs from the defaults")]
    return join_content([*parts, folded(f"{len(rest)} settings at their defaults", table(header, rows(rest)))])


def _environment(subject: Subject) -> Markup:
    told = [record.environment for record in subject.records if record.environment]
    if not told:
        return missing("Not here: environment.json is missing or damaged.")
    names = dict.fromkeys(name for own in told for name in own)
    rows = [
        [name, join_content(map(isolate_word, dict.fromkeys(own[name] for own in told if name in own)), "; ")]
        for name in names
    ]
    return table(["what", "which"], rows)


def _again(subject: Subject, again: str) -> Markup:
    settings, command = records.commands(subject.records)
    commit = subject.best.environment.get("commit")
    parts = [
        element("p", "With these settings in ", element("code", "config.toml"), ":"),
        lines(settings),
        element("p", "this trains " + ("it again:" if len(subject.records) == 1 else "them again:")),
        lines(command),
        element("p", "and this writes this page:"),
        lines(again),
    ]
    if commit:
        parts.append(element("p", "The code was that of commit ", element("code", isolate_word(commit)), "."))
    return join_content(parts)
