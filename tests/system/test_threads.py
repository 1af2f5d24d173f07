from __future__ import annotations

import time
from collections.abc import Iterator
from threading import get_ident

import pytest
import torch

from asreader.system.threads import limit_threads, map_on_all_cores


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_the_last_active_limit_restores_the_threads(two_threads: None) -> None:
    two, one = limit_threads(2), limit_threads(1)
    assert two.__enter__() == 2
    assert torch.get_num_threads() == 2
    assert one.__enter__() == 2
    assert torch.get_num_threads() == 1
    two.__exit__(None, None, None)
    assert torch.get_num_threads() == 1
    one.__exit__(None, None, None)
    assert torch.get_num_threads() == 2


def test_results_come_in_order_from_two_threads(two_threads: None) -> None:
    def slow_if_even(number: int) -> tuple[int, int, int]:
        time.sleep(0.02 * (number % 2 == 0))
        return number, get_ident(), torch.get_num_threads()

    found = list(map_on_all_cores(slow_if_even, range(12)))
    assert [number for number, _, _ in found] == list(range(12))
    assert len({thread for _, thread, _ in found}) == 2
    assert {threads for _, _, threads in found} == {1}
    assert torch.get_num_threads() == 2


def test_an_exception_reaches_the_caller_and_restores_the_threads(two_threads: None) -> None:
    def fail_at_three(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    found = []
    with pytest.raises(ValueError, match="three"):
        for number in map_on_all_cores(fail_at_three, range(100)):
            found.append(number)
    assert found == [0, 1, 2]
    assert torch.get_num_threads() == 2


def test_only_a_few_items_are_taken_ahead(two_threads: None) -> None:
    begun: list[int] = []
    results = map_on_all_cores(begun.append, range(1000))
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(begun) < 12
    assert torch.get_num_threads() == 2


def test_a_single_thread_runs_in_the_caller() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert list(map_on_all_cores(lambda _: get_ident(), range(3))) == [get_ident()] * 3
    finally:
        torch.set_num_threads(before)
