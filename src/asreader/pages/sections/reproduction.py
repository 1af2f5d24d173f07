"""ReportData -> reproduction section: the settings and commands that train the runs and write the page again."""

from __future__ import annotations

from asreader.pages.page import build_code_block
from asreader.pages.report_data import ReportData
from asreader.pages.run_records import format_training_commands
from asreader.runs.file_names import CONFIG_FILE
from asreader.system.markup import Markup, element, isolate_word, join_content


def build_reproduction(report: ReportData, report_command: str) -> Markup:
    """The shared settings as TOML, the training commands, the report command and the commit."""
    commands = format_training_commands(report.records)
    commit = report.best_run.environment.get("commit")
    parts = [
        element("p", "With these settings in ", element("code", CONFIG_FILE), ":"),
        build_code_block(commands.shared_settings),
        element("p", "this trains " + ("it again:" if len(report.records) == 1 else "them again:")),
        build_code_block(commands.command_lines),
        element("p", "and this writes this page:"),
        build_code_block(report_command),
    ]
    if commit:
        parts.append(element("p", "The code was that of commit ", element("code", isolate_word(commit)), "."))
    return join_content(parts)
