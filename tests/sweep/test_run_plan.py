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
from asreader.sweep.run_plan import CONTENT_SETTINGS, NEUTRAL_SETTINGS, PlannedRun, RunPlanner

OTHER = {int: 3, float: 0.25, bool: True}
WORDS = {
    "vocabulary": "train+evaluation",
    "question_at": "before",
    "metric": "loss",
    "precision": "float32",
    "decay": "linear",
}


def plan_runs(config: Path, out: Path, *overrides: str, seeds: int = 1) -> list[PlannedRun]:
    return RunPlanner(config, overrides, out, seeds).plan_runs([()])


def plan_id(config: Path, out: Path, *overrides: str) -> str:
    (run,) = plan_runs(config, out, *overrides)
    return run.id


def test_every_setting_that_can_change_the_result_changes_the_id(small: Path, tmp_path: Path) -> None:
    default_id = plan_id(small, tmp_path)
    ids = {default_id}
    for name, section, excluded in (
        ("data", DataSettings, CONTENT_SETTINGS),
        ("train", TrainSettings, (*NEUTRAL_SETTINGS, "teacher")),
    ):
        for setting in fields(section):
            if setting.name not in excluded:
                value = WORDS.get(setting.name, OTHER.get(type(setting.default)))
                ids.add(plan_id(small, tmp_path, f"{name}.{setting.name}={str(value).lower()}"))
    settings = (
        len(fields(DataSettings)) - len(CONTENT_SETTINGS) + len(fields(TrainSettings)) - len(NEUTRAL_SETTINGS) - 1
    )
    assert len(ids) == 1 + settings
    for key, setting in readers.settings("attention_sum").items():
        if isinstance(setting.default, int):
            assert plan_id(small, tmp_path, f"reader.{key}={setting.default + 1}") != default_id


def test_neutral_settings_do_not_change_the_id(small: Path, tmp_path: Path) -> None:
    default_id = plan_id(small, tmp_path)
    for override in ("train.log_every=3", "train.tensorboard=true", "train.checkpoint_seconds=9", "train.device=auto"):
        assert plan_id(small, tmp_path, override) == default_id
    written = [f"reader.{key}={setting.default}" for key, setting in readers.settings("attention_sum").items()]
    sizes = ["reader.hidden=8", "reader.embedding=8"]
    assert (
        plan_id(small, tmp_path, *written, *sizes) == default_id
    )  # a default that is written out is still the default


def test_data_are_identified_by_their_content(small: Path, tmp_path: Path) -> None:
    default_id = plan_id(small, tmp_path)
    copied = shutil.copy(small.parent / "train.jsonl", tmp_path / "copied.jsonl")
    assert plan_id(small, tmp_path, f"data.train={copied}") == default_id
    lines = Path(copied).read_text().splitlines(keepends=True)
    Path(copied).write_text("".join(lines[:-1]))
    assert plan_id(small, tmp_path, f"data.train={copied}") != default_id


def test_consecutive_seeds_are_separate_runs(small: Path, tmp_path: Path) -> None:
    runs = plan_runs(small, tmp_path, seeds=3)
    assert [run.seed for run in runs] == [1, 2, 3]
    assert len({run.id for run in runs}) == 3
    later = plan_runs(small, tmp_path, "train.seed=2", seeds=3)
    assert [run.id for run in later][:2] == [run.id for run in runs][1:]


def test_a_teacher_is_identified_by_its_predictions(small: Path, tmp_path: Path) -> None:
    teacher = tmp_path / "teacher.jsonl"
    predictions.write_predictions(teacher, [predictions.Prediction("a", "x", ("x", "y"), [0.5, 0.5])])  # type: ignore[arg-type]
    first = plan_id(small, tmp_path, f"train.teacher={teacher}")
    predictions.write_predictions(teacher, [predictions.Prediction("a", "x", ("x", "y"), [0.75, 0.25])])  # type: ignore[arg-type]
    assert len({plan_id(small, tmp_path), first, plan_id(small, tmp_path, f"train.teacher={teacher}")}) == 3
    teacher.unlink()
    with pytest.raises(InputError, match="no such prediction file"):
        plan_runs(small, tmp_path, f"train.teacher={teacher}")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("reader.hiden=8", "hidden"),
        ("reader.hidden=0", "at least 1"),
        ("train.epochs=0", "at least 1"),
        ("train.engine=ddp", "each on one device"),
        ("train.device=cuda:1", "CUDA_VISIBLE_DEVICES"),
        ("data.valid=", "data.valid is not set"),
        ("data.train=nowhere.jsonl", "no such file"),
    ],
)
def test_invalid_settings_are_refused_before_anything_is_trained(
    small: Path, tmp_path: Path, override: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        plan_runs(small, tmp_path, override)
    assert not list(tmp_path.glob("*/config.toml"))


def test_data_are_encoded_once_and_again_after_damage(small: Path, tmp_path: Path) -> None:
    (run,) = plan_runs(small, tmp_path)
    store = Path(run.settings.data.train)
    assert is_store(store)
    assert store.name == "train"
    made = (store / "store.json").stat().st_mtime_ns
    plan_runs(small, tmp_path)
    assert (store / "store.json").stat().st_mtime_ns == made
    (store / "questions").write_bytes(b"")
    plan_runs(small, tmp_path)
    assert (store / "store.json").stat().st_mtime_ns != made
    assert len(open_store(store)) == 60


def test_a_prepared_store_is_used_directly(small: Path, tmp_path: Path) -> None:
    (run,) = plan_runs(small, tmp_path / "first")
    again = plan_runs(
        small, tmp_path / "second", f"data.train={run.settings.data.train}", f"data.valid={run.settings.data.valid}"
    )
    assert [other.id for other in again] == [run.id]
    assert not (tmp_path / "second" / "data").exists()
