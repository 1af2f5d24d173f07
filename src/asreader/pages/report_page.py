"""run or folder of runs -> report page: results, curves, settings, data, figures, examples, commands; one file."""

from __future__ import annotations

import shlex
from pathlib import Path

from asreader.pages.page import PageSection, build_section_or_error, render_page
from asreader.pages.report_data import ReportData
from asreader.pages.run_records import read_run_records
from asreader.pages.sections.analysis_figures import build_analysis_figures
from asreader.pages.sections.data_statistics import build_data_statistics
from asreader.pages.sections.environment import build_environment
from asreader.pages.sections.example_answers import build_example_answers
from asreader.pages.sections.learning_curves import build_learning_curves
from asreader.pages.sections.reproduction import build_reproduction
from asreader.pages.sections.results import build_results
from asreader.pages.sections.run_settings import build_run_settings
from asreader.system import atomic_files
from asreader.system.markup import Markup, isolate_word, join_content
from asreader.system.progress import show_spinner


def write_report(path: Path, out: Path, paper: str | None = None, data: Path | None = None) -> None:
    """Write the report of a run or of a folder of runs as one file."""
    with show_spinner("writing the report"):
        atomic_files.write_text(out, render_report(path, out, paper, data))


def render_report(path: Path, out: Path, paper: str | None = None, data: Path | None = None) -> str:
    """The page. A section whose inputs (data, weights, predictions) are missing is replaced by a note."""
    report = ReportData(path, tuple(read_run_records(path)), paper, data)
    command = f"asreader report {shlex.quote(str(path))} --out {shlex.quote(str(out))}"
    command += f" --data {shlex.quote(str(data))}" if data else ""
    command += f" --paper {paper}" if paper else ""
    sections = [
        PageSection("results", "Results", build_section_or_error(build_results, report)),
        PageSection("curves", "Learning curves", build_section_or_error(build_learning_curves, report.records)),
        PageSection("settings", "Settings", build_run_settings(report)),
        PageSection("data", "Data", build_section_or_error(build_data_statistics, report)),
        PageSection("figures", "Figures", build_section_or_error(build_analysis_figures, report)),
        PageSection("examples", "Examples", build_section_or_error(build_example_answers, report)),
        PageSection("environment", "Environment", build_section_or_error(build_environment, report.records)),
        PageSection("again", "How to make it again", build_reproduction(report, command)),
    ]
    return render_page(report.name, _render_lead(report), sections)


def _render_lead(report: ReportData) -> Markup:
    count = len(report.records)
    readers = ", ".join(dict.fromkeys(record.settings.reader_name for record in report.records))
    subject = f"{'A reader' if count == 1 else f'{count} readers'} of the kind {readers}"
    settings = report.best_run.settings.data
    train, valid = (Path(path).name or "unnamed data" for path in (settings.train, settings.valid))
    return join_content(
        [f"{subject}, trained on ", isolate_word(train), " and validated on ", isolate_word(valid), "."]
    )
