"""A small experiment on generated stories, and sweeps of it in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from asreader import executors
from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl
from asreader.executors import Outcome, ResourceRequest, attempt_item
from asreader.sweep import search_space
from asreader.sweep.driver import ExecutionOptions, SweepSpec, run_sweep
from asreader.sweep.summary import SweepReport

SETTINGS = """
[data]
train = "{folder}/train.jsonl"
valid = "{folder}/valid.jsonl"
[reader]
embedding = 8
hidden = 8
[train]
epochs = 2
batch = 16
patience = 9
learning_rate = 0.01
device = "cpu"
tensorboard = false
"""


def write_experiment(folder: Path, count: int) -> Path:
    """Write data and settings; returns the settings file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, number, seed in (("train", count, 1), ("valid", 40, 2)):
        (folder / f"{name}.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(number, seed))))
    (folder / "small.toml").write_text(SETTINGS.format(folder=folder))
    return folder / "small.toml"


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_experiment(tmp_path_factory.mktemp("small"), 60)


def run_here(
    executor: str,
    function: Callable[[Any], Any],
    items: Iterable[Any],
    workers: int = 0,
    *,
    resources: ResourceRequest,
    should_stop: Callable[[], bool],
) -> Iterator[Outcome[Any, Any]]:
    """An executor that runs in this process."""
    for item in items:
        yield attempt_item(function, item)
        if should_stop():
            raise KeyboardInterrupt


SweepFunction = Callable[..., SweepReport]


@pytest.fixture
def sweep_small(monkeypatch: pytest.MonkeyPatch, small: Path) -> SweepFunction:
    """A sweep over the small experiment, in this process."""
    monkeypatch.setattr(executors, "run_each", run_here)

    def run(
        out: Path, *axes: str, resume: bool = False, config: Path = small, gpus: float = 0.0, **spec_options: Any
    ) -> SweepReport:
        spec = SweepSpec(config, axes=tuple(map(search_space.parse_axis, axes)), **spec_options)
        return run_sweep(spec, ExecutionOptions(out, gpus=gpus), resume=resume)

    return run
