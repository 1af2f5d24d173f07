"""run folders -> Records: settings, measurements while training, scores, surroundings; a missing file is no error."""

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
from asreader.evaluation.metrics import Scores, scores
from asreader.runs.folder import Run
from asreader.settings import Config
from asreader.system.atomic_files import folders_below

SEED = "train.seed"
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class MetricsRow:
    """A row of metrics.jsonl: a mean loss while training, or the scores of a validation."""

    step: int
    kind: str
    loss: float | None
    accuracy: float | None


@dataclass(frozen=True)
class RunRecord:
    """All that a run's folder tells."""

    name: str
    folder: Path
    settings: Config
    points: tuple[MetricsRow, ...]
    environment: Mapping[str, str]
    scores: Mapping[str, Scores]

    @property
    def accuracy(self) -> float:
        """On validation data; below everything where it is not known."""
        return self.scores["valid"].accuracy if "valid" in self.scores else -1.0


_SIGNS = ("config.toml", "vocabulary.txt")


def find_runs(path: Path) -> list[Path]:
    """A run, or all runs in or under a folder, sorted."""
    if not path.is_dir():
        raise InputError(f"{path}: not a folder; name a run, or a folder of runs")
    if Run(path).exists():
        return [path]
    found = sorted(run for run in folders_below(path) if all((run / name).is_file() for name in _SIGNS))
    if not found:
        raise InputError(f"{path}: no run is in it; `asreader train` makes one")
    return found


def read_run_records(path: Path) -> list[RunRecord]:
    """The Records of a run or a folder of runs."""
    folders = find_runs(path)
    names = [str(folder.relative_to(path)) if folder != path else folder.resolve().name for folder in folders]
    return [_record(folder, name) for folder, name in zip(folders, names, strict=True)]


def _record(folder: Path, name: str) -> RunRecord:
    run = Run(folder)
    said = {split: run.predictions(split) for split in ("valid", "test")}
    found = {split: predictions.read(file) for split, file in said.items() if file.is_file()}
    return RunRecord(
        name, folder, run.config(), read_metrics(run.metrics), _environment(run.environment),
        {split: scores(own) for split, own in found.items() if any(one.answer is not None for one in own)},
    )  # fmt: skip


def read_metrics(path: Path) -> tuple[MetricsRow, ...]:
    """The rows of metrics.jsonl; one that a kill cut short is left out."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    return tuple(point for line in lines if (point := _point(line)))


def _point(line: str) -> MetricsRow | None:
    try:
        row = json.loads(line)
        kind = {"train": "train", "valid": "valid"}[row["kind"]]
        numbers = [None if row.get(key) is None else float(row[key]) for key in ("loss", "accuracy")]
        return MetricsRow(int(row["step"]), kind, numbers[0], numbers[1])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _environment(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def flatten_settings(settings: Config) -> dict[str, object]:
    """Every setting under its dotted name."""
    sections = {"data": asdict(settings.data), "reader": _reader(settings), "train": asdict(settings.train)}
    return {f"{name}.{key}": value for name, section in sections.items() for key, value in section.items()}


def flatten_default_settings(settings: Config) -> dict[str, object]:
    """What each setting would be if nobody had said anything."""
    return flatten_settings(Config(reader={"name": settings.reader_name}))


def _reader(settings: Config) -> dict[str, object]:
    """The reader's settings, those left out too; of a reader that is not here, those that are written."""
    try:
        known = {key: setting.default for key, setting in readers.settings(settings.reader_name).items()}
    except InputError:
        known = {}
    return {"name": settings.reader_name, **known, **settings.reader_options}


def find_changed_settings(settings: Config) -> dict[str, object]:
    """The settings that differ from the defaults, and always the data and the reader."""
    usual = flatten_default_settings(settings)
    return {
        key: value
        for key, value in flatten_settings(settings).items()
        if key == "reader.name" or value != usual.get(key)
    }


def find_varied_settings(records: Sequence[RunRecord]) -> list[str]:
    """Settings that are not the same in all runs."""
    told = [flatten_settings(record.settings) for record in records]
    keys = dict.fromkeys(key for own in told for key in own)
    return [key for key in keys if len({json.dumps(own.get(key)) for own in told}) > 1]


def format_toml(settings: Mapping[str, object]) -> str:
    """Dotted names and values as a TOML file."""
    sections: dict[str, list[str]] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        written = name if _BARE.fullmatch(name) else json.dumps(name)
        sections.setdefault(section, []).append(f"{written} = {json.dumps(value, ensure_ascii=False)}\n")
    return "\n".join(f"[{section}]\n{''.join(lines)}" for section, lines in sections.items())


def format_training_commands(records: Sequence[RunRecord]) -> tuple[str, str]:
    """The settings that all runs share, as TOML, and the command lines that train these runs with them."""
    differ = find_varied_settings(records)
    own = [
        find_changed_settings(record.settings) | {key: flatten_settings(record.settings).get(key) for key in differ}
        for record in records
    ]
    shared = format_toml({key: value for key, value in own[0].items() if key not in differ})
    if len(records) == 1:
        return shared, f"asreader train config.toml --out {shlex.quote(str(records[0].folder))}"
    seeds = [record.settings.train.seed for record in records]
    parent = records[0].folder.parent
    if differ == [SEED] and sorted(seeds) == list(range(min(seeds), min(seeds) + len(seeds))):
        first = "" if min(seeds) == 1 else f" --set {SEED}={min(seeds)}"
        return shared, f"asreader train config.toml --readers {len(seeds)}{first} --out {shlex.quote(str(parent))}"
    lines = [
        "asreader train config.toml"
        + "".join(f" --set {shlex.quote(f'{key}={_plain(values[key])}')}" for key in differ)
        + f" --out {shlex.quote(str(record.folder))}"
        for record, values in zip(records, own, strict=True)
    ]
    return shared, "\n".join(lines)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
