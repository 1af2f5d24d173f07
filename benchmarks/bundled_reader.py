"""Rebuilds the bundled reader: python benchmarks/bundled_reader.py WORK_FOLDER (about ten minutes on two cores).

It learns from the story generator alone, so it is a small reader of the demo's kind of stories and of nothing else.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

from asreader import demo
from asreader.data.store import encode
from asreader.predictor import Reader
from asreader.training import loop

PRETRAINED = Path(demo.__file__).parent / "pretrained"
SHIPPED = ("config.toml", "vocabulary.txt", "weights.safetensors", "environment.json")
STORIES = 40_000

CARD = """# The bundled reader

An Attention Sum Reader (embedding 64, hidden 64), trained on {stories:,} stories of `asreader.cloze.generator`,
seed {seed}.

- accuracy on 2,000 new stories: {seen:.3f}
- on 2,000 stories about people, places and things it never saw: {unseen:.3f}
- answering by maximum frequency: {frequency:.3f} and {unseen_frequency:.3f}

It is good for trying out the commands and the Python interface on short texts about who took, gave or left what. It has
read no book and no newspaper: on ordinary prose it does no better than counting words. Train a reader on your own kind
of text for real use. Rebuild it with `python benchmarks/bundled_reader.py FOLDER`.
"""


def main(work: Path) -> None:
    train = demo.write_stories(work / "train.jsonl", STORIES, seed=101)
    valid = demo.write_stories(work / "valid.jsonl", 1_000, seed=102)
    settings = demo.settings(train, valid)
    settings = replace(settings, train=replace(settings.train, epochs=8, patience=3))
    run = loop.train(settings, work / "run", resume=(work / "run").exists())
    PRETRAINED.mkdir(exist_ok=True)
    for name in SHIPPED:
        shutil.copyfile(run.folder / name, PRETRAINED / name)
    written = (PRETRAINED / "config.toml").read_text(encoding="utf-8")
    (PRETRAINED / "config.toml").write_text(written.replace(f"{work}/", ""), encoding="utf-8")
    reader = Reader.load(PRETRAINED)
    seen, unseen = (list(demo.stories(2_000, 103, unseen=kind)) for kind in (False, True))
    text = CARD.format(
        stories=STORIES,
        seed=101,
        seen=reader.evaluate(encode(seen)).scores.accuracy,
        unseen=reader.evaluate(encode(unseen)).scores.accuracy,
        frequency=demo.baseline("maximum_frequency", seen),
        unseen_frequency=demo.baseline("maximum_frequency", unseen),
    )
    (PRETRAINED / "card.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
