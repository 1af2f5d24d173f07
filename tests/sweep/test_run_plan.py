from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from asreader import readers
from asreader.data.store import is_store, open_store
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.settings import DataSettings, TrainSettings
from asreader.sweep.run_plan import NEUTRAL, REPLACED, PlannedRun, Planner

OTHER = {int: 3, float: 0.25, bool: True}
WORDS = {"vocabulary": "train+evaluation", "question_at": "before", "metric": "loss", "precision": "float32",
         "decay": "linear"}  # fmt: skip


def planned(config: Path, out: Path, *overrides: str, seeds: int = 1) -> list[PlannedRun]:
    return Planner(config, overrides, out, seeds).runs([()])


def identity(config: Path, out: Path, *overrides: str) -> str:
    (run,) = planned(config, out, *overrides)
    return run.id


def test_every_setting_that_can_change_the_result_changes_the_name(small: Path, tmp_path: Path) -> None:
    plain = identity(small, tmp_path)
    found = {plain}
    for name, section, left_out in (("data", DataSettings, REPLACED), ("train", TrainSettings, (*NEUTRAL, "teacher"))):
        for setting in fields(section):
            if setting.name not in left_out:
                value = WORDS.get(setting.name, OTHER.get(type(setting.default)))
                found.add(identity(small, tmp_path, f"{name}.{setting.name}={str(value).lower()}"))
    settings = len(fields(DataSettings)) - len(REPLACED) + len(fields(TrainSettings)) - len(NEUTRAL) - 1
    assert len(found) == 1 + settings
    for key, setting in readers.settings("attention_sum").items():
        if isinstance(setting.default, int):
            assert identity(small, tmp_path, f"reader.{key}={setting.default + 1}") != plain


def test_what_says_only_how_and_where_leaves_the_name_alone(small: Path, tmp_path: Path) -> None:
    plain = identity(small, tmp_path)
    for override in ("train.log_every=3", "train.tensorboard=true", "train.checkpoint_seconds=9", "train.device=auto"):
        assert identity(small, tmp_path, override) == plain
    written = [f"reader.{key}={setting.default}" for key, setting in readers.settings("attention_sum").items()]
    sizes = ["reader.hidden=8", "reader.embedding=8"]
    assert identity(small, tmp_path, *written, *sizes) == plain  # a default is a default, also if it is written


def test_data_are_known_by_what_they_hold(small: Path, tmp_path: Path) -> None:
    plain = identity(small, tmp_path)
    copied = shutil.copy(small.parent / "train.jsonl", tmp_path / "copied.jsonl")
    assert identity(small, tmp_path, f"data.train={copied}") == plain
    lines = Path(copied).read_text().splitlines(keepends=True)
    Path(copied).write_text("".join(lines[:-1]))
    assert identity(small, tmp_path, f"data.train={copied}") != plain


def test_seeds_in_a_row_are_runs_of_their_own(small: Path, tmp_path: Path) -> None:
    runs = planned(small, tmp_path, seeds=3)
    assert [run.seed for run in runs] == [1, 2, 3]
    assert len({run.id for run in runs}) == 3
    later = planned(small, tmp_path, "train.seed=2", seeds=3)
    assert [run.id for run in later][:2] == [run.id for run in runs][1:]


def test_a_teacher_is_known_by_what_it_says(small: Path, tmp_path: Path) -> None:
    taught = tmp_path / "said.jsonl"
    predictions.write_predictions(taught, [predictions.Prediction("a", "x", ("x", "y"), [0.5, 0.5])])  # type: ignore[arg-type]
    first = identity(small, tmp_path, f"train.teacher={taught}")
    predictions.write_predictions(taught, [predictions.Prediction("a", "x", ("x", "y"), [0.75, 0.25])])  # type: ignore[arg-type]
    assert len({identity(small, tmp_path), first, identity(small, tmp_path, f"train.teacher={taught}")}) == 3
    taught.unlink()
    with pytest.raises(InputError, match="no such prediction file"):
        planned(small, tmp_path, f"train.teacher={taught}")


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("reader.hiden=8", "hidden"),
        ("reader.hidden=0", "at least 1"),
        ("train.epochs=0", "at least 1"),
        ("train.backend=ddp", "each on one device"),
        ("train.device=cuda:1", "CUDA_VISIBLE_DEVICES"),
        ("data.valid=", "data.valid is not set"),
        ("data.train=nowhere.jsonl", "no such file"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is(
    small: Path, tmp_path: Path, override: str, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        planned(small, tmp_path, override)
    assert not list(tmp_path.glob("*/config.toml"))


def test_data_are_encoded_once_and_again_if_they_change_or_are_damaged(small: Path, tmp_path: Path) -> None:
    (run,) = planned(small, tmp_path)
    store = Path(run.settings.data.train)
    assert is_store(store)
    assert store.name == "train"
    made = (store / "store.json").stat().st_mtime_ns
    planned(small, tmp_path)
    assert (store / "store.json").stat().st_mtime_ns == made
    (store / "questions").write_bytes(b"")
    planned(small, tmp_path)
    assert (store / "store.json").stat().st_mtime_ns != made
    assert len(open_store(store)) == 60


def test_a_prepared_store_is_used_as_it_is(small: Path, tmp_path: Path) -> None:
    (run,) = planned(small, tmp_path / "first")
    again = planned(
        small, tmp_path / "second", f"data.train={run.settings.data.train}", f"data.valid={run.settings.data.valid}"
    )
    assert [other.id for other in again] == [run.id]
    assert not (tmp_path / "second" / "data").exists()
