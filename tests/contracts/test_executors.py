"""What every executor promises, whichever it is."""

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


every = pytest.mark.parametrize("name", plugins.list_plugins("executors"))


@every
def test_results_come_in_the_order_of_the_items(name: str) -> None:
    assert list(executors.map_ordered(name, slow_square, range(20), 2)) == [number * number for number in range(20)]
    assert list(executors.map_ordered(name, slow_square, [], 2)) == []


@every
def test_results_may_be_large(name: str) -> None:
    found = list(executors.map_ordered(name, partial(long_text, 1 << 20), range(4), 2))
    assert [(text[0], len(text)) for text in found] == [(str(number), 1 << 20) for number in range(4)]


@every
def test_a_mistake_in_one_item_is_told(name: str) -> None:
    with pytest.raises(Exception, match="seven is no number of mine"):
        list(executors.map_ordered(name, fail, range(10), 2))


def test_several_processes_work() -> None:
    assert len(set(executors.map_ordered("local", process, range(8), 2))) == 2
    assert set(executors.map_ordered("local", process, range(2), 1)) == {os.getpid()}


def test_only_so_many_items_are_taken_ahead() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = executors.map_ordered("local", slow_square, items(), 2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert len(taken) < 20


def test_a_worker_that_dies_is_told_in_one_line() -> None:
    with pytest.raises(ExecutionError, match="a worker process was killed"):
        list(executors.map_ordered("local", die, range(10), 2))


def die_often(folder: Path, number: int) -> int:
    """Item 3 kills its process whenever it is tried, item 5 the first time; item 4 raises."""
    with (folder / str(number)).open("a") as tries:
        tries.write("x")
    if number == 3 or (number == 5 and (folder / "5").stat().st_size == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 4:
        raise InputError("four is no number of mine")
    return number


@every
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


def first_last(folder: Path, number: int) -> int:
    """Item 0 is done when the others are."""
    (folder / str(number)).touch()
    end = time.monotonic() + 60  # if they never begin
    while not number and len(list(folder.iterdir())) < 3 and time.monotonic() < end:
        time.sleep(0.5)
    return os.getpid()


@every
def test_outcomes_come_as_items_are_done_in_other_processes(name: str, tmp_path: Path) -> None:
    found = list(executors.run_each(name, partial(first_last, tmp_path), range(3), 2))
    assert [outcome.item for outcome in found] == [1, 2, 0]
    assert os.getpid() not in [outcome.result for outcome in found]
    assert list(executors.run_each(name, partial(first_last, tmp_path), [], 2)) == []


def until_stopped(folder: Path, number: int) -> None:
    stopped = threading.Event()
    with graceful_shutdown(stopped.set):
        (folder / f"begun-{number}").touch()
        while not stopped.is_set():
            time.sleep(0.01)
        (folder / f"ended-{number}").touch()
        raise KeyboardInterrupt


@every
def test_work_is_asked_politely_to_stop(name: str, tmp_path: Path) -> None:
    def stopping() -> bool:
        return len(list(tmp_path.glob("begun-*"))) == 2

    with pytest.raises(KeyboardInterrupt):
        list(executors.run_each(name, partial(until_stopped, tmp_path), range(5), 2, should_stop=stopping))
    begun, ended = ({path.name[-1] for path in tmp_path.glob(f"{name}-*")} for name in ("begun", "ended"))
    assert len(begun) == 2
    assert ended == begun


@every
def test_what_no_machine_has_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(InputError, match="GPU"):
        list(executors.run_each(name, visible, [0], 1, resources=ResourceRequest(gpus=1.0)))


def visible(_: int) -> str:
    return os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.mark.parametrize(
    ("gpus", "workers", "seen"),
    [(1.0, 0, ["2", "5"]), (0.5, 0, ["2", "2", "5", "5"]), (0.5, 1, ["2"] * 4), (0.0, 2, [""] * 4)],
)
def test_each_local_worker_sees_its_own_gpu(
    gpus: float, workers: int, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    found = executors.run_each("local", visible, range(len(seen)), workers, resources=ResourceRequest(gpus=gpus))
    assert sorted(outcome.result or "" for outcome in found) == seen
