"""run folders -> RunRecords: settings, metrics, scores and environment of each run; missing files are tolerated."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asreader import readers
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.metrics import Scores, score_predictions
from asreader.runs.file_names import CONFIG_FILE
from asreader.runs.folder import Run
from asreader.runs.metrics_log import MetricsRow, read_metrics
from asreader.runs.run_search import find_runs
from asreader.runs.settings_diff import flatten_settings, list_varying_keys
from asreader.settings import Config

SEED = "train.seed"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class RunRecord:
    """The contents of a run folder that a report needs."""

    name: str
    folder: Path
    settings: Config
    metrics: tuple[MetricsRow, ...]
    environment: Mapping[str, str]
    scores: Mapping[str, Scores]

    @property
    def accuracy(self) -> float:
        """Validation accuracy; -1 if it is not known."""
        return self.scores["valid"].accuracy if "valid" in self.scores else -1.0


@dataclass(frozen=True, slots=True)
class TrainingCommands:
    """The settings that all runs share, as TOML, and the command lines that train the runs with them."""

    shared_settings: str
    command_lines: str


def read_run_records(path: Path) -> list[RunRecord]:
    """The RunRecords of a run or a folder of runs."""
    folders = find_runs(path)
    names = [str(folder.relative_to(path)) if folder != path else folder.resolve().name for folder in folders]
    return [_read_run_record(folder, name) for folder, name in zip(folders, names, strict=True)]


def _read_run_record(folder: Path, name: str) -> RunRecord:
    run = Run(folder)
    split_scores = {}
    for split in ("valid", "test"):
        file = run.predictions(split)
        predicted = predictions.read_predictions(file) if file.is_file() else []
        if any(prediction.answer is not None for prediction in predicted):
            split_scores[split] = score_predictions(predicted)
    return RunRecord(
        name, folder, run.load_config(), read_metrics(run.metrics), _read_environment(run.environment), split_scores
    )


def _read_environment(path: Path) -> dict[str, str]:
    try:
        environment = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in environment.items()} if isinstance(environment, dict) else {}


def flatten_complete_settings(settings: Config) -> dict[str, object]:
    """Map the dotted name of each setting to its value, including the reader's settings that are at their defaults."""
    return flatten_settings(settings, _list_reader_defaults(settings.reader_name))


def flatten_default_settings(settings: Config) -> dict[str, object]:
    """Map the dotted name of each setting to its default, for the reader of these settings."""
    return flatten_complete_settings(Config(reader={"name": settings.reader_name}))


def _list_reader_defaults(name: str) -> dict[str, object]:
    """The defaults of the reader's settings; none if the reader is not installed."""
    try:
        return {key: setting.default for key, setting in readers.settings(name).items()}
    except InputError:
        return {}


def find_changed_settings(settings: Config) -> dict[str, object]:
    """The settings that differ from their defaults, and always the reader's name."""
    defaults = flatten_default_settings(settings)
    return {
        key: value
        for key, value in flatten_complete_settings(settings).items()
        if key == "reader.name" or value != defaults.get(key)
    }


def find_varied_settings(records: Sequence[RunRecord]) -> list[str]:
    """The names of the settings that differ between runs."""
    return list_varying_keys([flatten_complete_settings(record.settings) for record in records])


def format_toml(settings: Mapping[str, object]) -> str:
    """Dotted names and values as a TOML document."""
    sections: dict[str, list[str]] = {}
    for dotted_name, value in settings.items():
        section, _, key = dotted_name.partition(".")
        quoted_key = key if _BARE_KEY.fullmatch(key) else json.dumps(key)
        sections.setdefault(section, []).append(f"{quoted_key} = {json.dumps(value, ensure_ascii=False)}\n")
    return "\n".join(f"[{section}]\n{''.join(lines)}" for section, lines in sections.items())


def format_training_commands(records: Sequence[RunRecord]) -> TrainingCommands:
    """The settings and command lines that train these runs again."""
    varied = find_varied_settings(records)
    run_settings = []
    for record in records:
        values = flatten_complete_settings(record.settings)
        run_settings.append(find_changed_settings(record.settings) | {key: values.get(key) for key in varied})
    shared = format_toml({key: value for key, value in run_settings[0].items() if key not in varied})
    if len(records) == 1:
        return TrainingCommands(shared, f"asreader train {CONFIG_FILE} --out {shlex.quote(str(records[0].folder))}")
    seeds = [record.settings.train.seed for record in records]
    if varied == [SEED] and sorted(seeds) == list(range(min(seeds), min(seeds) + len(seeds))):
        first_seed = "" if min(seeds) == 1 else f" --set {SEED}={min(seeds)}"
        parent = shlex.quote(str(records[0].folder.parent))
        command = f"asreader train {CONFIG_FILE} --readers {len(seeds)}{first_seed} --out {parent}"
        return TrainingCommands(shared, command)
    commands = [
        f"asreader train {CONFIG_FILE}"
        + "".join(f" --set {shlex.quote(f'{key}={_format_option(settings[key])}')}" for key in varied)
        + f" --out {shlex.quote(str(record.folder))}"
        for record, settings in zip(records, run_settings, strict=True)
    ]
    return TrainingCommands(shared, "\n".join(commands))


def _format_option(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
