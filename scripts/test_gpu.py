"""Run every test that needs a GPU and print a summary: make test-gpu

Needs torch, triton, numpy, safetensors, jaxtyping, hypothesis, typer, rich and pytest. The tests of operations,
readers, batches and engines run; shapes are checked only if beartype is installed. The last line is a JSON row: date,
commit, device, counts.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "tests/ops",
    "tests/readers",
    "tests/batches",
    "tests/contracts/test_engines.py",
    "tests/contracts/test_readers.py",
)
COUNT = re.compile(r"(\d+) (passed|failed|error|errors|skipped)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="append the row to this file")
    parser.add_argument("--seconds", type=int, default=540, help="limit of the whole run")
    options = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        sys.exit("no GPU here: PyTorch sees no CUDA device")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *TESTS]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=options.seconds, check=False)
        output, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as stopped:
        output, code = (stopped.stdout or b"").decode(), 124
    lines = output.splitlines()
    print("\n".join(line for line in lines if line.startswith(("FAILED", "ERROR", "E  "))))
    counts = {name: int(number) for number, name in COUNT.findall(lines[-1] if lines else "")}
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    row = {
        "tests": "gpu",
        "date": date.today().isoformat(),
        "commit": commit.stdout.strip() or "unknown",
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        **counts,
        "exit": code,
    }
    print(json.dumps(row))
    if options.out:
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
