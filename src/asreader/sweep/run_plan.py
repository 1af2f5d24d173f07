"""settings, combinations, seeds -> planned runs, each known by a hash of all that can change what comes out."""

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
from asreader.settings import Config, DataSettings, TrainSettings, load_settings
from asreader.sweep.search_space import Choice
from asreader.sweep.stores import Source, source

NEUTRAL = ("backend", "device", "checkpoint_seconds", "log_every", "tensorboard")
"""Settings of [train] that say how and where, not what."""
REPLACED = ("train", "valid", "format", "skip_bad")
"""Settings of [data] in whose place the stores' contents stand."""
_LENGTH = 12


@dataclass(frozen=True)
class PlannedRun:
    """A run of a sweep, whether it was trained or not."""

    id: str
    folder: Path
    settings: Config
    choice: Choice
    questions: int
    """Of the validation data: as many predictions are expected."""

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self.settings.train.seed

    @property
    def name(self) -> str:
        """The run for a person's eyes."""
        return ", ".join([*(f"{key}={value}" for key, value in self.choice), f"seed {self.seed}"])

    @property
    def chosen(self) -> dict[str, Any]:
        """What it has of the grid, as numbers and words."""
        sections = {"data": asdict(self.settings.data), "train": asdict(self.settings.train)}
        return {
            name: (sections | {"reader": self.settings.reader})[section][key]
            for name, section, key in ((name, *name.split(".", 1)) for name, _ in self.choice)
        }

    def until(self, epochs: int) -> PlannedRun:
        """The same run, to be stopped after so many epochs."""
        return replace(self, settings=replace(self.settings, train=replace(self.settings.train, epochs=epochs)))


@dataclass(frozen=True)
class Planner:
    """What runs of a sweep have in common: a file of settings, overrides, a folder."""

    config: Path
    overrides: tuple[str, ...]
    out: Path
    seeds: int = 1

    @cached_property
    def base(self) -> Config:
        """The settings before any choice."""
        return load_settings(self.config, self.overrides)

    def runs(self, choices: Sequence[Choice]) -> list[PlannedRun]:
        """A run for every combination and seed; settings that cannot be are refused before anything is trained."""
        found: dict[str, PlannedRun] = {}
        sources: dict[DataSettings, tuple[Source, Source]] = {}
        for choice in choices:
            settings = _refused(load_settings(self.config, [*self.overrides, *(f"{k}={v}" for k, v in choice)]))
            if settings.data not in sources:
                sources[settings.data] = tuple(source(settings.data, split, self.out) for split in ("train", "valid"))  # type: ignore[assignment]
            for seed in range(settings.train.seed, settings.train.seed + self.seeds):
                run = self._run(settings, seed, choice, *sources[settings.data])
                found.setdefault(run.id, run)
        return list(found.values())

    def _run(self, settings: Config, seed: int, choice: Choice, train: Source, valid: Source) -> PlannedRun:
        taught = ",".join(str(path) for path in _teachers(settings))
        whole = Config(
            data=replace(settings.data, train=str(train.path), valid=str(valid.path), format="", skip_bad=False),
            reader={"name": settings.reader_name} | _reader_defaults(settings) | settings.reader_options,
            train=replace(settings.train, seed=seed, teacher=taught),
        )
        name = run_id(whole, train.content, valid.content)
        return PlannedRun(name, self.out / name, whole, choice, valid.questions)


def run_id(settings: Config, train: str, valid: str) -> str:
    """A hash of what differs from the defaults, so that a setting which comes later leaves all ids as they are."""
    what = {
        "data": _differences(settings.data, REPLACED) | {"train": train, "valid": valid},
        "reader": {"name": settings.reader_name} | _reader_differences(settings),
        "train": _differences(settings.train, NEUTRAL) | {"seed": settings.train.seed},
    }
    if settings.train.teacher:
        what["train"]["teacher"] = [hashlib.sha256(path.read_bytes()).hexdigest() for path in _teachers(settings)]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:_LENGTH]


def _differences(section: DataSettings | TrainSettings, without: Sequence[str]) -> dict[str, Any]:
    defaults = {setting.name: setting.default for setting in fields(section)}
    return {key: value for key, value in asdict(section).items() if value != defaults[key] and key not in without}


def _reader_defaults(settings: Config) -> dict[str, Any]:
    return {key: setting.default for key, setting in readers.settings(settings.reader_name).items()}


def _reader_differences(settings: Config) -> dict[str, Any]:
    defaults = _reader_defaults(settings)
    return {key: value for key, value in settings.reader_options.items() if value != defaults.get(key)}


def _teachers(settings: Config) -> list[Path]:
    named = [path.resolve() for path in settings.train.teacher_files]
    for path in named:
        if not path.is_file():
            raise InputError(f"{path}: no such prediction file (train.teacher)")
    return named


def _refused(settings: Config) -> Config:
    """The settings, if a reader can be made with them and a sweep can train it."""
    readers.build(settings.reader_name, 1, settings.reader_options)
    if settings.train.engine == "ddp":
        raise InputError("train.engine=ddp: a sweep trains many readers, each on one device; leave it at auto")
    if settings.train.device.startswith("cuda:"):
        raise InputError(
            f"train.device={settings.train.device}: name GPUs with CUDA_VISIBLE_DEVICES; the device is cuda"
        )
    return settings
