"""Contract of an executor: where many independent pieces of work are done, here or on a cluster.

An executor is a file of this folder with two functions:

    def ordered(function, items, workers) -> Iterator of results
    def each(function, items, workers, share, stopping) -> Iterator of Outcomes

`ordered` applies `function` to every item and yields the results in the order of the items, whatever finishes first,
and takes only so many items ahead, so that memory does not grow with their number; an item that fails ends it.

`each` is for long work that may fail: it yields an Outcome for every item, in the order in which they are done. An
exception, a killed process or a lost machine costs that item alone; what was killed is tried again RETRIES times. Items
are done in other processes than this one, each on its `share` of processors and GPUs. As soon as `stopping()` is true
the processes are asked politely to stop, and KeyboardInterrupt is raised.

Function, items and results must be picklable: they travel between processes of one user, never through files.
`workers` 0 means: as many as there is room for.
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
"""How often an item is tried again whose process was killed; work that is resumable loses little by it."""
POLL_SECONDS = 0.2
"""Between two looks at `stopping`."""
GRACE_SECONDS = 60.0
"""How long work may take to stop politely; then it is killed."""


@dataclass(frozen=True)
class ResourceRequest:
    """What one item occupies while it is worked on; `gpus` may be a fraction: a quarter lets four share one."""

    cpus: int = 1
    gpus: float = 0.0


@dataclass(frozen=True)
class Outcome(Generic[Item, Result]):
    """What became of an item: a result, or in one line why there is none."""

    item: Item
    result: Result | None = None
    failure: str = ""


def never_stop() -> bool:
    """For work that nobody stops."""
    return False


def map_ordered(
    executor: str, function: Callable[[Item], Result], items: Iterable[Item], workers: int = 0
) -> Iterator[Result]:
    """The results of `function` in the order of the items, by the executor of that name."""
    run: Callable[..., Any] = plugins.load_plugin("executors", executor).map_ordered
    return iter(run(function, items, workers))


def run_each(
    executor: str,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int = 0,
    *,
    share: ResourceRequest = ResourceRequest(),
    stopping: Callable[[], bool] = never_stop,
) -> Iterator[Outcome[Item, Result]]:
    """What became of each item, as they are done, by the executor of that name."""
    run: Callable[..., Any] = plugins.load_plugin("executors", executor).run_each
    return iter(run(function, items, workers, share, stopping))


def attempt_item(function: Callable[[Item], Result], item: Item) -> Outcome[Item, Result]:
    """Where the work is done: an exception becomes a line, for not every exception can travel."""
    try:
        return Outcome(item, function(item))
    except Exception as error:
        return Outcome(item, failure=describe_error(error))


def describe_error(error: BaseException) -> str:
    """An exception in one line; one that nobody foresaw says where it was raised."""
    text = " ".join(str(error).split())
    if isinstance(error, InputError | ExecutionError):
        return text
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" ({Path(frame.filename).name}:{frame.lineno})" for frame in place)
    return f"{type(error).__name__}: {text}{where}"
