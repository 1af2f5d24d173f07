"""Runs of equal settings are found by their config.toml, whatever the folders are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from asreader.errors import InputError
from asreader.runs.seed_groups import group_by_seed
from asreader.settings import parse_settings


def run(folder: Path, *wanted: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(parse_settings("", wanted).toml())
    return folder


def test_only_the_seed_may_differ(tmp_path: Path) -> None:
    runs = [
        run(tmp_path / "a", "reader.hidden=128", "train.seed=1"),
        run(tmp_path / "b", "reader.hidden=256", "train.seed=1"),
        run(tmp_path / "c", "train.seed=7", "reader.hidden=128"),
        run(tmp_path / "d", "reader.hidden=128", "train.seed=2", "train.batch=16"),
        run(tmp_path / "e", "reader.hidden=256", "train.seed=9"),
        run(tmp_path / "f", "train.seed=3"),
    ]
    found = group_by_seed(runs)
    assert [(setting.name, setting.runs) for setting in found] == [
        ("hidden=128, batch=32", (0, 2)),
        ("hidden=256, batch=32", (1, 4)),
    ]
    (runs[1] / "config.toml").unlink()
    assert [setting.runs for setting in group_by_seed(runs)] == [(0, 2)]


def test_runs_that_are_all_alike_need_no_name(tmp_path: Path) -> None:
    runs = [run(tmp_path / str(seed), f"train.seed={seed}") for seed in range(3)]
    (found,) = group_by_seed(runs)
    assert (found.name, found.runs) == ("", (0, 1, 2))
    assert group_by_seed(runs[:1]) == []


def test_damaged_settings_are_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[train")
    with pytest.raises(InputError, match=r"config\.toml: not valid TOML"):
        group_by_seed([tmp_path])
