"""Engine `ddp`: one reader on many devices, a process for each; every rank takes a shard of every batch.

Every rank has all weights and takes the same steps with the same sums, so the weights stay equal without being sent.
Processes are started by torchrun.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from asreader.training.engines import Engine, JobSpec
from asreader.training.engines.plain import PlainEngine
from asreader.training.ranks import join_ranks


def supports(spec: JobSpec) -> str | None:
    """One reader."""
    return None if spec.readers == 1 else "it trains one reader; train several one after the other"


@contextmanager
def open_engine(spec: JobSpec) -> Iterator[Engine]:
    """As one of the processes that torchrun has started."""
    with join_ranks(spec.settings.train.device) as ranks:
        yield PlainEngine("ddp", spec, ranks.pick_device(spec.settings.train.device), ranks)
