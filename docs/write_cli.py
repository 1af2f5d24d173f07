"""--help of every command -> docs/cli.md: run by `make docs`, compared by tests/test_docs.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMANDS = (
    "demo answer formats readers taggers executors engines ops stats make make-books make-news "
    "convert prepare train sweep evaluate calibrate baseline ensemble table compare analyse gallery "
    "report benchmark benchmark-train benchmark-answer"
).split()
TARGET = Path(__file__).parent / "cli.md"


def format_reference() -> str:
    """The text of docs/cli.md."""
    parts = ["# Commands\n\nWritten by `make docs` from the real `--help`.\n"]
    for command in ("", *COMMANDS):
        arguments = [sys.executable, "-m", "asreader", *filter(None, command.split("-")), "--help"]
        environment = os.environ | {"COLUMNS": "100", "TERM": "dumb"}
        process = subprocess.run(arguments, capture_output=True, text=True, check=True, env=environment)
        help_text = process.stdout.replace("python -m asreader", "asreader")
        lines = "\n".join(line.rstrip() for line in help_text.strip().splitlines())
        parts.append(f"## asreader {command.replace('-', ' ')}".rstrip() + f"\n\n```\n{lines}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(format_reference(), encoding="utf-8")
