"""processes of a Ray cluster (extra `ray`); without a cluster, of this machine"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from asreader.errors import InputError
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
from asreader.system.progress import print_status

MAX_PENDING = 512
"""Items of one Ray Data job, or tasks handed to Ray ahead: enough for many machines, few enough to keep in memory."""


def map_ordered(function: Callable[[Item], Result], items: Iterable[Item], workers: int = 0) -> Iterator[Result]:
    """Ray Data jobs of AT_ONCE items each."""
    _start(workers)
    import ray.data

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    remaining = iter(items)
    while some := list(islice(remaining, MAX_PENDING)):
        rows = ray.data.from_items([{"item": item} for item in some], override_num_blocks=len(some))
        for row in rows.map(partial(_of_row, function), concurrency=workers or None).iter_rows():
            yield row["result"]


def _of_row(function: Callable[[Item], Result], row: dict[str, Item]) -> dict[str, Result]:
    return {"result": function(row["item"])}


def run_each(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    share: ResourceRequest,
    stopping: Callable[[], bool],
) -> Iterator[Outcome[Item, Result]]:
    """A Ray task for each item; Ray finds it a place, and another one if a process or a machine is lost."""
    ray = _start(workers * share.cpus)
    _refuse_impossible(ray.cluster_resources(), share)
    options = {"num_cpus": share.cpus, "num_gpus": share.gpus, "max_retries": RETRIES, "retry_exceptions": False}

    def work(item: Item) -> Outcome[Item, Result]:
        return attempt_item(function, item)

    task = ray.remote(**options)(work)
    waiting, running = deque(items), dict[Any, Item]()
    try:
        while waiting or running:
            while waiting and len(running) < (workers or MAX_PENDING):
                item = waiting.popleft()
                running[task.remote(item)] = item
            for done in ray.wait(list(running), timeout=POLL_SECONDS)[0]:
                yield _outcome(ray, done, running.pop(done))
            if stopping():
                raise KeyboardInterrupt
    finally:
        for unfinished in running:
            ray.cancel(unfinished)  # as Ctrl-C would in that process
        if running:
            ray.wait(list(running), num_returns=len(running), timeout=GRACE_SECONDS)


def _outcome(ray: Any, done: Any, item: Item) -> Outcome[Item, Any]:
    try:
        outcome: Outcome[Item, Any] = ray.get(done)
        return outcome
    except ray.exceptions.RayError as error:
        first = str(error).strip().splitlines()[0]
        return Outcome(item, failure=f"its process or machine was lost, {RETRIES + 1} times: {first}")


def _start(cpus: int) -> Any:
    """Ray, connected: RAY_ADDRESS names a cluster, as everywhere in Ray; else one is started on this machine."""
    # Ray writes of lost processes to stdout, which belongs to the result; the outcome says it too.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "(?s).*")
    try:
        import ray
    except ImportError:
        raise InputError("--executor ray: Ray is not installed; pip install 'asreader[ray]'") from None
    if not ray.is_initialized():
        address = os.environ.get("RAY_ADDRESS", "local")
        # It stays for all that this process asks of it, so it gets all processors, whatever is asked for first.
        processors = max(cpus, os.cpu_count() or 1)
        here: dict[str, Any] = {"num_cpus": processors, "include_dashboard": False} if address == "local" else {}
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **here)
        except (ConnectionError, ray.exceptions.RayError) as error:
            raise InputError(f"--executor ray, RAY_ADDRESS={address}: {str(error).splitlines()[0]}") from None
    return ray


def _refuse_impossible(cluster: dict[str, float], share: ResourceRequest) -> None:
    """Ray would wait for ever for what is not there; a cluster that grows by itself may still get it."""
    for name, wanted in (("CPU", share.cpus), ("GPU", share.gpus)):
        if wanted > (there := cluster.get(name, 0)):
            lack = f"a run wants {wanted:g} {name}s and Ray knows of {there:g}"
            if not os.environ.get("RAY_ADDRESS"):
                raise InputError(f"--executor ray: {lack}; ask for less, or name a cluster with RAY_ADDRESS")
            print_status(f"{lack}; waiting for the cluster to grow")
