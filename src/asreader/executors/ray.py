"""processes of a Ray cluster, through Ray Data (extra `ray`); without a cluster, of this machine"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from asreader.errors import InputError
from asreader.executors import Item, Result

AT_ONCE = 512
"""Items of one Ray Data job: enough to keep many machines busy, few enough to keep in memory."""


def ordered(function: Callable[[Item], Result], items: Iterable[Item], workers: int = 0) -> Iterator[Result]:
    """Ray Data jobs of AT_ONCE items each; RAY_ADDRESS names the cluster, as everywhere in Ray."""
    try:
        import ray
        import ray.data
    except ImportError:
        raise InputError("--executor ray: Ray is not installed; pip install 'asreader[ray]'") from None
    if not ray.is_initialized():
        ray.init(num_cpus=workers or None, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    remaining = iter(items)
    while some := list(islice(remaining, AT_ONCE)):
        rows = ray.data.from_items([{"item": item} for item in some], override_num_blocks=len(some))
        for row in rows.map(partial(_of_row, function)).iter_rows():
            yield row["result"]


def _of_row(function: Callable[[Item], Result], row: dict[str, Item]) -> dict[str, Result]:
    return {"result": function(row["item"])}
