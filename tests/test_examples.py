"""Examples run, and a reader of one file is trained by an engine that does not know it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_a_reader_in_one_file_is_trained_several_at_once(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "add_a_reader.py"), str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    folders = [Path(line) for line in process.stdout.splitlines()]
    assert [folder.name for folder in folders] == ["seed-1", "seed-2", "seed-3"]
    assert "engine stacked, 3 readers" in process.stderr
    for folder in folders:
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        losses = [row["loss"] for row in rows if row["kind"] == "valid"]
        assert losses[-1] < losses[0]


def test_the_class_of_the_reader_has_at_most_forty_lines() -> None:
    text = (EXAMPLES / "add_a_reader.py").read_text(encoding="utf-8")
    body = text[text.index("class BilinearSum") : text.index("def main")].strip()
    assert len(body.splitlines()) <= 40
