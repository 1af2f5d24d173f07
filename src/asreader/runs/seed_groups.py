"""runs -> those of equal settings: all of their config.toml is the same but the seed, so that only luck differs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from asreader.settings import load_settings


@dataclass(frozen=True, slots=True)
class Setting:
    """Runs (by number) that differ in their seed alone, and in which settings they differ from the other runs."""

    name: str
    runs: tuple[int, ...]


def group_by_seed(runs: Sequence[Path]) -> list[Setting]:
    """The settings that two or more of the runs share, in the order of the runs; one without a config.toml has none."""
    told = {number: _told(run / "config.toml") for number, run in enumerate(runs) if (run / "config.toml").is_file()}
    varied = _varied(list(told.values()))
    found: dict[str, list[int]] = {}
    for number, own in told.items():
        found.setdefault(json.dumps(own, sort_keys=True), []).append(number)
    return [
        Setting(_name(told[numbers[0]], varied), tuple(numbers)) for numbers in found.values() if len(numbers) > 1
    ]  # fmt: skip


def _told(path: Path) -> dict[str, object]:
    """Every setting but the seed, as section.key -> value."""
    whole = load_settings(path)
    sections: dict[str, Mapping[str, object]] = {
        "data": asdict(whole.data),
        "reader": {"name": whole.reader_name, **whole.reader_options},
        "train": {key: value for key, value in asdict(whole.train).items() if key != "seed"},
    }
    return {f"{name}.{key}": value for name, section in sections.items() for key, value in section.items()}


def _varied(told: Sequence[Mapping[str, object]]) -> list[str]:
    keys = dict.fromkeys(key for own in told for key in own)
    return [key for key in keys if len({json.dumps(own.get(key), sort_keys=True) for own in told}) > 1]


def _name(own: Mapping[str, object], varied: Sequence[str]) -> str:
    """Only what differs between runs, with short keys: hidden=128, embedding=256."""
    return ", ".join(f"{key.partition('.')[2]}={own.get(key, 'default')}" for key in varied)
