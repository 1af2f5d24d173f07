"""What every engine must do: the losses of `plain`, exact resume, N readers together as one alone."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from asreader import ops, plugins
from asreader.batches import device
from asreader.cloze.stories.generator import generate_stories
from asreader.data.dataset import load_store
from asreader.data.example import GAP, Example
from asreader.data.formats import jsonl
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.inference.reader import Reader
from asreader.runs.folder import Run
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.training import engines, loop
from asreader.training.engines import JobSpec, choose_engine, fused_attention_sum
from asreader.training.engines.fused_attention_sum import FusedStep
from asreader.training.engines.plain import PlainEngine
from asreader.training.stacking.stacked_engine import StackedEngine

CLOSE = 1e-5
READERS = pytest.mark.parametrize(
    "reader",
    [
        {"name": "attention_sum"},
        {"name": "attention_sum", "layers": 2},
        {"name": "attention_sum", "normalise": "candidates", "dropout": 0.3},
        {"name": "blending"},
    ],
    ids=str,
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("data")
    for name, count, seed in (("train", 44, 1), ("valid", 20, 2)):  # 44 questions: the last batch of 16 is short
        (folder / f"{name}.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(count, seed))))
    return Config(
        data=DataSettings(train=str(folder / "train.jsonl"), valid=str(folder / "valid.jsonl")),
        reader={"name": "attention_sum", "embedding": 6, "hidden": 5},
        train=TrainSettings(
            epochs=2, batch=16, prefetch=2, patience=9, device="cpu", log_every=1, tensorboard=False, clip=0.01
        ),
    )


def make_group(settings: Config, count: int = 3, engine: str = "stacked", **changes: object) -> list[Config]:
    """Readers with seeds and learning rates of their own."""
    changed = replace(settings.train, engine=engine, **changes)  # type: ignore[arg-type]
    return [
        replace(settings, train=replace(changed, seed=number + 1, learning_rate=0.01 * (number + 1)))
        for number in range(count)
    ]


def make_folders(parent: Path, count: int = 3) -> list[Path]:
    return [parent / str(number) for number in range(count)]


def train_alone(settings: Sequence[Config], parent: Path) -> list[Run]:
    """Each by the engine `plain`."""
    plain = [replace(own, train=replace(own.train, engine="plain")) for own in settings]
    folders = make_folders(parent, len(plain))
    return [loop.train_run(own, folder) for own, folder in zip(plain, folders, strict=True)]


def train_together(settings: Sequence[Config], parent: Path, *, resume: bool = False) -> list[Run]:
    return loop.train_runs(settings, make_folders(parent, len(settings)), resume=resume)


@pytest.fixture(scope="module")
def alone(settings: Config, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return train_alone(make_group(settings), tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="module")
def together(settings: Config, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return train_together(make_group(settings), tmp_path_factory.mktemp("together"))


def read_rows(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.metrics.read_text().splitlines()]


def is_near(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Adam turns a gradient that is nothing but rounding into a step of visible size, so weights are only near."""
    return float((one - other).abs().max()) <= 1e-3 * float(one.abs().max()) + 1e-12


def assert_same(left: Run, right: Run) -> None:
    """Equal up to rounding: every loss, every score, the weights, Adam's moments, the answers, the files."""
    names = [{path.relative_to(run.folder) for path in run.folder.rglob("*")} for run in (left, right)]
    assert names[0] == names[1]
    for one, other in zip(read_rows(left), read_rows(right), strict=True):
        assert [one[key] for key in ("step", "epoch", "kind")] == [other[key] for key in ("step", "epoch", "kind")]
        assert one["loss"] == pytest.approx(other["loss"], abs=CLOSE)
        assert one.get("accuracy") == other.get("accuracy")
        assert one.get("best") == other.get("best")
    for file in ("weights.safetensors", "state.safetensors"):
        weights, others = (load_file(run.folder / file) for run in (left, right))
        assert weights.keys() == others.keys()
        assert all(is_near(weights[name], others[name]) for name in weights), file
    assert left.load_state()[1] == pytest.approx(right.load_state()[1], abs=CLOSE)  # type: ignore[index]
    for file in ("vocabulary.txt", "card.md"):
        assert (left.folder / file).read_text() == (right.folder / file).read_text()
    files = (predictions.read_predictions(run.predictions("valid")) for run in (left, right))
    for one_prediction, other_prediction in zip(*files, strict=True):
        assert (one_prediction.id, one_prediction.candidates) == (other_prediction.id, other_prediction.candidates)
        assert np.allclose(one_prediction.probabilities, other_prediction.probabilities, atol=CLOSE)


def test_readers_trained_together_are_those_trained_alone(alone: list[Run], together: list[Run]) -> None:
    assert len(read_rows(together[0])) == 2 * (3 + 1)  # three batches and a validation in each epoch
    for one, other in zip(alone, together, strict=True):
        assert_same(one, other)
    assert read_rows(together[0])[0]["loss"] != read_rows(together[1])[0]["loss"]


@READERS
def test_every_reader_has_the_losses_of_plain(settings: Config, tmp_path: Path, reader: dict[str, Any]) -> None:
    group = make_group(replace(settings, reader={**settings.reader, **reader}), 2, epochs=1)
    pairs = zip(train_alone(group, tmp_path / "a"), train_together(group, tmp_path / "t"), strict=True)
    for one, other in pairs:
        assert_same(one, other)


def test_one_reader_is_a_group_of_one(settings: Config, alone: list[Run], tmp_path: Path) -> None:
    (run,) = train_together(make_group(settings, 1), tmp_path)
    assert_same(alone[0], run)


def interrupt(patch: pytest.MonkeyPatch, after: int, train: Callable[[], object]) -> None:
    """Ctrl-C during the step of this number."""
    taken = 0

    def stop_after(original: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            nonlocal taken
            taken += 1
            if taken == after:
                os.kill(os.getpid(), signal.SIGINT)
            return original(*arguments)

        return counted

    patch.setattr(PlainEngine, "_take_step", stop_after(PlainEngine._take_step))
    patch.setattr(
        "asreader.training.engines.stacked.AutogradStep.learn",
        stop_after(engines._load("stacked").AutogradStep.learn),
    )
    with pytest.raises(KeyboardInterrupt):
        train()
    patch.undo()


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_stopped_and_resumed_equals_uninterrupted(
    settings: Config, together: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    interrupt(monkeypatch, steps, lambda: train_together(make_group(settings), tmp_path))
    for one, other in zip(train_together(make_group(settings), tmp_path, resume=True), together, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize(("first", "second"), [("plain", "stacked"), ("stacked", "plain")])
def test_a_run_started_with_one_engine_continues_with_another(
    settings: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    recipe = {"average": 0.8, "warmup": 2, "decay": "linear"}
    dropping = replace(settings, reader={**settings.reader, "dropout": 0.2})
    (whole,) = train_alone(make_group(dropping, 1, **recipe), tmp_path / "whole")
    (begun,) = make_group(dropping, 1, engine=first, **recipe)
    interrupt(monkeypatch, 2, lambda: loop.train_run(begun, tmp_path / "run"))
    continued = replace(begun, train=replace(begun.train, engine=second))
    assert_same(loop.train_run(continued, tmp_path / "run", resume=True), whole)


def test_readers_that_finish_leave_and_change_nothing_for_the_others(settings: Config, tmp_path: Path) -> None:
    hasty = make_group(settings, patience=1, epochs=5)
    lengths = []
    for one, other in zip(train_alone(hasty, tmp_path / "a"), train_together(hasty, tmp_path / "t"), strict=True):
        assert_same(one, other)
        lengths.append(len(read_rows(other)))
    assert len(set(lengths)) > 1


@pytest.mark.parametrize("every", [2, 7])
def test_validation_every_few_batches(settings: Config, tmp_path: Path, every: int) -> None:
    often = make_group(settings, 2, validate_every=every, metric="loss", patience=2)
    for one, other in zip(train_alone(often, tmp_path / "a"), train_together(often, tmp_path / "t"), strict=True):
        assert_same(one, other)


def test_without_validation_data_the_last_weights_are_kept(settings: Config, tmp_path: Path) -> None:
    blind = make_group(replace(settings, data=replace(settings.data, valid="")), 1)
    (one,), (other,) = train_alone(blind, tmp_path / "a"), train_together(blind, tmp_path / "t")
    assert is_near(one.load_weights()["embed.weight"], other.load_weights()["embed.weight"])


def test_a_reader_that_diverges_leaves_and_is_named(settings: Config, alone: list[Run], tmp_path: Path) -> None:
    wild = make_group(settings, 2)
    wild[1] = replace(wild[1], train=replace(wild[1].train, learning_rate=1e38))
    with pytest.raises(InputError, match="1: the loss is not a number at step"):
        train_together(wild, tmp_path)
    assert_same(Run(tmp_path / "0"), alone[0])


@pytest.mark.parametrize("question_at", ["before", "after", "around"])
def test_a_question_next_to_its_document_and_anonymized_candidates(
    settings: Config, tmp_path: Path, question_at: str
) -> None:
    data = replace(settings.data, question_at=question_at, anonymise=0.3)
    placed = make_group(replace(settings, data=data), 2, epochs=1)
    for one, other in zip(train_alone(placed, tmp_path / "a"), train_together(placed, tmp_path / "t"), strict=True):
        assert_same(one, other)


def test_schedule_average_and_teacher(settings: Config, alone: list[Run], tmp_path: Path) -> None:
    teacher = tmp_path / "teacher.jsonl"
    store = load_store(Path(settings.data.train))
    predictions.write_predictions(teacher, Reader.load(str(alone[0].folder)).evaluate(store).predictions)
    recipe = {"warmup": 2, "decay": "linear", "average": 0.8, "teacher": str(teacher), "teacher_weight": 0.4}
    taught = make_group(settings, 2, **recipe)
    for one, other in zip(train_alone(taught, tmp_path / "a"), train_together(taught, tmp_path / "t"), strict=True):
        assert_same(one, other)


def test_data_that_a_device_cannot_hold_is_trained_by_plain(
    settings: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = (("Ana", "Bo", "met", "Bo", "."),)
    example = Example("x", document, (GAP, "met", "Bo"), ("Ana Bo", "Bo"), "Ana Bo")
    data = tmp_path / "overlapping.jsonl"
    data.write_text(jsonl.format_example(example))
    validated = replace(settings, data=replace(settings.data, valid=str(data)))
    group = make_group(validated, 1)
    assert_same(train_together(group, tmp_path / "t")[0], train_alone(group, tmp_path / "a")[0])
    assert "validated one after the other" in capsys.readouterr().err
    trained = make_group(replace(settings, data=replace(settings.data, train=str(data), min_count=1)), 1)
    assert_same(train_together(trained, tmp_path / "t2")[0], train_alone(trained, tmp_path / "a2")[0])
    assert "engine plain is used" in capsys.readouterr().err


def test_unequal_readers_and_used_folders_are_refused(settings: Config, together: list[Run], tmp_path: Path) -> None:
    one, two = make_group(settings, 2)
    folders = make_folders(tmp_path, 2)
    with pytest.raises(InputError, match="--resume"):
        loop.train_runs([one], [together[0].folder])
    for other in (
        replace(two, reader={**two.reader, "hidden": 7}),
        replace(two, train=replace(two.train, batch=7)),
    ):
        with pytest.raises(InputError, match=r"differ in train\.seed"):
            loop.train_runs([one, other], folders)
    with pytest.raises(InputError, match="share a folder"):
        loop.train_runs([one, two], [tmp_path / "x", tmp_path / "x"])
    with pytest.raises(InputError, match="one of its own"):
        loop.train_runs([one, two], [tmp_path / "x"])
    assert not any(tmp_path.iterdir())


def test_an_engine_says_why_it_cannot_be_used(settings: Config) -> None:
    for reader, reason in (
        ({"name": "blending"}, "not attention_sum"),
        ({"layers": 2}, "more than one layer"),
        ({}, "GPU only"),
    ):
        spec = JobSpec(replace(settings, reader={**settings.reader, **reader}))
        assert reason in str(fused_attention_sum.supports(spec))
    name, rejected = choose_engine(JobSpec(settings))
    assert name == "plain" and set(rejected) == {"fused_attention_sum", "stacked"}
    with pytest.raises(InputError, match=r"train\.engine=fused_attention_sum cannot be used: runs on a GPU only"):
        choose_engine(JobSpec(replace(settings, train=replace(settings.train, engine="fused_attention_sum"))))


def test_engines_are_listed() -> None:
    assert set(plugins.list_plugins("training.engines")) == {"ddp", "fused_attention_sum", "plain", "stacked"}


@pytest.mark.parametrize("kind", ["stacked", "fused_attention_sum"])
def test_the_kernels_of_a_gpu_give_the_losses_of_plain(
    settings: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """By Triton's interpreter on a CPU, which is slow: two readers, two steps, documents of a few words."""
    pytest.importorskip("triton")
    monkeypatch.setattr(device, "UNIQUE_STEP", 16)
    monkeypatch.setattr(device, "WIDTH_STEP", 8)
    data = tmp_path / "few.jsonl"
    names = ("Ana", "Bo", "Cy", "Di")
    texts = [((one, "met", other, "in", "a", "park", "."), (other, "left", ".")) for one, other in pairwise(names)]
    examples = [Example(text[0][0], text, (GAP, "met", text[1][0]), text[0][:3], text[0][0]) for text in texts]
    data.write_text("".join(map(jsonl.format_example, examples)))
    small = replace(
        settings,
        data=replace(settings.data, train=str(data), valid="", unknown=5),
        reader={"name": "attention_sum", "embedding": 16, "hidden": 64, "dropout": 0.2},
    )
    group = make_group(small, 2, epochs=1, batch=2, average=0.9)
    runs = [Run(folder) for folder in make_folders(tmp_path / "t", 2)]
    with ExitStack() as stack:
        if not torch.cuda.is_available():
            stack.enter_context(ops.using("triton"))
        make = (
            partial(FusedStep, dropout=0.2) if kind == "fused_attention_sum" else engines._load("stacked").AutogradStep
        )
        engine = StackedEngine(kind, JobSpec(group[0], 2), make, paired=kind == "fused_attention_sum")
        shared = loop.load_data(group, runs)
        loop.fit([loop._make_job(own, run, shared, engine) for own, run in zip(group, runs, strict=True)], engine)
    for one, other in zip(train_alone(group, tmp_path / "a"), runs, strict=True):
        for left, right in zip(read_rows(one), read_rows(other), strict=True):
            assert left["loss"] == pytest.approx(right["loss"], abs=1e-4)
        weights, others = one.load_weights(), other.load_weights()
        assert all(is_near(weights[name], others[name]) for name in weights)
