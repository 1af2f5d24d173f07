"""A trained run -> the reader that ships: python benchmarks/bundle.py RUN --calibrate DATA --check NAME=DATA ...

Weights are halved to float16 (they are used in float32), the confidence is calibrated on data that the reader never
saw, and the card says how well it does on every data set of `--check`. The weights carry the hash of the settings that
made them. `--about FILE` is a text for the card: what it was trained on, what it is good for, what it is not.

The demo's reader is made by:  python benchmarks/bundle.py --stories WORK_FOLDER  (ten minutes on two cores)
"""

from __future__ import annotations

import argparse
import re
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import torch

import asreader
from asreader import demo
from asreader.calibrating import Calibrated, calibrate
from asreader.data.loading import load_store
from asreader.predictor import Reader
from asreader.run import Run
from asreader.training import loop

PRETRAINED = Path(asreader.__file__).parent / "pretrained"
STORIES = 40_000
ABOUT_STORIES = f"""Trained on {STORIES:,} stories of `asreader.cloze.generator`.

It is good for trying out the commands and the Python interface on short texts about who took, gave or left what. It has
read no book and no newspaper: on ordinary prose it does no better than counting words. Train a reader on your own kind
of text for real use.
"""


def bundle(run: Run, calibrating: Path, checks: dict[str, Path], about: str, folder: Path = PRETRAINED) -> None:
    """Write all files of the bundled reader."""
    folder.mkdir(exist_ok=True)
    ships, weights = Run(folder), run.weights()
    settings, words = run.config(), run.vocabulary()
    named = replace(settings.data, train=Path(settings.data.train).name, valid=Path(settings.data.valid).name)
    ships.save_config(replace(settings, data=named))
    words.save(folder / "vocabulary.txt")
    if run.folder != folder:
        shutil.copyfile(run.folder / "environment.json", folder / "environment.json")
    made_by = sha256((folder / "config.toml").read_bytes()).hexdigest()
    half = {name: weight.to(torch.float16) for name, weight in weights.items()}
    ships.save_weights(half, {"config_sha256": made_by})
    found = calibrate(folder, calibrating, wanted=0.9, device="cpu")
    ships.save_card(card(folder, found, calibrating.name, checks, about))


def card(folder: Path, found: Calibrated, calibrated_on: str, checks: dict[str, Path], about: str) -> str:
    """What it is, how well it does, how far it can be trusted."""
    settings, megabytes = Run(folder).config(), (folder / "weights.safetensors").stat().st_size / 1e6
    sizes = ", ".join(f"{key} {value}" for key, value in settings.reader_options.items())
    lines = [f"# The bundled reader\n\nAn Attention Sum Reader ({sizes}), {megabytes:.1f} MB of weights.\n", about]
    lines.append("| on | questions | accuracy | 95% interval | unknown words |\n|---|---|---|---|---|")
    reader = Reader.load(folder, "cpu")
    for name, data in checks.items():
        scores = reader.evaluate(load_store(data)).scores
        low, high = scores.interval
        row = (name, f"{scores.questions:,}", f"{scores.accuracy:.3f}", f"{low:.3f} to {high:.3f}")
        lines.append("| " + " | ".join((*row, f"{scores.unknown_words:.1%}")) + " |")
    calibration = found.calibration
    errors = f"expected calibration error {found.error_before:.3f} before, {found.error_after:.3f} after"
    sure = f"above it gave {found.coverage:.0%} of the answers,\n{found.accuracy or 0:.0%} of them right"
    lines.append(
        f"\nIts confidence was calibrated on {found.questions:,} questions of {calibrated_on} (temperature\n"
        f"{calibration.temperature:.2f}; {errors}).\n"
        f"Below a confidence of {calibration.threshold:.2f} it says that it is not sure; {sure}."
    )
    return "\n".join(lines) + "\n"


def stories(work: Path) -> None:
    """The reader of the demo's stories, from the beginning."""
    train, valid, held_out, unseen = (work / f"{name}.jsonl" for name in ("train", "valid", "held-out", "unseen"))
    for path, count, seed in ((train, STORIES, 101), (valid, 1_000, 102), (held_out, 2_000, 104)):
        if not path.exists():
            demo.write_stories(path, count, seed)
    checks = {"new stories": work / "new.jsonl", "stories about people, places and things it never saw": unseen}
    demo.write_stories(checks["new stories"], 2_000, 103)
    unseen.write_text("".join(map(demo.jsonl.line, demo.stories(2_000, 103, unseen=True))), encoding="utf-8")
    settings = demo.settings(train, valid)
    run = Run(work / "run")
    if not run.folder.exists():
        longer = replace(settings, train=replace(settings.train, epochs=8, patience=3))
        run = loop.train(longer, work / "run")
    bundle(run, held_out, checks, ABOUT_STORIES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--calibrate", type=Path)
    parser.add_argument("--check", action="append", default=[], metavar="NAME=DATA")
    parser.add_argument("--about", type=Path)
    parser.add_argument("--stories", type=Path, metavar="WORK_FOLDER")
    given = parser.parse_args()
    if given.stories:
        stories(given.stories)
    elif given.run and given.calibrate and given.about:
        checks = {name: Path(data) for name, _, data in (re.split(r"(=)", each, maxsplit=1) for each in given.check)}
        bundle(Run(given.run), given.calibrate, checks, given.about.read_text(encoding="utf-8"))
    else:
        parser.error("name a run, --calibrate DATA and --about FILE, or --stories FOLDER")
    print((PRETRAINED / "card.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
