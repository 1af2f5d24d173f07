"""real --help -> docs/cli.md: run by `make docs`, compared by tests/test_docs.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMANDS = (
    "demo answer formats readers taggers executors stats make make-books make-news convert prepare train sweep "
    "evaluate calibrate baseline ensemble table compare analyse gallery report benchmark benchmark-train "
    "benchmark-answer"
).split()
TARGET = Path(__file__).parent / "cli.md"


def document() -> str:
    parts = ["# Commands\n\nWritten by `make docs` from the real `--help`.\n"]
    for command in ("", *COMMANDS):
        shown = subprocess.run(
            [sys.executable, "-m", "asreader", *filter(None, command.split("-")), "--help"],
            capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "100", "TERM": "dumb"},
        ).stdout  # fmt: skip
        shown = shown.replace("python -m asreader", "asreader")
        lines = "\n".join(line.rstrip() for line in shown.strip().splitlines())
        parts.append(f"## asreader {command.replace('-', ' ')}".rstrip() + f"\n\n```\n{lines}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
