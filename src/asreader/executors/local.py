"""processes of this machine, one a processor or one a GPU"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

from asreader.errors import ExecutionError, InputError
from asreader.executors import (
    GRACE_SECONDS,
    POLL_SECONDS,
    RETRIES,
    Item,
    Outcome,
    ResourceRequest,
    Result,
    attempt_item,
)

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


def map_ordered(function: Callable[[Item], Result], items: Iterable[Item], workers: int = 0) -> Iterator[Result]:
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
        raise ExecutionError("a worker process was killed (is the memory full?); try fewer --workers") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def run_each(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    share: ResourceRequest,
    stopping: Callable[[], bool],
) -> Iterator[Outcome[Item, Result]]:
    """A process for each worker, also where there is one alone: killed, it must not take this process with it."""
    waiting = deque((item, 0) for item in items)
    idle = [_Worker(function, place) for place in _places(workers, share)[: len(waiting)]]
    busy: dict[Connection, tuple[_Worker, Item, int]] = {}
    try:
        while waiting or busy:
            while waiting and idle:
                worker, (item, attempts) = idle.pop(0), waiting.popleft()
                busy[worker.begin(item)] = worker, item, attempts
            for pipe in wait(list(busy), POLL_SECONDS):
                worker, item, attempts = busy.pop(pipe)  # type: ignore[call-overload]
                outcome = worker.outcome()
                idle.append(worker)
                if outcome is None and attempts < RETRIES:
                    waiting.append((item, attempts + 1))
                else:
                    yield outcome or Outcome(item, failure=worker.death(RETRIES + 1))
            if stopping():
                raise KeyboardInterrupt
    finally:
        _dismiss([*idle, *(worker for worker, _, _ in busy.values())])


class _Worker:
    """A process that does one item after the other; it is started with the first and replaced if it is killed."""

    def __init__(self, function: Callable[[Any], Any], place: Mapping[str, str]) -> None:
        self._function, self._place = function, place
        self.process: Any = None
        self.pipe: Connection | None = None

    def begin(self, item: object) -> Connection:
        """Give it an item; its outcome will come through the pipe."""
        if self.pipe is None or not self.process.is_alive():
            context = get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_serve, args=(theirs, dict(self._place)), daemon=True)
            self.process.start()
            theirs.close()
            self._send(self._function)
        self._send(item)
        return self.pipe

    def _send(self, thing: object) -> None:
        assert self.pipe
        try:
            self.pipe.send(thing)
        except BrokenPipeError:  # killed just now: whoever waits for the outcome will hear of it
            return

    def outcome(self) -> Outcome[Any, Any] | None:
        """What came through the pipe; None if the process is gone."""
        assert self.pipe
        try:
            outcome: Outcome[Any, Any] = self.pipe.recv()
            return outcome
        except (EOFError, OSError):
            self.process.join()
            self.pipe.close()
            self.pipe = None
            return None

    def death(self, times: int) -> str:
        """Why there is no outcome, in one line."""
        code = self.process.exitcode
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return f"its process was {how}, {times} times (is the memory full?)"


def _serve(pipe: Connection, place: Mapping[str, str]) -> None:
    """In the worker: outcomes for items until nobody asks any more."""
    os.environ.update(place)
    _leave_interrupts_to_the_parent()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        function = pipe.recv()
        while True:
            pipe.send(attempt_item(function, pipe.recv()))
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _end_with_parent() -> None:
    """Two workers must never do the same: who loses its parent stops, before a new one sends others."""
    parent = parent_process()
    assert parent
    wait([parent.sentinel])
    os._exit(1)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _dismiss(workers: Iterable[_Worker]) -> None:
    """End the processes: an idle one at once, a busy one politely."""
    started = [worker for worker in workers if worker.pipe is not None]
    for worker in started:
        worker.process.terminate()
    for worker in started:
        worker.process.join(GRACE_SECONDS)
        worker.process.kill()
        worker.pipe.close()  # type: ignore[union-attr]


def _places(workers: int, share: ResourceRequest) -> list[dict[str, str]]:
    """What is set in the environment of each worker: which GPU it sees, or that it sees none."""
    if not share.gpus:
        return [{VISIBLE_DEVICES: ""}] * (workers or max(1, (os.cpu_count() or 1) // share.cpus))
    import torch

    named = os.environ.get(VISIBLE_DEVICES)
    gpus = [*map(str, range(torch.cuda.device_count()))] if named is None else [*filter(None, named.split(","))]
    if not gpus:
        raise InputError("there is no GPU here; --gpus 0 works on the processors")
    seats = [{VISIBLE_DEVICES: gpu} for _ in range(max(1, int(1 / share.gpus))) for gpu in gpus]
    return seats[: workers or None]
