"""processes of this machine, one a processor"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from asreader.errors import Stopped
from asreader.executors import Item, Result


def ordered(function: Callable[[Item], Result], items: Iterable[Item], workers: int = 0) -> Iterator[Result]:
    """One worker works in this process; more share a pool, with a few items waiting for each."""
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        yield from map(function, items)
        return
    # A fork would copy the threads' locks of this process in whatever state they are.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_leave_interrupts_to_the_parent)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 3 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise Stopped("a worker process was killed (is the memory full?); try fewer --workers") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
