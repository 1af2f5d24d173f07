"""TOML and dotted overrides -> Config: frozen sections [data] [reader] [train]; unknown keys are errors with a hint."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from asreader import plugins
from asreader.errors import InputError
from asreader.plugins import suggest_name

SECTIONS = ("data", "reader", "train")
_FORMER_NAMES = {"train.backend": "engine"}


@dataclass(frozen=True)
class DataSettings:
    """What is read, and how words become rows; fixed for a run."""

    train: str = ""  # a prepared store, or any DATA
    valid: str = ""
    format: str = ""  # empty: detected
    skip_bad: bool = False
    vocabulary: str = "train"  # or "train+evaluation": the original code's choice, words of `valid` come in too
    min_count: int = 2  # rarer words are unknown, which is what trains the anonymous vectors
    unknown: int = 100  # anonymous vectors
    anonymise: float = 0.0  # probability of replacing a training candidate by an unknown word, drawn in every step
    question_at: str = "apart"  # or before, after, around: where the document encoder reads the question too

    def __post_init__(self) -> None:
        _one_of("data.vocabulary", self.vocabulary, ("train", "train+evaluation"))
        _one_of("data.question_at", self.question_at, ("apart", "before", "after", "around"))
        _at_least("data.min_count", self.min_count, 1)
        _at_least("data.unknown", self.unknown, 1)
        if not 0 <= self.anonymise < 1:
            raise InputError(f"data.anonymise is a share from 0 to below 1, not {self.anonymise}")


@dataclass(frozen=True)
class TrainSettings:
    """How weights are found; may change when a run is resumed. The defaults are the paper's."""

    seed: int = 1
    epochs: int = 20  # at the most: `patience` usually ends it
    batch: int = 32
    prefetch: int = 10  # batches that are sorted by document length together
    learning_rate: float = 0.001
    warmup: int = 0  # steps over which the learning rate rises to its full value
    decay: str = "none"  # or "linear", "cosine": how it falls afterwards, to nothing at the end of `epochs`
    clip: float = 10.0  # maximum norm of the gradient
    average: float = 0.0  # decay of the moving average of the weights, such as 0.999; 0: none is kept
    teacher: str = ""  # prediction files over the training questions, comma-separated: their mean is a second target
    teacher_weight: float = 0.5  # the teacher's share of the loss; the rest is the answer's
    validate_every: int = 0  # batches, and at the end; 0: after every epoch
    patience: int = 1  # stop after this many validations in a row without a better one
    metric: str = "accuracy"  # or "loss": what "better" means
    engine: str = (
        "auto"  # how steps are taken: `asreader engines`; ddp is started by torchrun, a process for each device
    )
    device: str = "auto"  # auto, cpu, cuda, cuda:1, mps
    precision: str = "auto"  # auto: bfloat16 on a GPU, float32 elsewhere
    checkpoint_seconds: float = 60.0
    log_every: int = 20  # batches
    tensorboard: bool = True

    def __post_init__(self) -> None:
        _one_of("train.metric", self.metric, ("accuracy", "loss"))
        _one_of("train.precision", self.precision, ("auto", "float32", "bfloat16"))
        _one_of("train.decay", self.decay, ("none", "linear", "cosine"))
        _one_of("train.engine", self.engine, ("auto", *plugins.list_plugins("training.engines")))
        for name in ("epochs", "batch", "prefetch", "patience", "log_every"):
            _at_least(f"train.{name}", getattr(self, name), 1)
        for name in ("validate_every", "warmup"):
            _at_least(f"train.{name}", getattr(self, name), 0)
        for name in ("learning_rate", "clip"):
            if getattr(self, name) <= 0:
                raise InputError(f"train.{name} must be greater than 0, not {getattr(self, name)}")
        if not 0 <= self.average < 1:
            raise InputError(f"train.average is a share from 0 to below 1, not {self.average}")
        if not 0 < self.teacher_weight <= 1:
            raise InputError(f"train.teacher_weight is a share above 0 and up to 1, not {self.teacher_weight}")

    @property
    def teacher_files(self) -> list[Path]:
        """The prediction files that `teacher` names."""
        return [Path(name.strip()) for name in self.teacher.split(",") if name.strip()]


@dataclass(frozen=True)
class Config:
    """All settings of a run. `reader` holds the constructor's keyword arguments, checked by the reader itself."""

    data: DataSettings = field(default_factory=DataSettings)
    reader: Mapping[str, Any] = field(default_factory=dict)
    train: TrainSettings = field(default_factory=TrainSettings)

    @property
    def reader_name(self) -> str:
        """The plug-in of [reader]."""
        return str(self.reader.get("name", "attention_sum"))

    @property
    def reader_options(self) -> dict[str, Any]:
        """The other keys of [reader]."""
        return {key: value for key, value in self.reader.items() if key != "name"}

    def toml(self) -> str:
        """The complete settings as TOML."""
        sections = {"data": asdict(self.data), "reader": {"name": self.reader_name, **self.reader_options}}
        return "\n".join(
            f"[{name}]\n" + "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in keys.items())
            for name, keys in (sections | {"train": asdict(self.train)}).items()
        )


def load_settings(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Settings of a TOML file with `section.key=value` overrides on top; paths are relative to where one stands."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return parse_settings(text, overrides, where=str(path))


def parse_settings(text: str, overrides: Sequence[str] = (), *, where: str = "settings") -> Config:
    """Settings of a TOML text."""
    try:
        sections = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not valid TOML: {error}") from None
    for name, keys in sections.items():
        if name not in SECTIONS or not isinstance(keys, dict):
            raise InputError(f"{where}: unknown section [{name}]; {suggest_name(name, list(SECTIONS))}")
    for override in overrides:
        section, key, value = _override(override)
        sections.setdefault(section, {})[key] = value
    return Config(
        data=DataSettings(**_check_section(DataSettings, "data", sections.get("data", {}), where)),
        reader=sections.get("reader", {}),
        train=TrainSettings(**_check_section(TrainSettings, "train", sections.get("train", {}), where)),
    )


def _override(text: str) -> tuple[str, str, object]:
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and key) or section not in SECTIONS:
        raise InputError(f"--set {text}: write section.key=value, where section is one of {', '.join(SECTIONS)}")
    try:
        return section, key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:  # a bare word is a string
        return section, key, value.strip()


def _check_section(section: type, name: str, keys: Mapping[str, object], where: str) -> dict[str, Any]:
    defaults = {setting.name: setting.default for setting in fields(section)}
    values: dict[str, Any] = {}
    for key, value in keys.items():
        key = _FORMER_NAMES.get(f"{name}.{key}", key)
        if key not in defaults:
            raise InputError(f"{where}: [{name}] has no setting {key!r}; {suggest_name(key, sorted(defaults))}")
        kind = type(defaults[key])
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise InputError(f"{where}: {name}.{key} must be like {defaults[key]!r}, not {value!r}")
        values[key] = value
    return values


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} is one of {', '.join(choices)}, not {value!r}")


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InputError(f"{name} must be at least {least}, not {value}")
