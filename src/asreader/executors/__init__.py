"""Contract of an executor: where many independent pieces of work are done, here or on a cluster.

An executor is a file of this folder with one function:

    def ordered(function, items, workers) -> Iterator of results

It applies `function` to every item and yields the results in the order of the items, whatever finishes first, and takes
only so many items ahead, so that memory does not grow with their number. Function, items and results must be picklable:
they travel between processes of one user, never through files. `workers` 0 means: as many as there are processors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from asreader import plugins

Item = TypeVar("Item")
Result = TypeVar("Result")


def ordered(
    executor: str, function: Callable[[Item], Result], items: Iterable[Item], workers: int = 0
) -> Iterator[Result]:
    """The results of `function` in the order of the items, by the executor of that name."""
    run: Callable[..., Any] = plugins.load("executors", executor).ordered
    return iter(run(function, items, workers))
