from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from asreader.cloze.stories.generator import generate_stories
from asreader.data.example import GAP, Example
from asreader.data.formats import jsonl
from asreader.errors import InputError
from asreader.evaluation import metrics, predictions
from asreader.inference.reader import Reader
from asreader.runs.folder import Run
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.training import loop
from asreader.training.engines import PendingLosses
from asreader.training.engines.plain import PlainEngine


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("data")
    for name, count, seed in (("train", 160, 1), ("valid", 40, 2)):
        (folder / f"{name}.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(count, seed))))
    return Config(
        data=DataSettings(train=str(folder / "train.jsonl"), valid=str(folder / "valid.jsonl"), anonymise=0.1),
        reader={"name": "attention_sum", "embedding": 8, "hidden": 8},
        train=TrainSettings(epochs=2, batch=16, patience=5, device="cpu", log_every=3, tensorboard=False),
    )


@pytest.fixture(scope="module")
def whole(settings: Config, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run that nothing interrupts."""
    return loop.train_run(settings, tmp_path_factory.mktemp("runs") / "whole")


@pytest.fixture(scope="module")
def beyond(settings: Config, whole: Run, tmp_path_factory: pytest.TempPathFactory) -> Config:
    """All that the paper's recipe does not have."""
    said = tmp_path_factory.mktemp("teacher") / "said.jsonl"
    store = loop.load_split(settings.data.train, "train", settings)
    predictions.write_predictions(said, Reader.load(whole.folder, "cpu").evaluate(store).predictions)
    options = replace(settings.train, warmup=4, decay="cosine", average=0.9, teacher=str(said), teacher_weight=0.3)
    return replace(settings, reader={**settings.reader, "dropout": 0.2}, train=options)


@pytest.fixture(scope="module")
def whole_beyond(beyond: Config, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run with all of it that nothing interrupts."""
    return loop.train_run(beyond, tmp_path_factory.mktemp("runs") / "beyond")


def same_files(left: Run, right: Run) -> bool:
    names = ("weights.safetensors", "state.safetensors", "vocabulary.txt", "predictions/valid.jsonl", "card.md")
    return all((left.folder / name).read_bytes() == (right.folder / name).read_bytes() for name in names)


def test_a_run_has_its_files_and_no_pickle(whole: Run) -> None:
    names = {str(path.relative_to(whole.folder)) for path in whole.folder.rglob("*") if path.is_file()}
    assert names == {
        "config.toml", "vocabulary.txt", "weights.safetensors", "state.safetensors", "metrics.jsonl",
        "environment.json", "card.md", "predictions/valid.jsonl",
    }  # fmt: skip


def test_same_seed_same_weights_other_seed_other_weights(settings: Config, whole: Run, tmp_path: Path) -> None:
    assert same_files(loop.train_run(settings, tmp_path / "again"), whole)
    other = loop.train_run(replace(settings, train=replace(settings.train, seed=2)), tmp_path / "other")
    assert not torch.equal(other.load_weights()["embed.weight"], whole.load_weights()["embed.weight"])


@pytest.mark.parametrize("steps", [1, 7, 10, 13, 19])
def test_stopped_anywhere_and_resumed_equals_uninterrupted(
    settings: Config, whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    stopped_and_resumed(settings, tmp_path, monkeypatch, steps)
    assert same_files(Run(tmp_path / "run"), whole)
    assert _rows(tmp_path / "run") == _rows(whole.folder)


@pytest.mark.parametrize("steps", [1, 10, 13])
def test_so_it_does_with_dropout_schedule_average_and_teacher(
    beyond: Config, whole_beyond: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    stopped_and_resumed(beyond, tmp_path, monkeypatch, steps)
    assert same_files(Run(tmp_path / "run"), whole_beyond)
    assert _rows(tmp_path / "run") == _rows(whole_beyond.folder)


def stopped_and_resumed(settings: Config, folder: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    original, taken = PlainEngine.run, 0

    def run_then_stop(self: PlainEngine, *arguments: Any) -> PendingLosses:
        nonlocal taken
        taken += 1
        if taken == steps:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, *arguments)

    monkeypatch.setattr(PlainEngine, "run", run_then_stop)
    with pytest.raises(KeyboardInterrupt):
        loop.train_run(settings, folder / "run")
    monkeypatch.undo()
    loop.train_run(settings, folder / "run", resume=True)


def _rows(run: Path) -> list[tuple[int, str]]:
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [(row["step"], row["kind"]) for row in rows if row["kind"] == "valid"]


def test_killed_without_mercy_and_resumed_equals_uninterrupted(settings: Config, whole: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        replace(settings, train=replace(settings.train, checkpoint_seconds=0.0)).toml()
    )
    command = [sys.executable, "-m", "asreader", "train", "config.toml", "--out", "run"]
    for delay in (0.0, 0.05, 0.3):
        resume = ["--resume"] if (tmp_path / "run").exists() else []
        process = subprocess.Popen(
            [*command, *resume], cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        state = tmp_path / "run" / "state.safetensors"
        before = state.stat().st_mtime_ns if state.exists() else 0
        while process.poll() is None and (not state.exists() or state.stat().st_mtime_ns == before):
            time.sleep(0.005)
        time.sleep(delay)
        process.kill()
        process.wait()
    subprocess.run([*command, "--resume"], cwd=tmp_path, check=True, capture_output=True)
    assert same_files(Run(tmp_path / "run"), whole)
    assert not list((tmp_path / "run").rglob("*.part"))


def test_best_weights_are_kept_and_training_stops_when_nothing_gets_better(settings: Config, tmp_path: Path) -> None:
    hasty = replace(settings, train=replace(settings.train, epochs=30, patience=2, learning_rate=0.5))
    run = loop.train_run(hasty, tmp_path / "run")
    rows = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    scores = [row["accuracy"] for row in rows if row["kind"] == "valid"]
    best = max(scores)
    assert len(scores) < 30
    assert len(scores) == scores.index(best) + 3
    predicted = predictions.read_predictions(run.predictions("valid"))
    assert metrics.score_predictions(predicted).accuracy == best


def test_validation_every_few_batches_and_by_loss(settings: Config, tmp_path: Path) -> None:
    often = replace(settings, train=replace(settings.train, validate_every=4, metric="loss", patience=99))
    run = loop.train_run(often, tmp_path / "run")
    rows = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    valid = [row for row in rows if row["kind"] == "valid"]
    assert [row["step"] for row in valid] == [4, 8, 12, 16, 20]
    best = [row["loss"] for row in valid if row["best"]]
    assert best[-1] == min(row["loss"] for row in valid)


def test_the_end_of_training_is_validated_too(settings: Config, tmp_path: Path) -> None:
    often = replace(settings, train=replace(settings.train, validate_every=7, patience=99))
    rows = [json.loads(line) for line in loop.train_run(often, tmp_path / "run").metrics.read_text().splitlines()]
    assert [row["step"] for row in rows if row["kind"] == "valid"] == [7, 14, 20]


def test_without_validation_data_the_last_weights_are_kept(settings: Config, tmp_path: Path) -> None:
    run = loop.train_run(replace(settings, data=replace(settings.data, valid="")), tmp_path / "run")
    state = load_file(run.folder / "state.safetensors")
    assert torch.equal(run.load_weights()["embed.weight"], state["network.embed.weight"])


def test_what_is_fixed_for_a_run_cannot_change(settings: Config, whole: Run) -> None:
    with pytest.raises(InputError, match="--resume"):
        loop.train_run(settings, whole.folder)
    for other in (
        replace(settings, reader={**settings.reader, "hidden": 16}),
        replace(settings, data=replace(settings.data, min_count=3)),
    ):
        with pytest.raises(InputError, match="only \\[train\\] may change"):
            loop.train_run(other, whole.folder, resume=True)


def test_a_run_keeps_its_teacher(beyond: Config, whole_beyond: Run) -> None:
    for change in ({"teacher": ""}, {"teacher_weight": 0.9}):
        with pytest.raises(InputError, match="a run keeps both"):
            loop.train_run(replace(beyond, train=replace(beyond.train, **change)), whole_beyond.folder, resume=True)  # type: ignore[arg-type]


def test_every_extra_changes_the_run_and_the_card_names_it(
    settings: Config, beyond: Config, whole: Run, tmp_path: Path
) -> None:
    options = beyond.train
    paper = (whole.folder / "card.md").read_text()
    for name, word, changed in (
        ("dropout", "dropout 0.2", replace(settings, reader=beyond.reader)),
        ("warmup", "warm-up over 4 steps", replace(settings, train=replace(settings.train, warmup=4))),
        ("decay", "cosine decay", replace(settings, train=replace(settings.train, decay="cosine"))),
        ("average", "moving average", replace(settings, train=replace(settings.train, average=0.9))),
        ("teacher", "`said.jsonl`", replace(settings, train=replace(settings.train, teacher=options.teacher))),
    ):
        run = loop.train_run(changed, tmp_path / name)
        assert word in (run.folder / "card.md").read_text()
        assert word not in paper
        assert not torch.equal(run.load_weights()["embed.weight"], whole.load_weights()["embed.weight"])


def test_a_finished_run_can_be_trained_on(settings: Config, tmp_path: Path) -> None:
    loop.train_run(settings, tmp_path / "run")
    longer = replace(settings, train=replace(settings.train, epochs=3))
    assert len(_rows(loop.train_run(longer, tmp_path / "run", resume=True).folder)) == 3
    at_once = loop.train_run(longer, tmp_path / "at_once")
    assert same_files(Run(tmp_path / "run"), at_once)


def test_questions_that_cannot_be_pointed_at_are_left_out_of_training_only(tmp_path: Path) -> None:
    document = (("Ana", "met", "Bo", "."),)
    questions = [Example(str(n), document, (GAP, "met", "Bo"), ("Ana", "Bo", "Cy"), "Ana") for n in range(8)]
    missing = [Example(f"m{n}", document, (GAP, "met", "Bo"), ("Ana", "Bo", "Cy"), "Cy") for n in range(8)]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(map(jsonl.format_example, questions + missing)))
    settings = Config(
        data=DataSettings(train=str(data), valid=str(data)),
        reader={"embedding": 4, "hidden": 4},
        train=TrainSettings(epochs=3, learning_rate=0.05, device="cpu", tensorboard=False),
    )
    run = loop.train_run(settings, tmp_path / "run")
    found = metrics.score_predictions(predictions.read_predictions(run.predictions("valid")))
    assert (found.questions, found.accuracy) == (16, 0.5)
    with pytest.raises(InputError, match="nothing to learn"):
        data.write_text("".join(map(jsonl.format_example, missing)))
        loop.train_run(settings, tmp_path / "nothing")


def test_train_and_evaluation_vocabulary(settings: Config, tmp_path: Path) -> None:
    both = replace(settings, data=replace(settings.data, vocabulary="train+evaluation"))
    run = loop.train_run(replace(both, train=replace(both.train, epochs=1)), tmp_path / "run")
    assert Reader.load(run.folder).evaluate(loop.load_split(settings.data.valid, "valid", settings)).unknown_words == 0


def test_tensorboard_has_the_same_figures(settings: Config, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = loop.train_run(replace(settings, train=replace(settings.train, tensorboard=True)), tmp_path / "run")
    board = EventAccumulator(str(run.tensorboard)).Reload()
    rows = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    shown = [(event.step, round(event.value, 5)) for event in board.Scalars("valid/accuracy")]
    assert shown == [(row["step"], round(row["accuracy"], 5)) for row in rows if row["kind"] == "valid"]


def test_it_says_so_if_answers_are_unknown_in_validation_only(
    settings: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def data(name: str, people: list[str]) -> str:
        """Each one is named in two sentences."""
        examples = []
        for number, who in enumerate(people):
            document = ((who, "met", "them", "."), ("Then", who, "sat", "."))
            examples.append(Example(str(number), document, (GAP, "met", "them"), (who, "them"), who))
        (tmp_path / name).write_text("".join(map(jsonl.format_example, examples)))
        return str(tmp_path / name)

    known, others = (
        sorted({example.answer for example in generate_stories(30, seed) if example.answer}) for seed in (1, 2)
    )
    strangers = [f"{name}ius" for name in others]
    warned = []
    for valid in (known, strangers):
        own = replace(settings.data, train=data("t.jsonl", known * 3), valid=data("v.jsonl", valid), anonymise=0.0)
        once = replace(settings.train, epochs=1)
        loop.train_run(replace(settings, data=own, train=once), tmp_path / f"run{len(warned)}")
        warned.append("data.min_count" in capsys.readouterr().err)
    assert warned == [False, True]
