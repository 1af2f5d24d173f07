"""Sweeps in separate processes that are killed: resumed, they end with the same runs, byte for byte."""

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

from asreader.sweep.status import FINISHED_FILE
from tests.sweep.conftest import SweepFunction, write_experiment

COMPARED_FILES = ("weights.safetensors", "state.safetensors", "vocabulary.txt", "predictions/valid.jsonl", "card.md")
TIMEOUT_SECONDS = 240.0


@dataclass(frozen=True)
class SweepCommand:
    """The sweep command with its options."""

    config: Path
    out: Path
    options: tuple[str, ...]

    def command(self, *more: str) -> list[str]:
        words = [sys.executable, "-m", "asreader", "sweep", str(self.config), "--out", str(self.out)]
        return [*words, *self.options, *more]

    def start(self, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command(*more), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def finish(self, *more: str, limit: int | None = None) -> subprocess.CompletedProcess[str]:
        """`limit`: the largest file that may be written, in bytes."""

        def limited() -> None:
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return subprocess.run(
            self.command("--json", *more), capture_output=True, text=True, timeout=TIMEOUT_SECONDS, preexec_fn=limited
        )

    def read_contents(self) -> dict[str, list[bytes]]:
        return {
            path.parent.name: [(path.parent / name).read_bytes() for name in COMPARED_FILES]
            for path in sorted(self.out.glob(f"*/{FINISHED_FILE}"))
        }

    def read_state_times(self) -> dict[Path, int]:
        """When each run last wrote its state, in nanoseconds."""
        found = {}
        for path in self.out.glob("*/state.safetensors"):
            try:
                found[path] = path.stat().st_mtime_ns
            except FileNotFoundError:  # being replaced
                continue
        return found


def find_descendants(process: int) -> dict[int, str]:
    """Process id -> command line of all descendants of a process."""
    listed = subprocess.run(["ps", "-ewwo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    found: dict[int, str] = {}
    parents = {process}
    while parents:
        children = {int(pid): args for pid, parent, args in rows if int(parent) in parents}
        found |= children
        parents = set(children)
    return found


def find_workers(driver: int) -> list[int]:
    """Worker processes of a sweep."""
    return [
        process
        for process, command in find_descendants(driver).items()
        if "spawn_main" in command or command.startswith("ray::run_item")
    ]


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)


def wait_for_checkpoint(sweep: SweepCommand, process: subprocess.Popen[str], dice: random.Random) -> None:
    """Wait until some run has written its state, and up to half a second longer."""
    wait_until(lambda: bool(find_workers(process.pid)), process)  # workers of a killed sweep may only just have died
    before = sweep.read_state_times()
    wait_until(lambda: sweep.read_state_times() != before, process)
    time.sleep(dice.random() / 2)


def kill_twice(sweep: SweepCommand, dice: random.Random, *more: str) -> None:
    """Start a sweep, kill one of its workers, and later the sweep itself."""
    with sweep.start(*more) as process:
        try:
            wait_for_checkpoint(sweep, process, dice)
            os.kill(dice.choice(find_workers(process.pid)), signal.SIGKILL)
            wait_for_checkpoint(sweep, process, dice)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that take one or two seconds and write a checkpoint at every step."""
    path = write_experiment(tmp_path_factory.mktemp("longer"), 320)
    path.write_text(path.read_text().replace("[train]", "[train]\ncheckpoint_seconds = 0.0"))
    return path


def test_a_killed_and_resumed_sweep_equals_an_uninterrupted_one(
    config: Path, sweep_small: SweepFunction, tmp_path: Path
) -> None:
    """A worker is killed, the sweep is killed, Ctrl-C, in this order."""
    whole = sweep_small(tmp_path / "whole", "reader.hidden=6,8", seeds=2, config=config)
    sweep = SweepCommand(config, tmp_path / "out", ("--grid", "reader.hidden=6,8", "--seeds", "2", "--workers", "2"))
    dice = random.Random(1)
    kill_twice(sweep, dice)
    with sweep.start("--resume") as process:
        wait_for_checkpoint(sweep, process, dice)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 1
    assert "--resume continues" in stderr.splitlines()[-1]
    assert "Traceback" not in stderr
    done = sweep_small(sweep.out, "reader.hidden=6,8", seeds=2, config=config, resume=True)
    assert [row.accuracy for row in done.rows] == [row.accuracy for row in whole.rows]
    assert sweep.read_contents() == SweepCommand(config, whole.out, ()).read_contents()
    assert len(sweep.read_contents()) == 4
    assert not list(sweep.out.rglob("*.part"))


TWELVE = ("--grid", "reader.hidden=6,8", "--grid", "train.learning_rate=0.005,0.01,0.02", "--seeds", "2")


@pytest.fixture(scope="module")
def uninterrupted(config: Path, tmp_path_factory: pytest.TempPathFactory) -> SweepCommand:
    sweep = SweepCommand(config, tmp_path_factory.mktemp("whole") / "out", TWELVE)
    done = sweep.finish()
    assert done.returncode == 0, done.stderr
    return sweep


@pytest.mark.slow
@pytest.mark.parametrize("where", ["--executor local --workers 1", "--executor local --workers 2", "--executor ray"])
def test_twelve_runs_killed_at_random_and_resumed_equal_uninterrupted_ones(
    uninterrupted: SweepCommand, config: Path, tmp_path: Path, where: str
) -> None:
    sweep = SweepCommand(config, tmp_path / "out", (*TWELVE, *where.split()))
    dice = random.Random(where)
    kill_twice(sweep, dice)
    kill_twice(sweep, dice, "--resume")
    done = sweep.finish("--resume")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["failed"] == 0
    assert sweep.read_contents() == uninterrupted.read_contents()
    assert len(sweep.read_contents()) == 12
    assert not list(sweep.out.rglob("*.part"))


def test_a_full_disk_fails_only_the_runs_that_need_the_space(
    small: Path, sweep_small: SweepFunction, tmp_path: Path
) -> None:
    """A limit on file sizes stands for a disk on which only small runs fit."""
    sweep = SweepCommand(small, tmp_path / "out", ("--grid", "reader.hidden=4,64", "--workers", "1"))
    full = sweep.finish(limit=1 << 18)
    assert full.returncode == 1, full.stderr
    fits, large = json.loads(full.stdout)["runs"]
    assert (fits["state"], large["state"]) == ("done", "failed")
    assert "cannot be written" in large["note"]
    assert not list(sweep.out.rglob("*.part"))
    kept = sweep.read_contents()
    repaired = sweep_small(sweep.out, "reader.hidden=4,64", resume=True)
    assert repaired.failed == []
    assert sweep.read_contents()[fits["id"]] == kept[fits["id"]]
