"""Sweeps in processes of their own, killed without mercy: they go on, and end with the same runs, byte for byte."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from asreader.sweep.status import FINISHED
from tests.sweep.conftest import Sweeper, experiment

KEPT = ("weights.safetensors", "state.safetensors", "vocabulary.txt", "predictions/valid.jsonl", "card.md")
PATIENCE_SECONDS = 240.0


@dataclass(frozen=True)
class Sweep:
    """A sweep as a user starts it."""

    config: Path
    out: Path
    options: tuple[str, ...]

    def command(self, *more: str) -> list[str]:
        words = [sys.executable, "-m", "asreader", "sweep", str(self.config), "--out", str(self.out)]
        return [*words, *self.options, *more]

    def begin(self, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command(*more), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def finish(self, *more: str, limit: int | None = None) -> subprocess.CompletedProcess[str]:
        """`limit`: the largest file that may be written, in bytes."""

        def limited() -> None:
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return subprocess.run(
            self.command("--json", *more), capture_output=True, text=True, timeout=PATIENCE_SECONDS, preexec_fn=limited
        )

    def contents(self) -> dict[str, list[bytes]]:
        return {
            path.parent.name: [(path.parent / name).read_bytes() for name in KEPT]
            for path in sorted(self.out.glob(f"*/{FINISHED}"))
        }

    def states(self) -> dict[Path, int]:
        """When each run was last saved."""
        found = {}
        for path in self.out.glob("*/state.safetensors"):
            try:
                found[path] = path.stat().st_mtime_ns
            except FileNotFoundError:  # being replaced
                continue
        return found


def descendants(process: int) -> dict[int, str]:
    """All processes that come from this one, and their command lines."""
    listed = subprocess.run(["ps", "-ewwo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    found: dict[int, str] = {}
    parents = {process}
    while parents:
        children = {int(pid): args for pid, parent, args in rows if int(parent) in parents}
        found |= children
        parents = set(children)
    return found


def workers(driver: int) -> list[int]:
    """Processes that train, or are about to."""
    return [
        process
        for process, command in descendants(driver).items()
        if "spawn_main" in command or command.startswith("ray::work")
    ]


def wait_for(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not what():
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)


def saved_again(sweep: Sweep, process: subprocess.Popen[str], dice: random.Random) -> None:
    """Wait until some run has been saved, and a while longer."""
    wait_for(lambda: bool(workers(process.pid)), process)  # those of a sweep that was killed may have just died
    before = sweep.states()
    wait_for(lambda: sweep.states() != before, process)
    time.sleep(dice.random() / 2)


def killed_twice(sweep: Sweep, dice: random.Random, *more: str) -> None:
    """Kill a worker somewhere in a sweep, and later the sweep itself."""
    with sweep.begin(*more) as process:
        try:
            saved_again(sweep, process, dice)
            os.kill(dice.choice(workers(process.pid)), signal.SIGKILL)
            saved_again(sweep, process, dice)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that take a second or two, and save at every step."""
    path = experiment(tmp_path_factory.mktemp("longer"), 320)
    path.write_text(path.read_text().replace("[train]", "[train]\ncheckpoint_seconds = 0.0"))
    return path


def test_killed_or_stopped_and_resumed_equals_uninterrupted(config: Path, swept: Sweeper, tmp_path: Path) -> None:
    """The worker dies, the sweep dies, Ctrl-C: three ways to end, one after the other."""
    whole = swept(tmp_path / "whole", "reader.hidden=6,8", seeds=2, config=config)
    sweep = Sweep(config, tmp_path / "out", ("--grid", "reader.hidden=6,8", "--seeds", "2", "--workers", "2"))
    dice = random.Random(1)
    killed_twice(sweep, dice)
    with sweep.begin("--resume") as process:
        saved_again(sweep, process, dice)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1
    assert "--resume goes on" in told.splitlines()[-1]
    assert "Traceback" not in told
    done = swept(sweep.out, "reader.hidden=6,8", seeds=2, config=config, resume=True)
    assert [row.accuracy for row in done.rows] == [row.accuracy for row in whole.rows]
    assert sweep.contents() == Sweep(config, whole.out, ()).contents()
    assert len(sweep.contents()) == 4
    assert not list(sweep.out.rglob("*.part"))


TWELVE = ("--grid", "reader.hidden=6,8", "--grid", "train.learning_rate=0.005,0.01,0.02", "--seeds", "2")


@pytest.fixture(scope="module")
def uninterrupted(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    sweep = Sweep(config, tmp_path_factory.mktemp("whole") / "out", TWELVE)
    done = sweep.finish()
    assert done.returncode == 0, done.stderr
    return sweep


@pytest.mark.slow
@pytest.mark.parametrize("where", ["--executor local --workers 1", "--executor local --workers 2", "--executor ray"])
def test_twelve_runs_killed_at_random_and_resumed_equal_uninterrupted(
    uninterrupted: Sweep, config: Path, tmp_path: Path, where: str
) -> None:
    sweep = Sweep(config, tmp_path / "out", (*TWELVE, *where.split()))
    dice = random.Random(where)
    killed_twice(sweep, dice)
    killed_twice(sweep, dice, "--resume")
    done = sweep.finish("--resume")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["failed"] == 0
    assert sweep.contents() == uninterrupted.contents()
    assert len(sweep.contents()) == 12
    assert not list(sweep.out.rglob("*.part"))


def test_a_full_disk_costs_the_runs_that_need_it(small: Path, swept: Sweeper, tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk on which only small runs find room."""
    sweep = Sweep(small, tmp_path / "out", ("--grid", "reader.hidden=4,64", "--workers", "1"))
    full = sweep.finish(limit=1 << 18)
    assert full.returncode == 1, full.stderr
    fits, large = json.loads(full.stdout)["runs"]
    assert (fits["state"], large["state"]) == ("done", "failed")
    assert "cannot be written" in large["note"]
    assert not list(sweep.out.rglob("*.part"))
    kept = sweep.contents()
    repaired = swept(sweep.out, "reader.hidden=4,64", resume=True)
    assert repaired.failed == []
    assert sweep.contents()[fits["id"]] == kept[fits["id"]]
