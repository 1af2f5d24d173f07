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
"""Items of one Ray Data job, or tasks submitted ahead: enough for many machines, few enough to keep in memory."""


def map_ordered(function: Callable[[Item], Result], items: Iterable[Item], workers: int = 0) -> Iterator[Result]:
    """Ray Data jobs of MAX_PENDING items each."""
    _start_ray(workers)
    import ray.data

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    remaining = iter(items)
    while chunk := list(islice(remaining, MAX_PENDING)):
        rows = ray.data.from_items([{"item": item} for item in chunk], override_num_blocks=len(chunk))
        for row in rows.map(partial(_apply_to_row, function), concurrency=workers or None).iter_rows():
            yield row["result"]


def _apply_to_row(function: Callable[[Item], Result], row: dict[str, Item]) -> dict[str, Result]:
    return {"result": function(row["item"])}


def run_each(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    resources: ResourceRequest,
    should_stop: Callable[[], bool],
) -> Iterator[Outcome[Item, Result]]:
    """One Ray task per item; Ray schedules it, and reschedules it if a process or a machine is lost."""
    ray = _start_ray(workers * resources.cpus)
    _check_resources(ray.cluster_resources(), resources)
    options = {
        "num_cpus": resources.cpus,
        "num_gpus": resources.gpus,
        "max_retries": RETRIES,
        "retry_exceptions": False,
    }

    def run_item(item: Item) -> Outcome[Item, Result]:
        return attempt_item(function, item)

    task = ray.remote(**options)(run_item)
    pending, running = deque(items), dict[Any, Item]()
    try:
        while pending or running:
            while pending and len(running) < (workers or MAX_PENDING):
                item = pending.popleft()
                running[task.remote(item)] = item
            for finished in ray.wait(list(running), timeout=POLL_SECONDS)[0]:
                yield _receive_outcome(ray, finished, running.pop(finished))
            if should_stop():
                raise KeyboardInterrupt
    finally:
        for unfinished in running:
            ray.cancel(unfinished)  # raises KeyboardInterrupt in that process
        if running:
            ray.wait(list(running), num_returns=len(running), timeout=GRACE_SECONDS)


def _receive_outcome(ray: Any, finished: Any, item: Item) -> Outcome[Item, Any]:
    try:
        outcome: Outcome[Item, Any] = ray.get(finished)
        return outcome
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[0]
        return Outcome(item, failure=f"its process or machine was lost, {RETRIES + 1} times: {reason}")


def _start_ray(cpus: int) -> Any:
    """Connect to the cluster of RAY_ADDRESS, or start Ray on this machine; returns the module."""
    # Ray reports lost processes on stdout, which is kept for results; the outcome reports them too.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "(?s).*")
    try:
        import ray
    except ImportError:
        raise InputError("--executor ray: Ray is not installed; pip install 'asreader[ray]'") from None
    if not ray.is_initialized():
        address = os.environ.get("RAY_ADDRESS", "local")
        # Ray runs until this process ends, so it gets all CPUs, however few the first call needs.
        all_cpus = max(cpus, os.cpu_count() or 1)
        options: dict[str, Any] = {"num_cpus": all_cpus, "include_dashboard": False} if address == "local" else {}
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, ray.exceptions.RayError) as error:
            raise InputError(f"--executor ray, RAY_ADDRESS={address}: {str(error).splitlines()[0]}") from None
    return ray


def _check_resources(cluster: dict[str, float], resources: ResourceRequest) -> None:
    """Refuse a request that Ray would wait for indefinitely; a cluster with autoscaling may still grant it."""
    for name, needed in (("CPU", resources.cpus), ("GPU", resources.gpus)):
        if needed > (available := cluster.get(name, 0)):
            shortage = f"a run needs {needed:g} {name}s and Ray has {available:g}"
            if not os.environ.get("RAY_ADDRESS"):
                raise InputError(f"--executor ray: {shortage}; request fewer, or name a cluster with RAY_ADDRESS")
            print_status(f"{shortage}; waiting for the cluster to grow")
