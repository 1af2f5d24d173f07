"""What every executor promises, whichever it is."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial

import pytest

from asreader import executors, plugins
from asreader.errors import InputError, Stopped


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


every = pytest.mark.parametrize("name", plugins.names("executors"))


@every
def test_results_come_in_the_order_of_the_items(name: str) -> None:
    assert list(executors.ordered(name, slow_square, range(20), 2)) == [number * number for number in range(20)]
    assert list(executors.ordered(name, slow_square, [], 2)) == []


@every
def test_results_may_be_large(name: str) -> None:
    found = list(executors.ordered(name, partial(long_text, 1 << 20), range(4), 2))
    assert [(text[0], len(text)) for text in found] == [(str(number), 1 << 20) for number in range(4)]


@every
def test_a_mistake_in_one_item_is_told(name: str) -> None:
    with pytest.raises(Exception, match="seven is no number of mine"):
        list(executors.ordered(name, fail, range(10), 2))


def test_several_processes_work() -> None:
    assert len(set(executors.ordered("local", process, range(8), 2))) == 2
    assert set(executors.ordered("local", process, range(2), 1)) == {os.getpid()}


def test_only_so_many_items_are_taken_ahead() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = executors.ordered("local", slow_square, items(), 2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert len(taken) < 20


def test_a_worker_that_dies_is_told_in_one_line() -> None:
    with pytest.raises(Stopped, match="a worker process was killed"):
        list(executors.ordered("local", die, range(10), 2))
