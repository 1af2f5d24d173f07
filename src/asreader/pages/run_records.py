"""run folders -> RunRecords: settings, metrics, scores and environment of each run; missing files are tolerated."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from asreader import readers
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.metrics import Scores, score_predictions
from asreader.runs.folder import Run
from asreader.settings import Config
from asreader.system.atomic_files import walk_folders

SEED = "train.seed"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_RUN_FILES = ("config.toml", "vocabulary.txt")
"""A folder with these files is a run."""


@dataclass(frozen=True, slots=True)
class MetricsRow:
    """A row of metrics.jsonl: the mean training loss, or the loss and accuracy of a validation."""

    step: int
    kind: str
    loss: float | None
    accuracy: float | None


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


def find_runs(path: Path) -> list[Path]:
    """The run at `path`, or all runs below it, sorted."""
    if not path.is_dir():
        raise InputError(f"{path}: not a folder; name a run, or a folder of runs")
    if Run(path).exists():
        return [path]
    runs = sorted(folder for folder in walk_folders(path) if all((folder / name).is_file() for name in _RUN_FILES))
    if not runs:
        raise InputError(f"{path}: no run is in it; `asreader train` makes one")
    return runs


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


def read_metrics(path: Path) -> tuple[MetricsRow, ...]:
    """The rows of metrics.jsonl; damaged rows are skipped."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    return tuple(row for line in lines if (row := _parse_metrics_row(line)))


def _parse_metrics_row(line: str) -> MetricsRow | None:
    try:
        row = json.loads(line)
        kind = {"train": "train", "valid": "valid"}[row["kind"]]
        loss, accuracy = (None if row.get(key) is None else float(row[key]) for key in ("loss", "accuracy"))
        return MetricsRow(int(row["step"]), kind, loss, accuracy)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _read_environment(path: Path) -> dict[str, str]:
    try:
        environment = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in environment.items()} if isinstance(environment, dict) else {}


def flatten_settings(settings: Config) -> dict[str, object]:
    """Map the dotted name of each setting to its value."""
    sections = {
        "data": asdict(settings.data),
        "reader": _complete_reader_settings(settings),
        "train": asdict(settings.train),
    }
    return {f"{name}.{key}": value for name, section in sections.items() for key, value in section.items()}


def flatten_default_settings(settings: Config) -> dict[str, object]:
    """Map the dotted name of each setting to its default, for the reader of these settings."""
    return flatten_settings(Config(reader={"name": settings.reader_name}))


def _complete_reader_settings(settings: Config) -> dict[str, object]:
    """The reader's settings with defaults filled in; without them if the reader is not installed."""
    try:
        defaults = {key: setting.default for key, setting in readers.settings(settings.reader_name).items()}
    except InputError:
        defaults = {}
    return {"name": settings.reader_name, **defaults, **settings.reader_options}


def find_changed_settings(settings: Config) -> dict[str, object]:
    """The settings that differ from their defaults, and always the reader's name."""
    defaults = flatten_default_settings(settings)
    return {
        key: value
        for key, value in flatten_settings(settings).items()
        if key == "reader.name" or value != defaults.get(key)
    }


def find_varied_settings(records: Sequence[RunRecord]) -> list[str]:
    """The names of the settings that differ between runs."""
    flattened = [flatten_settings(record.settings) for record in records]
    keys = dict.fromkeys(key for settings in flattened for key in settings)
    return [key for key in keys if len({json.dumps(settings.get(key)) for settings in flattened}) > 1]


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
    run_settings = [
        find_changed_settings(record.settings) | {key: flatten_settings(record.settings).get(key) for key in varied}
        for record in records
    ]
    shared = format_toml({key: value for key, value in run_settings[0].items() if key not in varied})
    if len(records) == 1:
        return TrainingCommands(shared, f"asreader train config.toml --out {shlex.quote(str(records[0].folder))}")
    seeds = [record.settings.train.seed for record in records]
    if varied == [SEED] and sorted(seeds) == list(range(min(seeds), min(seeds) + len(seeds))):
        first_seed = "" if min(seeds) == 1 else f" --set {SEED}={min(seeds)}"
        parent = shlex.quote(str(records[0].folder.parent))
        command = f"asreader train config.toml --readers {len(seeds)}{first_seed} --out {parent}"
        return TrainingCommands(shared, command)
    commands = [
        "asreader train config.toml"
        + "".join(f" --set {shlex.quote(f'{key}={_format_option(settings[key])}')}" for key in varied)
        + f" --out {shlex.quote(str(record.folder))}"
        for record, settings in zip(records, run_settings, strict=True)
    ]
    return TrainingCommands(shared, "\n".join(commands))


def _format_option(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
