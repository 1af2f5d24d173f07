"""Settings as flat dictionaries, and the keys in which they differ."""

from __future__ import annotations

from asreader.runs.settings_diff import flatten_settings, list_varying_keys
from asreader.settings import parse_settings


def test_every_setting_has_its_dotted_name() -> None:
    flat = flatten_settings(
        parse_settings("", ["reader.hidden=128", "train.seed=3"]), {"hidden": 384, "embedding": 256}
    )
    assert (flat["reader.name"], flat["train.seed"], flat["data.min_count"]) == ("attention_sum", 3, 2)
    assert (flat["reader.hidden"], flat["reader.embedding"]) == (128, 256)  # written settings win over defaults
    assert "reader.embedding" not in flatten_settings(parse_settings(""))


def test_varying_keys_include_those_that_are_missing_somewhere() -> None:
    assert list_varying_keys([{"a": 1, "b": [2]}, {"a": 1, "b": [3], "c": None}, {"a": 1, "b": [2], "d": 0}]) == [
        "b",
        "d",
    ]
    assert list_varying_keys([{"a": 1}]) == list_varying_keys([]) == []
