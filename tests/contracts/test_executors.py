"""The contract that every executor fulfils."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from asreader import executors, plugins
from asreader.errors import ExecutionError, InputError
from asreader.executors import RETRIES, ResourceRequest
from asreader.system.signals import graceful_shutdown


def slow_square(number: int) -> int:
    time.sleep(0.01 * (5 - number % 5))  # later items finish first
    return number * number


def process(_: int) -> int:
    time.sleep(0.3)  # long enough for the second process to have started
    return os.getpid()


def fail(number: int) -> int:
    if number == 7:
        raise InputError("seven is no number of mine")
    return number


def die(number: int) -> int:
    if number == 3:
        os._exit(9)
    return number


def long_text(size: int, number: int) -> str:
    return str(number % 10) * size


every_executor = pytest.mark.parametrize("name", plugins.list_plugins("executors"))


@every_executor
def test_results_come_in_the_order_of_the_items(name: str) -> None:
    assert list(executors.map_ordered(name, slow_square, range(20), 2)) == [number * number for number in range(20)]
    assert list(executors.map_ordered(name, slow_square, [], 2)) == []


@every_executor
def test_results_may_be_large(name: str) -> None:
    found = list(executors.map_ordered(name, partial(long_text, 1 << 20), range(4), 2))
    assert [(text[0], len(text)) for text in found] == [(str(number), 1 << 20) for number in range(4)]


@every_executor
def test_an_exception_in_one_item_reaches_the_caller(name: str) -> None:
    with pytest.raises(Exception, match="seven is no number of mine"):
        list(executors.map_ordered(name, fail, range(10), 2))


def test_several_workers_are_several_processes() -> None:
    assert len(set(executors.map_ordered("local", process, range(8), 2))) == 2
    assert set(executors.map_ordered("local", process, range(2), 1)) == {os.getpid()}


def test_only_a_few_items_are_taken_ahead() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = executors.map_ordered("local", slow_square, items(), 2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert len(taken) < 20


def test_a_killed_worker_is_reported_in_one_line() -> None:
    with pytest.raises(ExecutionError, match="a worker process was killed"):
        list(executors.map_ordered("local", die, range(10), 2))


def die_often(folder: Path, number: int) -> int:
    """Item 3 kills its process on every attempt, item 5 on the first; item 4 raises."""
    with (folder / str(number)).open("a") as tries:
        tries.write("x")
    if number == 3 or (number == 5 and (folder / "5").stat().st_size == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 4:
        raise InputError("four is no number of mine")
    return number


@every_executor
def test_a_killed_process_or_an_exception_costs_its_own_item_alone(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = {outcome.item: outcome for outcome in executors.run_each(name, partial(die_often, tmp_path), range(7), 2)}
    assert {item for item, outcome in found.items() if outcome.failure} == {3, 4}
    assert {outcome.result for outcome in found.values() if not outcome.failure} == {0, 1, 2, 5, 6}
    assert found[4].failure == "four is no number of mine"
    assert f"{RETRIES + 1} times" in found[3].failure
    tries = {number: (tmp_path / str(number)).stat().st_size for number in range(7)}
    assert tries == {number: {3: RETRIES + 1, 5: 2}.get(number, 1) for number in range(7)}
    assert capfd.readouterr().out == ""


def finish_first_item_last(folder: Path, number: int) -> int:
    """Item 0 ends after the others."""
    (folder / str(number)).touch()
    end = time.monotonic() + 60  # if they never start
    while not number and len(list(folder.iterdir())) < 3 and time.monotonic() < end:
        time.sleep(0.5)
    return os.getpid()


@every_executor
def test_outcomes_come_in_order_of_completion_from_other_processes(name: str, tmp_path: Path) -> None:
    found = list(executors.run_each(name, partial(finish_first_item_last, tmp_path), range(3), 2))
    assert [outcome.item for outcome in found] == [1, 2, 0]
    assert os.getpid() not in [outcome.result for outcome in found]
    assert list(executors.run_each(name, partial(finish_first_item_last, tmp_path), [], 2)) == []


def run_until_stopped(folder: Path, number: int) -> None:
    stopped = threading.Event()
    with graceful_shutdown(stopped.set):
        (folder / f"started-{number}").touch()
        while not stopped.is_set():
            time.sleep(0.01)
        (folder / f"ended-{number}").touch()
        raise KeyboardInterrupt


@every_executor
def test_running_items_shut_down_gracefully(name: str, tmp_path: Path) -> None:
    def have_two_items_started() -> bool:
        return len(list(tmp_path.glob("started-*"))) == 2

    with pytest.raises(KeyboardInterrupt):
        list(
            executors.run_each(
                name, partial(run_until_stopped, tmp_path), range(5), 2, should_stop=have_two_items_started
            )
        )
    started, ended = ({path.name[-1] for path in tmp_path.glob(f"{name}-*")} for name in ("started", "ended"))
    assert len(started) == 2
    assert ended == started


@every_executor
def test_a_request_for_missing_gpus_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(InputError, match="GPU"):
        list(executors.run_each(name, read_visible_devices, [0], 1, resources=ResourceRequest(gpus=1.0)))


def read_visible_devices(_: int) -> str:
    return os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.mark.parametrize(
    ("gpus", "workers", "seen"),
    [(1.0, 0, ["2", "5"]), (0.5, 0, ["2", "2", "5", "5"]), (0.5, 1, ["2"] * 4), (0.0, 2, [""] * 4)],
)
def test_each_local_worker_sees_its_own_gpu(
    gpus: float, workers: int, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    found = executors.run_each(
        "local", read_visible_devices, range(len(seen)), workers, resources=ResourceRequest(gpus=gpus)
    )
    assert sorted(outcome.result or "" for outcome in found) == seen
