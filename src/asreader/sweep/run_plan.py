"""settings, combinations, seeds -> planned runs, each identified by a hash of everything that can change its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from asreader import readers
from asreader.errors import InputError
from asreader.runs.settings_diff import flatten_settings
from asreader.settings import Config, DataSettings, TrainSettings, load_settings
from asreader.sweep.search_space import Combination
from asreader.sweep.stores import SweepStore, find_or_encode_store

NEUTRAL_SETTINGS = ("engine", "device", "checkpoint_seconds", "log_every", "tensorboard")
"""Settings of [train] that do not change the result, only how and where it is computed."""
CONTENT_SETTINGS = ("train", "valid", "format", "skip_bad")
"""Settings of [data] that the hash replaces by the content of the stores."""
_ID_LENGTH = 12


@dataclass(frozen=True)
class PlannedRun:
    """A run of a sweep, trained or not."""

    id: str
    folder: Path
    settings: Config
    combination: Combination
    questions: int
    """Number of validation questions, which is the expected number of predictions."""

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self.settings.train.seed

    @property
    def label(self) -> str:
        """The combination and the seed, for people."""
        return ", ".join([*(f"{key}={value}" for key, value in self.combination), f"seed {self.seed}"])

    @property
    def chosen_settings(self) -> dict[str, Any]:
        """The settings on the grid with their parsed values."""
        settings = flatten_settings(self.settings)
        return {name: settings[name] for name, _ in self.combination}

    def limit_epochs(self, epochs: int) -> PlannedRun:
        """The same run, limited to this number of epochs."""
        return replace(self, settings=replace(self.settings, train=replace(self.settings.train, epochs=epochs)))


@dataclass(frozen=True)
class RunPlanner:
    """Plans the runs of a sweep from a settings file, overrides and an output folder."""

    config: Path
    overrides: tuple[str, ...]
    out: Path
    seeds: int = 1

    @cached_property
    def base_settings(self) -> Config:
        """The settings without any combination."""
        return load_settings(self.config, self.overrides)

    def plan_runs(self, combinations: Sequence[Combination]) -> list[PlannedRun]:
        """A run for every combination and seed; invalid settings are refused before anything is trained."""
        runs: dict[str, PlannedRun] = {}
        stores: dict[DataSettings, tuple[SweepStore, SweepStore]] = {}
        for combination in combinations:
            overrides = [*self.overrides, *(f"{key}={value}" for key, value in combination)]
            settings = load_settings(self.config, overrides)
            _check_settings(settings)
            data = settings.data
            if data not in stores:
                train = find_or_encode_store(data, "train", self.out)
                stores[data] = train, find_or_encode_store(data, "valid", self.out)
            for seed in range(settings.train.seed, settings.train.seed + self.seeds):
                run = self._plan_run(settings, seed, combination, *stores[data])
                runs.setdefault(run.id, run)
        return list(runs.values())

    def _plan_run(
        self, settings: Config, seed: int, combination: Combination, train: SweepStore, valid: SweepStore
    ) -> PlannedRun:
        teacher = ",".join(str(path) for path in _resolve_teachers(settings))
        complete = Config(
            data=replace(settings.data, train=str(train.path), valid=str(valid.path), format="", skip_bad=False),
            reader={"name": settings.reader_name} | _list_reader_defaults(settings) | settings.reader_options,
            train=replace(settings.train, seed=seed, teacher=teacher),
        )
        id = compute_run_id(complete, train.content_hash, valid.content_hash)
        return PlannedRun(id, self.out / id, complete, combination, valid.questions)


def compute_run_id(settings: Config, train_hash: str, valid_hash: str) -> str:
    """A hash of the settings that differ from their defaults, so that adding a setting changes no existing id."""
    identity = {
        "data": _list_differences(settings.data, CONTENT_SETTINGS) | {"train": train_hash, "valid": valid_hash},
        "reader": {"name": settings.reader_name} | _list_reader_differences(settings),
        "train": _list_differences(settings.train, NEUTRAL_SETTINGS) | {"seed": settings.train.seed},
    }
    if settings.train.teacher:
        teachers = _resolve_teachers(settings)
        identity["train"]["teacher"] = [hashlib.sha256(path.read_bytes()).hexdigest() for path in teachers]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:_ID_LENGTH]


def _list_differences(section: DataSettings | TrainSettings, excluded: Sequence[str]) -> dict[str, Any]:
    defaults = {setting.name: setting.default for setting in fields(section)}
    return {key: value for key, value in asdict(section).items() if value != defaults[key] and key not in excluded}


def _list_reader_defaults(settings: Config) -> dict[str, Any]:
    return {key: setting.default for key, setting in readers.settings(settings.reader_name).items()}


def _list_reader_differences(settings: Config) -> dict[str, Any]:
    defaults = _list_reader_defaults(settings)
    return {key: value for key, value in settings.reader_options.items() if value != defaults.get(key)}


def _resolve_teachers(settings: Config) -> list[Path]:
    paths = [path.resolve() for path in settings.train.teacher_files]
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: no such prediction file (train.teacher)")
    return paths


def _check_settings(settings: Config) -> None:
    """Refuse settings that no reader can be built with, or that a sweep cannot train."""
    readers.build(settings.reader_name, 1, settings.reader_options)
    if settings.train.engine == "ddp":
        raise InputError("train.engine=ddp: a sweep trains many readers, each on one device; leave it at auto")
    if settings.train.device.startswith("cuda:"):
        raise InputError(f"train.device={settings.train.device}: use cuda, and choose GPUs with CUDA_VISIBLE_DEVICES")
