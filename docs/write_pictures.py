"""example story -> the pictures of the README, drawn by `asreader` commands: run by `make pictures`.

The two drawings take seconds. The picture of a page needs the demo's run (two minutes) and Chromium; it is drawn only
with `--page`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl

TARGET = Path(__file__).parent / "pictures"
STORY = """\
The ferry was late. On the quay Marta counted her baskets again, and old Henrik, who never hurried, filled his pipe. "It
will come when it comes," said Henrik. "You said so yesterday," Marta answered crossly, "and I slept in the boathouse."
A gull settled on the nearest basket and looked at the two of them.
"""
QUESTION, CANDIDATES = '"And did you sleep well?" asked XXXXX, puffing at his pipe.', "Marta,Henrik,gull,ferry"
QUESTIONS, SEED = 1000, 8
WIDTH, HEIGHT = 1180, 1010
COLOURS = 64


def run_asreader(folder: Path, *arguments: str | Path) -> None:
    command = [sys.executable, "-m", "asreader", *map(str, arguments)]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def draw_attention(folder: Path) -> Path:
    """Attention of the bundled reader."""
    (folder / "story.txt").write_text(STORY, encoding="utf-8")
    options = ("--document", "story.txt", "--question", QUESTION, "--candidates", CANDIDATES)
    run_asreader(folder, "answer", *options, "--picture", "attention.svg")
    return folder / "attention.svg"


def draw_figure(folder: Path) -> Path:
    """The bundled reader and the maximum-frequency baseline, drawn by `analyse`."""
    (folder / "stories.jsonl").write_text(
        "".join(map(jsonl.format_example, generate_stories(QUESTIONS, SEED))), encoding="utf-8"
    )
    run_asreader(folder, "evaluate", "bundled", "stories.jsonl", "--device", "cpu", "--predictions", "reader.jsonl")
    run_asreader(folder, "baseline", "maximum-frequency", "stories.jsonl", "--predictions", "rule.jsonl")
    rule = ("--also", "maximum frequency=rule.jsonl")
    run_asreader(folder, "analyse", "reader.jsonl", "stories.jsonl", "--name", "reader", *rule, "--out", "figures")
    return (folder / "figures" / "accuracy-by-answer-rank.svg").rename(folder / "figure.svg")


def draw_page(folder: Path) -> Path:
    """The top of the demo's report in a browser, with few colours to keep the file small."""
    from PIL import Image

    run_asreader(folder, "demo", "--out", "demo")
    run_asreader(folder, "report", "demo/run", "--out", "report.html")
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
    program = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    address = (folder / "report.html").as_uri()
    subprocess.run([program, *options, f"--screenshot={folder / 'report.png'}", address], check=True)
    Image.open(folder / "report.png").convert("RGB").quantize(COLOURS).save(folder / "report.png", optimize=True)
    return folder / "report.png"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        for draw in (draw_attention, draw_figure, *([draw_page] if "--page" in sys.argv else [])):
            shutil.copy(draw(Path(name)), TARGET)


if __name__ == "__main__":
    main()
