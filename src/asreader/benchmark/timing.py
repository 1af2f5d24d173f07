"""two ways to do one thing -> their times in one run, and the machine they were taken on."""

from __future__ import annotations

import os
import platform
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch

from asreader.runs.folder import describe_commit

Work = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """Seconds of each way, round by round."""

    ours: tuple[float, ...]
    yardstick: tuple[float, ...]

    @property
    def seconds(self) -> tuple[float, float]:
        """Medians: ours, the yardstick's."""
        return statistics.median(self.ours), statistics.median(self.yardstick)

    @property
    def ratio(self) -> float:
        """How many times as fast we are."""
        ours, yardstick = self.seconds
        return yardstick / ours


@dataclass(frozen=True)
class Contender:
    """One way to do the work, and the number of threads it is faster with."""

    work: Work
    threads: int

    def seconds(self, device: torch.device) -> float:
        """How long it takes now, with its own number of threads."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            _wait(device)
            start = time.perf_counter()
            self.work()
            _wait(device)
            return time.perf_counter() - start
        finally:
            torch.set_num_threads(before)


def choose_threads(work: Work, device: torch.device) -> Contender:
    """The work with one thread or with all, whichever is faster here; it is warm afterwards."""
    alone, everyone = Contender(work, 1), Contender(work, torch.get_num_threads())
    if everyone.threads == 1 or device.type != "cpu":
        work()
        return everyone
    tried = [(way.seconds(device), way) for way in (everyone, alone, everyone)]
    return min(tried, key=lambda one: one[0])[1]


def time_alternately(
    ours: Contender, yardstick: Contender, device: torch.device, seconds: float, most: int = 200
) -> Times:
    """Both ways in turn until the time is over: what slows the machine for a while slows both."""
    taken: list[tuple[float, float]] = []
    start = time.perf_counter()
    while not taken or (time.perf_counter() - start < seconds and len(taken) < most):
        taken.append((ours.seconds(device), yardstick.seconds(device)))
    return Times(tuple(pair[0] for pair in taken), tuple(pair[1] for pair in taken))


def describe_provenance(benchmark: str, device: torch.device) -> dict[str, object]:
    """The head of a row: which benchmark, where, of what, when."""
    return {
        "benchmark": benchmark,
        "device": describe_device(device),
        "commit": describe_commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "torch": torch.__version__,
    }


def describe_device(device: torch.device) -> str:
    """The GPU's name, or the processor's with the number of its cores."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    about = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", about.read_text()) if about.exists() else None
    name = model[1].strip() if model else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} CPU cores" + (f", {device.type}" if device.type != "cpu" else "")


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
