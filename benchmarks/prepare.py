"""Time and memory of `asreader prepare` at official training size: python benchmarks/prepare.py CBT_FILE WORK_FOLDER

Repeats the questions of CBT_FILE up to 108,719, the size of the NE training file, encodes them in a separate process
and prints one row: seconds, peak memory, sizes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from itertools import cycle, islice
from pathlib import Path

from asreader.data.dataset import read_examples
from asreader.data.formats import cbt

QUESTIONS = 108_719


def main(data: Path, work: Path) -> None:
    questions = [cbt.format_example(example) for _, example in read_examples(data)]
    work.mkdir(parents=True, exist_ok=True)
    repeated, store = work / "repeated_train.txt", work / "store"
    with repeated.open("w", encoding="utf-8") as file:
        file.writelines(islice(cycle(questions), QUESTIONS))
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "asreader", "prepare", str(repeated), "--out", str(store)], check=True)
    row = {
        "benchmark": "prepare",
        "questions": QUESTIONS,
        "megabytes": round(repeated.stat().st_size / 1e6),
        "seconds": round(time.perf_counter() - start, 1),
        "peak_memory_megabytes": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
        "store_megabytes": round(sum(path.stat().st_size for path in store.rglob("*") if path.is_file()) / 1e6),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="CBT_FILE")
    parser.add_argument("folder", type=Path, metavar="WORK_FOLDER")
    options = parser.parse_args()
    main(options.file, options.folder)
