"""run or folder of runs -> ReportData: the inputs of a report; validation data and tables are read on first use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from asreader.data.example import Example
from asreader.errors import InputError
from asreader.evaluation import result_table
from asreader.evaluation.result_table import ResultRow
from asreader.pages import question_filter
from asreader.pages.run_records import RunRecord
from asreader.runs.file_names import CONFIG_FILE
from asreader.system.markup import shorten_word


@dataclass(frozen=True)
class ReportData:
    """The inputs of a report. A property that cannot be read raises InputError on first use."""

    path: Path
    records: tuple[RunRecord, ...]
    paper: str | None = None
    data_override: Path | None = None  # replaces the path of the validation data in config.toml

    @property
    def name(self) -> str:
        """The name of the folder, with its parent if the name is generic."""
        path = self.path.resolve()
        return shorten_word(str(Path(*path.parts[-2:])) if path.name in ("run", "runs") else path.name)

    @cached_property
    def best_run(self) -> RunRecord:
        """The run with the best validation accuracy; the first one of ties."""
        return max(self.records, key=lambda record: record.accuracy)

    @cached_property
    def scored_runs(self) -> list[RunRecord]:
        """The runs that have predictions on their validation data."""
        return [record for record in self.records if "valid" in record.scores]

    @cached_property
    def data_path(self) -> Path:
        """The path of the validation data."""
        if self.data_override is not None:
            return self.data_override
        configured = self.best_run.settings.data.valid
        if not configured:
            raise InputError("the settings name no validation data (data.valid)")
        if not Path(configured).exists():
            raise InputError(
                f"the validation data are not where {CONFIG_FILE} says: {shorten_word(configured)}; "
                "name them with --data"
            )
        return Path(configured)

    @cached_property
    def questions(self) -> list[Example]:
        """The validation questions."""
        settings = self.best_run.settings.data
        questions = question_filter.read_questions(
            self.data_path, split="valid", format=settings.format or None, skip_bad=settings.skip_bad
        )
        return list(questions)

    @cached_property
    def result_rows(self) -> list[ResultRow]:
        """The rows of the paper's result table."""
        return result_table.build_rows([record.folder for record in self.scored_runs], self.paper)
