"""Timeline of one step of readers trained together: which kernels run when on the device, and which overlap.

PYTHONPATH=src python benchmarks/timeline.py --readers 16 --width 480
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from together import SHAPES, Bench, Measure, made

from asreader.inference.reader import pick_device


@dataclass(frozen=True)
class Work:
    """One launch on the device, in microseconds."""

    name: str
    begin: float
    end: float
    stream: int


def launches(bench: Bench) -> list[Work]:
    """All of some steps, in the order in which they began."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        bench.go()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        found.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    device = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    works = [Work(e["name"], e["ts"], e["ts"] + e["dur"], e["args"].get("stream", -1)) for e in device]
    return sorted(works, key=lambda work: work.begin)


def steps(works: Sequence[Work]) -> Iterator[list[Work]]:
    """Those of each step: from the end of one update of the words' rows to the end of the next."""
    ends = [work.end for work in works if work.name.startswith("_update")]
    for begin, end in pairwise(ends):
        yield [work for work in works if begin <= work.begin < end]


def shown(step: Sequence[Work], least: float) -> Iterator[str]:
    """A line for each launch; behind it how long nothing at all had run before it."""
    begin = min(work.begin for work in step)
    busy = begin
    for work in step:
        idle = max(0.0, work.begin - busy)
        busy = max(busy, work.end)
        if work.end - work.begin >= least or idle > 1:
            gap = f"  after {idle:.1f} of nothing" if idle > 0.5 else ""
            at, long = work.begin - begin, work.end - work.begin
            yield f"{at:8.1f} {work.end - begin:8.1f} {long:7.1f} us  stream {work.stream:3d}  {work.name[:100]}{gap}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=16)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="ne")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--width", type=int, default=480, help="the step whose documents are nearest to it")
    parser.add_argument("--least", type=float, default=0.0, help="microseconds of the shortest launch that is shown")
    options = parser.parse_args()
    shape = SHAPES[options.shape]
    data = made(shape, pick_device("auto"))
    bench = Bench(shape, data, options.readers, Measure(options.steps, torch.bfloat16, graphs=True))
    for _ in range(3):  # an ordinary step of each width, its graphs, and once more
        bench.go()
    found = [*steps(launches(bench))]
    widths = [widths.document for widths in bench.widths][1 : len(found) + 1]
    nearest = min(range(len(found)), key=lambda number: abs(widths[number] - options.width))
    print(f"{options.readers} readers, documents of up to {widths[nearest]} words, {len(found[nearest])} launches")
    print("\n".join(shown(found[nearest], options.least)))


if __name__ == "__main__":
    main()
