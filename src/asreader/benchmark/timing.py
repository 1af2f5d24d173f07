"""two implementations of one task -> their times, measured in turns in one process, and the machine."""

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
    """Seconds of each implementation, round by round."""

    ours: tuple[float, ...]
    plain: tuple[float, ...]

    @property
    def our_median(self) -> float:
        """Median seconds of this package."""
        return statistics.median(self.ours)

    @property
    def plain_median(self) -> float:
        """Median seconds of the plain implementation."""
        return statistics.median(self.plain)

    @property
    def ratio(self) -> float:
        """The speed-up: plain median over our median."""
        return self.plain_median / self.our_median

    @property
    def worst_ratio(self) -> float:
        """The smallest speed-up of a single round."""
        return min(plain / ours for ours, plain in zip(self.ours, self.plain, strict=True))


@dataclass(frozen=True)
class Contender:
    """An implementation to be timed, with its number of threads."""

    work: Work
    threads: int

    def measure_seconds(self, device: torch.device) -> float:
        """Run the work once and time it."""
        threads_before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            _synchronize(device)
            start = time.perf_counter()
            self.work()
            _synchronize(device)
            return time.perf_counter() - start
        finally:
            torch.set_num_threads(threads_before)


def choose_threads(work: Work, device: torch.device) -> Contender:
    """The work with one thread or with all, whichever is faster here; the work is warm afterwards."""
    single_thread = Contender(work, 1)
    all_threads = Contender(work, torch.get_num_threads())
    if all_threads.threads == 1 or device.type != "cpu":
        work()
        return all_threads
    timed = [(one.measure_seconds(device), one) for one in (all_threads, single_thread, all_threads)]
    return min(timed, key=lambda pair: pair[0])[1]


def time_alternately(
    ours: Contender, plain: Contender, device: torch.device, seconds: float, max_rounds: int = 200
) -> Times:
    """Time both in turns until `seconds` have passed, so that a slow phase of the machine slows both."""
    our_times: list[float] = []
    plain_times: list[float] = []
    start = time.perf_counter()
    while not our_times or (time.perf_counter() - start < seconds and len(our_times) < max_rounds):
        our_times.append(ours.measure_seconds(device))
        plain_times.append(plain.measure_seconds(device))
    return Times(tuple(our_times), tuple(plain_times))


def describe_provenance(benchmark: str, device: torch.device) -> dict[str, object]:
    """The first columns of a row: benchmark, device, commit, date, version of torch."""
    return {
        "benchmark": benchmark,
        "device": describe_device(device),
        "commit": describe_commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "torch": torch.__version__,
    }


def describe_device(device: torch.device) -> str:
    """The name of the GPU, or of the processor with its number of cores."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cpu_info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpu_info.read_text()) if cpu_info.exists() else None
    name = model[1].strip() if model else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} CPU cores" + (f", {device.type}" if device.type != "cpu" else "")


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
