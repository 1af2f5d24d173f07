"""work on batches -> the same work on all cores: one batch a core, each on a single thread.

The steps of a small recurrence cannot be shared: threads that meet after every operation spend their time waiting, six
times longer than one thread needs alone where a single question is answered. Whole batches need not meet at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")
MAX_WORKERS = 8
"""Threads that share one interpreter; more would wait for it, not for a core."""


@dataclass
class _Setting:
    """torch's number of threads belongs to the whole process; the last who leaves puts it back."""

    inside: int = 0
    outside: int = 1
    lock: Lock = field(default_factory=Lock)


_SETTING = _Setting()


@contextmanager
def limit_threads(threads: int) -> Iterator[int]:
    """Every operation on so few threads, or fewer if others ask for that. Gives the number that they had outside."""
    with _SETTING.lock:
        if not _SETTING.inside:
            _SETTING.outside = torch.get_num_threads()
        if torch.get_num_threads() > threads:
            torch.set_num_threads(threads)
        _SETTING.inside += 1
    try:
        yield _SETTING.outside
    finally:
        with _SETTING.lock:
            _SETTING.inside -= 1
            if not _SETTING.inside and _SETTING.outside > 1:
                torch.set_num_threads(_SETTING.outside)


def map_on_all_cores(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The function's results in the items' order; as many items are worked on at once as operations had threads."""
    with limit_threads(1) as cores:
        workers = min(cores, MAX_WORKERS)
        if workers == 1:
            yield from map(function, items)
            return
        waiting: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(workers) as pool:
            try:
                for item in items:
                    waiting.append(pool.submit(function, item))
                    if len(waiting) > 2 * workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for rest in waiting:
                    rest.cancel()
