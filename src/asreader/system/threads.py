"""work on batches -> the same work on all cores: one batch per core, each on a single thread.

The steps of a small recurrence do not parallelise: threads that synchronise after every operation mostly wait, which
takes six times as long as one thread alone for a single question. Whole batches need no synchronisation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")
MAX_WORKERS = 8
"""Worker threads of one interpreter; more would wait for the interpreter lock, not for a core."""


@dataclass
class _ThreadLimit:
    """torch's number of threads is global to the process; the last active limit restores it."""

    active: int = 0
    original: int = 1
    lock: Lock = field(default_factory=Lock)


_LIMIT = _ThreadLimit()


@contextmanager
def limit_threads(threads: int) -> Iterator[int]:
    """Run torch operations on at most `threads` threads; the smallest nested limit counts. Yields the original one."""
    with _LIMIT.lock:
        if not _LIMIT.active:
            _LIMIT.original = torch.get_num_threads()
        if torch.get_num_threads() > threads:
            torch.set_num_threads(threads)
        _LIMIT.active += 1
    try:
        yield _LIMIT.original
    finally:
        with _LIMIT.lock:
            _LIMIT.active -= 1
            if not _LIMIT.active and _LIMIT.original > 1:
                torch.set_num_threads(_LIMIT.original)


def map_on_all_cores(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Results in the order of the items; as many items run at once as torch operations had threads."""
    with limit_threads(1) as cores:
        workers = min(cores, MAX_WORKERS)
        if workers == 1:
            yield from map(function, items)
            return
        pending: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(workers) as pool:
            try:
                for item in items:
                    pending.append(pool.submit(copy_context().run, function, item))
                    if len(pending) > 2 * workers:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()
