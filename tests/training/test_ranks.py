from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.inference.reader import Reader
from asreader.readers import Losses
from asreader.runs.folder import Run
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.training import loop, ranks
from asreader.training.ranks import Ranks

QUESTIONS, BATCH, EPOCHS = 81, 8, 8  # the last batch of an epoch is one question: a process has none


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """A recipe with everything whose outcome does not depend on how many processes there are."""
    folder = tmp_path_factory.mktemp("data")
    for name, count, seed in (("train", QUESTIONS, 1), ("valid", 20, 2)):
        (folder / f"{name}.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(count, seed))))
    plain = Config(
        data=DataSettings(train=str(folder / "train.jsonl"), valid=str(folder / "valid.jsonl"), anonymise=0.1),
        reader={"embedding": 16, "hidden": 12},
        train=TrainSettings(epochs=1, batch=BATCH, device="cpu", log_every=1, tensorboard=False, patience=9),
    )
    teacher = Reader.load(loop.train_run(plain, folder / "teacher").folder, "cpu")
    said = teacher.evaluate(loop.load_split(plain.data.train, "train", plain)).predictions
    predictions.write_predictions(folder / "said.jsonl", said)
    options = replace(plain.train, epochs=EPOCHS, warmup=5, decay="linear", average=0.9, clip=0.5)
    return replace(plain, train=replace(options, teacher=str(folder / "said.jsonl")))


def started(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """Two processes on a CPU that train what config.toml says."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "-m", "asreader", "train", "config.toml", "--set", "train.engine=ddp", "--out", "run"]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen([*command, *options], cwd=folder, stdout=subprocess.PIPE, stderr=log)


def rows(run: Run) -> list[dict[str, float]]:
    return [json.loads(line) for line in run.metrics.read_text().splitlines()]


def test_two_ranks_stopped_and_resumed_train_as_one(settings: Config, tmp_path: Path) -> None:
    alone = loop.train_run(settings, tmp_path / "alone")
    (tmp_path / "config.toml").write_text(settings.toml())
    run = Run(tmp_path / "run")
    process = started(tmp_path)
    while process.poll() is None and (not run.metrics.exists() or len(rows(run)) <= QUESTIONS / BATCH + 2):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, b"")
    state = run.load_state()
    assert state is not None
    steps = EPOCHS * -(-QUESTIONS // BATCH)
    assert QUESTIONS // BATCH < state[1]["step"] < steps  # it was saved when it was told to stop
    output, _ = started(tmp_path, "--resume").communicate(timeout=120)
    assert output.decode().splitlines() == ["run: done; try `asreader evaluate run DATA` or `asreader answer run ...`"]
    assert (tmp_path / "log").read_text().count("validation accuracy") == EPOCHS  # one process talks

    assert len(rows(alone)) == steps + EPOCHS
    for one, other in zip(rows(alone), rows(run), strict=True):
        assert (one["step"], one["kind"], one.get("accuracy")) == (other["step"], other["kind"], other.get("accuracy"))
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-5)
    for left, right in zip(
        *(predictions.read_predictions(each.predictions("valid")) for each in (alone, run)), strict=True
    ):
        assert (left.id, left.candidates) == (right.id, right.candidates)
        assert np.allclose(left.probabilities, right.probabilities, atol=1e-5)
    files = [{path.name for path in each.folder.rglob("*")} for each in (alone, run)]
    assert files[0] == files[1]
    assert (alone.folder / "card.md").read_text() == (run.folder / "card.md").read_text()


def test_without_torchrun_it_is_refused_and_nothing_written(
    settings: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ranks.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="torchrun --nproc-per-node 2"):
        loop.train_run(replace(settings, train=replace(settings.train, engine="ddp")), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@given(questions=st.lists(st.integers(0, 99), max_size=40), count=st.integers(1, 9))
def test_shards_split_a_batch_evenly(questions: list[int], count: int) -> None:
    batch = np.array(questions, np.intp)
    shards = [Ranks(rank, count).shard(batch) for rank in range(count)]
    assert sorted(np.concatenate(shards).tolist()) == sorted(questions)
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_a_single_rank_changes_nothing() -> None:
    values, alone = torch.tensor([1.0, 2.0, 6.0], requires_grad=True), Ranks()
    loss, mean = alone.average_losses(Losses(values, torch.ones(3, dtype=torch.bool)))
    assert (loss.item(), mean.item(), mean.requires_grad) == (3, 3, False)
    assert (alone.any(True), alone.any(False), alone.broadcast([0.1])) == (True, False, [0.1])
    assert (alone.is_main, Ranks(1, 2).is_main) == (True, False)


def test_a_rank_takes_the_device_of_its_own_number() -> None:
    assert Ranks(1, 2, 1).pick_device("cpu") == torch.device("cpu")
    with pytest.raises(InputError, match="write auto, cuda or cpu"):
        Ranks(1, 2, 1).pick_device("cuda:0")
