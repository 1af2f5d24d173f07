"""runs -> groups of runs whose settings differ in the seed alone, so that only chance separates them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asreader.runs.file_names import CONFIG_FILE
from asreader.runs.settings_diff import flatten_settings, list_varying_keys
from asreader.settings import load_settings


@dataclass(frozen=True, slots=True)
class SeedGroup:
    """Indices of runs that differ in their seed alone; `name` has the settings that other runs do not share."""

    name: str
    runs: tuple[int, ...]


def group_by_seed(runs: Sequence[Path]) -> list[SeedGroup]:
    """Groups of two or more runs with equal settings, in order of appearance; no config.toml, no group."""
    settings = {
        index: _flatten_without_seed(run / CONFIG_FILE)
        for index, run in enumerate(runs)
        if (run / CONFIG_FILE).is_file()
    }
    varying = list_varying_keys(list(settings.values()))
    members: dict[str, list[int]] = {}
    for index, values in settings.items():
        members.setdefault(json.dumps(values, sort_keys=True), []).append(index)
    return [
        SeedGroup(_format_name(settings[indices[0]], varying), tuple(indices))
        for indices in members.values()
        if len(indices) > 1
    ]


def _flatten_without_seed(config: Path) -> dict[str, object]:
    return {key: value for key, value in flatten_settings(load_settings(config)).items() if key != "train.seed"}


def _format_name(settings: Mapping[str, object], varying: Sequence[str]) -> str:
    """Varying settings with short keys, such as "hidden=128, embedding=256"."""
    return ", ".join(f"{key.partition('.')[2]}={settings.get(key, 'default')}" for key in varying)
