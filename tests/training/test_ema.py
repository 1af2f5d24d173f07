from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl
from asreader.inference.reader import Reader
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.training import loop
from asreader.training.ema import ExponentialMovingAverage
from asreader.training.engines import PendingLosses
from asreader.training.engines.plain import PlainEngine


def slow(history: list[float], decay: float) -> float:
    """The mean of all weights so far, each weighed by what so many later steps have kept of it."""
    kept = [decay ** (len(history) - 1 - place) for place in range(len(history))]
    return sum(weight * part for weight, part in zip(history, kept, strict=True)) / sum(kept)


@given(
    history=st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=30),
    decay=st.sampled_from([0.1, 0.9, 0.999, 1e-9]),
)
def test_the_average_is_the_weighed_mean_of_all_weights_so_far(history: list[float], decay: float) -> None:
    network = nn.Linear(1, 1, bias=False).double()
    average = ExponentialMovingAverage(network, decay)
    for step, weight in enumerate(history, 1):
        nn.init.constant_(network.weight, weight)
        average.update(step)
        assert average.weights["weight"].item() == pytest.approx(slow(history[:step], decay), abs=1e-9)
    assert network.weight.item() == history[-1]


def test_the_networks_own_weights_come_back_whatever_happens() -> None:
    network = nn.Linear(3, 2)
    own = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    average = ExponentialMovingAverage(network, 0.9)
    average.weights = {name: tensor + 1 for name, tensor in average.weights.items()}
    with pytest.raises(ZeroDivisionError), average.applied():
        assert torch.equal(network.weight, own["weight"] + 1)
        raise ZeroDivisionError
    assert all(torch.equal(tensor, own[name]) for name, tensor in network.state_dict().items())


def test_an_average_goes_on_where_it_was_left_and_one_begun_later_from_the_weights_of_then() -> None:
    network = nn.Linear(3, 2)
    average = ExponentialMovingAverage(network, 0.9)
    nn.init.ones_(network.weight)
    left = {name: tensor - 1 for name, tensor in average.weights.items()}
    average.restore(left)
    assert all(torch.equal(tensor, left[name]) for name, tensor in average.weights.items())
    average.restore({})
    assert all(torch.equal(tensor, average.weights[name]) for name, tensor in network.state_dict().items())


def test_averaged_weights_are_validated_and_kept_and_the_others_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, count, seed in (("train", 48, 1), ("valid", 20, 2)):
        (tmp_path / f"{name}.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(count, seed))))
    settings = Config(
        data=DataSettings(train=str(tmp_path / "train.jsonl"), valid=str(tmp_path / "valid.jsonl")),
        reader={"embedding": 4, "hidden": 4},
        train=TrainSettings(epochs=1, batch=8, learning_rate=0.05, device="cpu", tensorboard=False, metric="loss"),
    )
    decay, history = 0.8, list[torch.Tensor]()
    monkeypatch.setattr(PlainEngine, "run", _recording(PlainEngine.run, history))
    plain = loop.train_run(settings, tmp_path / "plain")
    trained, history[:] = list(history), []
    run = loop.train_run(replace(settings, train=replace(settings.train, average=decay)), tmp_path / "averaged")
    assert all(torch.equal(one, other) for one, other in zip(trained, history, strict=True))
    state = run.load_state()
    assert state is not None
    assert torch.equal(state[0]["network.embed.weight"], plain.load_weights()["embed.weight"])
    parts = np.array([decay ** (len(history) - 1 - place) for place in range(len(history))])
    mean = (torch.stack(history) * torch.tensor(parts / parts.sum(), dtype=torch.float32)[:, None, None]).sum(0)
    assert torch.allclose(run.load_weights()["embed.weight"], mean, atol=1e-6)
    found = Reader.load(run.folder, "cpu").evaluate(loop.load_split(settings.data.valid, "valid", settings))
    assert state[1]["best"] == -found.loss


def _recording(run: Callable[..., PendingLosses], history: list[torch.Tensor]) -> Callable[..., PendingLosses]:
    def run_and_record(self: PlainEngine, *arguments: Any) -> PendingLosses:
        losses = run(self, *arguments)
        history.append(self._job.network.get_parameter("embed.weight").detach().clone())
        return losses

    return run_and_record
