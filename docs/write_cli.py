"""real --help -> docs/cli.md; run by `make docs`, checked by tests/test_docs.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMANDS = (
    "answer demo report gallery stats convert prepare make make-books make-news formats taggers train sweep evaluate "
    "calibrate ensemble readers executors table compare analyse baseline benchmark benchmark-train benchmark-answer"
).split()
TARGET = Path(__file__).parent / "cli.md"


def document() -> str:
    """The text of docs/cli.md."""
    parts = ["# Commands\n\nWritten by `make docs` from the real `--help`.\n"]
    environment = os.environ | {"COLUMNS": "100", "TERM": "dumb"}
    for command in ("", *COMMANDS):
        arguments = [sys.executable, "-m", "asreader", *filter(None, command.split("-")), "--help"]
        output = subprocess.run(arguments, capture_output=True, text=True, check=True, env=environment).stdout
        output = output.replace("python -m asreader", "asreader")
        lines = "\n".join(line.rstrip() for line in output.strip().splitlines())
        parts.append(f"## asreader {command.replace('-', ' ')}".rstrip() + f"\n\n```\n{lines}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
