"""settings -> flat dictionaries ("section.key" -> value), and the keys in which several of them differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from asreader.settings import Config


def flatten_settings(settings: Config, reader_defaults: Mapping[str, object] | None = None) -> dict[str, object]:
    """Every setting as section.key -> value; `reader_defaults` are the reader's settings that [reader] leaves out."""
    sections: dict[str, Mapping[str, object]] = {
        "data": asdict(settings.data),
        "reader": {"name": settings.reader_name, **(reader_defaults or {}), **settings.reader_options},
        "train": asdict(settings.train),
    }
    return {f"{name}.{key}": value for name, section in sections.items() for key, value in section.items()}


def list_varying_keys(flattened: Sequence[Mapping[str, object]]) -> list[str]:
    """Keys whose values are not the same in all flat settings, in order of appearance."""
    keys = dict.fromkeys(key for settings in flattened for key in settings)
    return [key for key in keys if len({json.dumps(settings.get(key), sort_keys=True) for settings in flattened}) > 1]
