"""Contract of an executor: runs many independent items of work, on this machine or on a cluster.

An executor is a file of this folder with two functions:

    def map_ordered(function, items, workers) -> Iterator of results
    def run_each(function, items, workers, resources, should_stop) -> Iterator of Outcomes

`map_ordered` applies `function` to every item and yields the results in the order of the items. It takes a bounded
number of items ahead, so memory does not grow with the number of items. An item that fails ends it.

`run_each` is for long work that may fail: it yields an Outcome for every item, in order of completion. An exception, a
killed process or a lost machine costs that item alone; an item whose process was killed is retried RETRIES times. Items
run in other processes than this one, each with its `resources` (CPUs and GPUs). As soon as `should_stop()` is true the
processes are asked to shut down gracefully, and KeyboardInterrupt is raised.

Function, items and results must be picklable: they travel between processes of one user, never through files.
`workers` 0 means as many as the CPUs or GPUs allow.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from asreader import plugins
from asreader.errors import ExecutionError, InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

RETRIES = 2
"""How often an item is retried whose process was killed; resumable work loses little by it."""
POLL_SECONDS = 0.2
"""Time between two calls of `should_stop`."""
GRACE_SECONDS = 60.0
"""How long a graceful shutdown may take; then the processes are killed."""


@dataclass(frozen=True)
class ResourceRequest:
    """What one item occupies while it runs; `gpus` may be a fraction: with 0.25 four items share one GPU."""

    cpus: int = 1
    gpus: float = 0.0


@dataclass(frozen=True)
class Outcome(Generic[Item, Result]):
    """The result of an item, or one line that says why there is none."""

    item: Item
    result: Result | None = None
    failure: str = ""


def never_stop() -> bool:
    """The default of `should_stop`."""
    return False


def map_ordered(
    executor: str, function: Callable[[Item], Result], items: Iterable[Item], workers: int = 0
) -> Iterator[Result]:
    """Results of `function` in the order of the items, by the executor of that name."""
    run: Callable[..., Any] = plugins.load_plugin("executors", executor).map_ordered
    return iter(run(function, items, workers))


def run_each(
    executor: str,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int = 0,
    *,
    resources: ResourceRequest = ResourceRequest(),
    should_stop: Callable[[], bool] = never_stop,
) -> Iterator[Outcome[Item, Result]]:
    """Outcomes of the items, in order of completion, by the executor of that name."""
    run: Callable[..., Any] = plugins.load_plugin("executors", executor).run_each
    return iter(run(function, items, workers, resources, should_stop))


def attempt_item(function: Callable[[Item], Result], item: Item) -> Outcome[Item, Result]:
    """Run one item in the worker; an exception becomes a line of text, because not every exception can be pickled."""
    try:
        return Outcome(item, function(item))
    except Exception as error:
        return Outcome(item, failure=describe_error(error))


def describe_error(error: BaseException) -> str:
    """An exception in one line; an unexpected one includes the file and line that raised it."""
    text = " ".join(str(error).split())
    if isinstance(error, InputError | ExecutionError):
        return text
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    location = "".join(f" ({Path(frame.filename).name}:{frame.lineno})" for frame in frames)
    return f"{type(error).__name__}: {text}{location}"
