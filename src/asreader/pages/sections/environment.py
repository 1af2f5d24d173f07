"""RunRecords -> environment section: the software and hardware that the runs were trained with."""

from __future__ import annotations

from collections.abc import Sequence

from asreader.errors import InputError
from asreader.pages.page import build_table
from asreader.pages.run_records import RunRecord
from asreader.runs.file_names import ENVIRONMENT_FILE
from asreader.system.markup import Markup, isolate_word, join_content


def build_environment(records: Sequence[RunRecord]) -> Markup:
    """Table of the entries of environment.json; different values of runs are listed together."""
    environments = [record.environment for record in records if record.environment]
    if not environments:
        raise InputError(f"{ENVIRONMENT_FILE} is missing or damaged")
    names = dict.fromkeys(name for environment in environments for name in environment)
    rows = []
    for name in names:
        values = dict.fromkeys(environment[name] for environment in environments if name in environment)
        rows.append([name, join_content(map(isolate_word, values), "; ")])
    return build_table(["what", "which"], rows)
