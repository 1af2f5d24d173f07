"""ReportData -> settings section: the settings of the best run, changed and varied ones first."""

from __future__ import annotations

from asreader.pages.page import build_details, build_table, format_setting
from asreader.pages.report_data import ReportData
from asreader.pages.run_records import (
    find_changed_settings,
    find_varied_settings,
    flatten_complete_settings,
    flatten_default_settings,
)
from asreader.system.markup import Markup, element, join_content


def build_run_settings(report: ReportData) -> Markup:
    """Table of the settings that differ from the defaults; the others are folded."""
    settings = report.best_run.settings
    values = flatten_complete_settings(settings)
    defaults = flatten_default_settings(settings)
    changed = find_changed_settings(settings)
    varied = find_varied_settings(report.records)

    def build_row(key: str) -> list[Markup]:
        value = element("b", "varies") if key in varied else format_setting(values[key])
        return [element("code", key), value, format_setting(defaults.get(key))]

    header = ["setting", "value", "default"]
    first = [build_row(key) for key in values if key in changed or key in varied]
    rest = [build_row(key) for key in values if key not in changed and key not in varied]
    table = build_table(header, first, caption="What differs from the defaults")
    return join_content([table, build_details(f"{len(rest)} settings at their defaults", build_table(header, rest))])
