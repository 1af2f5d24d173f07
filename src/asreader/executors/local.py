"""processes of this machine, one per CPU core or per GPU"""

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
    """One worker runs in this process; several share a process pool with a few pending items per worker."""
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        yield from map(function, items)
        return
    # Spawn, because a fork would copy the locks of this process's threads in an arbitrary state.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_ignore_interrupts)
    pending: deque[Future[Result]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > 3 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool:
        raise ExecutionError("a worker process was killed (is the memory full?); try fewer --workers") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def run_each(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    resources: ResourceRequest,
    should_stop: Callable[[], bool],
) -> Iterator[Outcome[Item, Result]]:
    """One process per worker, even for a single worker: if it is killed, this process survives."""
    pending = deque((item, 0) for item in items)
    environments = _worker_environments(workers, resources)[: len(pending)]
    idle = [_Worker(function, environment) for environment in environments]
    busy: dict[Connection, tuple[_Worker, Item, int]] = {}
    try:
        while pending or busy:
            while pending and idle:
                worker, (item, retries) = idle.pop(0), pending.popleft()
                busy[worker.start_item(item)] = worker, item, retries
            for pipe in wait(list(busy), POLL_SECONDS):
                worker, item, retries = busy.pop(pipe)  # type: ignore[call-overload]
                outcome = worker.receive_outcome()
                idle.append(worker)
                if outcome is None and retries < RETRIES:
                    pending.append((item, retries + 1))
                else:
                    yield outcome or Outcome(item, failure=worker.describe_death(RETRIES + 1))
            if should_stop():
                raise KeyboardInterrupt
    finally:
        _terminate_workers([*idle, *(worker for worker, _, _ in busy.values())])


class _Worker:
    """A process that runs one item after the other; started with the first item, replaced if it is killed."""

    def __init__(self, function: Callable[[Any], Any], environment: Mapping[str, str]) -> None:
        self._function = function
        self._environment = environment
        self.process: Any = None
        self.pipe: Connection | None = None

    def start_item(self, item: object) -> Connection:
        """Send an item to the process; its outcome arrives through the returned pipe."""
        if self.pipe is None or not self.process.is_alive():
            context = get_context("spawn")
            self.pipe, worker_end = context.Pipe()
            self.process = context.Process(target=_serve_items, args=(worker_end, dict(self._environment)), daemon=True)
            self.process.start()
            worker_end.close()
            self._send(self._function)
        self._send(item)
        return self.pipe

    def _send(self, message: object) -> None:
        assert self.pipe
        try:
            self.pipe.send(message)
        except BrokenPipeError:  # the process was just killed: receive_outcome will report it
            return

    def receive_outcome(self) -> Outcome[Any, Any] | None:
        """The outcome of the current item; None if the process died."""
        assert self.pipe
        try:
            outcome: Outcome[Any, Any] = self.pipe.recv()
            return outcome
        except (EOFError, OSError):
            self.process.join()
            self.pipe.close()
            self.pipe = None
            return None

    def describe_death(self, times: int) -> str:
        """Why there is no outcome, in one line."""
        code = self.process.exitcode
        cause = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return f"its process was {cause}, {times} times (is the memory full?)"


def _serve_items(pipe: Connection, environment: Mapping[str, str]) -> None:
    """Main function of a worker process: answers items with outcomes until the pipe is closed."""
    os.environ.update(environment)
    _ignore_interrupts()
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        function = pipe.recv()
        while True:
            pipe.send(attempt_item(function, pipe.recv()))
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _exit_with_parent() -> None:
    """Exit when the parent is gone: an orphan must not work on an item that a restarted parent hands out again."""
    parent = parent_process()
    assert parent
    wait([parent.sentinel])
    os._exit(1)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches every process of the terminal; only the parent handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _terminate_workers(workers: Iterable[_Worker]) -> None:
    """Send SIGTERM to all processes, wait up to GRACE_SECONDS, then kill."""
    started = [worker for worker in workers if worker.pipe is not None]
    for worker in started:
        worker.process.terminate()
    for worker in started:
        worker.process.join(GRACE_SECONDS)
        worker.process.kill()
        worker.pipe.close()  # type: ignore[union-attr]


def _worker_environments(workers: int, resources: ResourceRequest) -> list[dict[str, str]]:
    """Environment variables of each worker: the GPU that it sees, or none."""
    if not resources.gpus:
        return [{VISIBLE_DEVICES: ""}] * (workers or max(1, (os.cpu_count() or 1) // resources.cpus))
    import torch

    visible = os.environ.get(VISIBLE_DEVICES)
    gpus = [*map(str, range(torch.cuda.device_count()))] if visible is None else [*filter(None, visible.split(","))]
    if not gpus:
        raise InputError("there is no GPU on this machine; use --gpus 0 to run on the CPU")
    workers_per_gpu = max(1, int(1 / resources.gpus))
    environments = [{VISIBLE_DEVICES: gpu} for _ in range(workers_per_gpu) for gpu in gpus]
    return environments[: workers or None]
