"""a run, or a folder of runs -> Subject: what a report is about, read when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from asreader.data.example import Example
from asreader.errors import InputError
from asreader.evaluation import result_table
from asreader.evaluation.result_table import Row
from asreader.pages import question_filter
from asreader.pages.run_records import RunRecord
from asreader.system.markup import shortened


@dataclass(frozen=True)
class ReportData:
    """What a report is about; what cannot be read is an InputError when it is first asked for."""

    path: Path
    records: tuple[RunRecord, ...]
    paper: str | None = None
    given: Path | None = None  # the validation data, where they are not where the runs say

    @property
    def name(self) -> str:
        """The folder's name, with the one above it where it says nothing."""
        whole = self.path.resolve()
        return shortened(str(Path(*whole.parts[-2:])) if whole.name in ("run", "runs") else whole.name)

    @cached_property
    def best(self) -> RunRecord:
        """The run that is best on validation data; of equals the first."""
        return max(self.records, key=lambda record: record.accuracy)

    @cached_property
    def answered(self) -> list[RunRecord]:
        """The runs that have predicted their validation data."""
        return [record for record in self.records if "valid" in record.scores]

    @cached_property
    def data(self) -> Path:
        """The validation data."""
        if self.given is not None:
            return self.given
        named = self.best.settings.data.valid
        if not named:
            raise InputError("the settings name no validation data (data.valid)")
        if not Path(named).exists():
            raise InputError(
                f"the validation data are not where config.toml says: {shortened(named)}; name them with --data"
            )
        return Path(named)

    @cached_property
    def questions(self) -> list[Example]:
        """The validation questions."""
        settings = self.best.settings.data
        format = settings.format or None
        return list(question_filter.read_questions(self.data, split="valid", format=format, skip_bad=settings.skip_bad))

    @cached_property
    def rows(self) -> list[Row]:
        """The paper's result table."""
        return result_table.rows([record.folder for record in self.answered], self.paper)
