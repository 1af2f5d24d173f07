"""a run's folder -> what became of the run: untouched, begun, finished, or damaged, and by which file.

A run that a sweep has finished says so in `finished.json`, written last, with a hash of each file that it vouches for:
not one changed or missing byte goes unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from asreader import readers
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.metrics import score_predictions
from asreader.runs.folder import Run
from asreader.settings import Config
from asreader.sweep.run_plan import NEUTRAL, PlannedRun
from asreader.system import atomic_files

FINISHED = "finished.json"
CARD = "card.md"
ASIDE = ".damaged"
"""Ending of files that are kept out of the way until the run has been trained again."""
_VOUCHED = ("config.toml", "vocabulary.txt", "weights.safetensors", "metrics.jsonl", "predictions/valid.jsonl", CARD)
_CONCLUDED = ("predictions/valid.jsonl", CARD)
"""Files that come from the others: without them nothing need be trained again."""


@dataclass(frozen=True)
class Finished:
    """What `finished.json` says. `limit` is the number of epochs the run was allowed, `epochs` those it took."""

    run: str
    limit: int
    epochs: int
    accuracy: float
    sha256: Mapping[str, str]
    stopped_early: bool = False


def finished(run: PlannedRun) -> Finished | None:
    """What the run says of itself if it was finished under this limit or a higher one, and every file is as it was."""
    said = _said(run)
    return said if said is not None and said.limit >= run.settings.train.epochs and not _changed(run, said) else None


def _said(run: PlannedRun) -> Finished | None:
    try:
        said = Finished(**json.loads((run.folder / FINISHED).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return said if said.run == run.id else None


def _changed(run: PlannedRun, said: Finished) -> list[str]:
    """The files that are not what they were when the run was finished."""
    return [name for name in _VOUCHED if _hash(run.folder / name) != said.sha256.get(name)]


def _hash(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def concluded(run: PlannedRun) -> bool:
    """Whether training, since `make_ready`, has come to its end: the card is what it writes last."""
    return (run.folder / CARD).is_file()


def finish(run: PlannedRun) -> Finished:
    """Look at what was trained, vouch for it, and drop what lay aside."""
    place = Run(run.folder)
    found = predictions.read_predictions(place.predictions("valid"))
    if len(found) != run.questions:
        raise InputError(f"{place.predictions('valid')}: {len(found):,} predictions for {run.questions:,} questions")
    hashes = {name: _hash(run.folder / name) or "" for name in _VOUCHED}
    epochs = max((validation.epoch for validation in validations(run)), default=0)
    said = Finished(run.id, run.settings.train.epochs, epochs, score_predictions(found).accuracy, hashes)
    _write(run, said)
    for path in run.folder.rglob(f"*{ASIDE}"):
        path.unlink()
    return said


def stop_early(run: PlannedRun) -> bool:
    """Note in a run's folder that a sweep does not let it go on; False if it was not to go on anyway."""
    said = _said(run)
    if said is None or said.limit >= run.settings.train.epochs:
        return False
    if not said.stopped_early:
        card = run.folder / CARD
        line = f"- stopped early by a sweep, after {said.epochs} epochs: half of its runs did better\n"
        Run(run.folder).save_card(card.read_text(encoding="utf-8").replace("\n## ", f"{line}\n## ", 1))
        hashes = {**said.sha256, CARD: _hash(card) or ""}
        _write(run, replace(said, stopped_early=True, sha256=hashes))
    return True


def _write(run: PlannedRun, said: Finished) -> None:
    atomic_files.write_text(run.folder / FINISHED, json.dumps(asdict(said), indent=1) + "\n")


@dataclass(frozen=True)
class Validation:
    """What a validation said; `best`: better than all before it."""

    epoch: int
    accuracy: float
    best: bool


def validations(run: PlannedRun) -> list[Validation]:
    """All validations so far."""
    try:
        lines = Run(run.folder).metrics.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    rows = [row for line in lines if (row := _row(line)).get("kind") == "valid"]
    return [Validation(int(row["epoch"]), float(row["accuracy"]), bool(row["best"])) for row in rows]


def _row(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:  # cut short by a kill, or just being written
        return {}
    return row if isinstance(row, dict) else {}


def make_ready(run: PlannedRun) -> str:
    """Leave a folder that training can go on from; returns what was wrong with it, or "" if nothing was.

    What cannot be gone on from is put aside, and the run begins anew.
    """
    atomic_files.remove_scratch_files(run.folder)
    said = _said(run)
    changed = _changed(run, said) if said is not None else []
    lost = [name for name in changed if name not in _CONCLUDED]
    wrong = f"{', '.join(lost)} changed or missing" if lost else _unfit(run)
    if wrong:
        _set_aside(run.folder)
    for name in (FINISHED, CARD):
        (run.folder / name).unlink(missing_ok=True)
    return wrong or (f"{', '.join(changed)} changed or missing" if changed else "")


def _unfit(run: PlannedRun) -> str:
    """Why training cannot go on from this folder; "" if it can."""
    place = Run(run.folder)
    try:
        if not place.exists():
            return "config.toml is missing" if any(run.folder.glob("*.safetensors")) else ""
        if _lasting(place.config(), run.settings) != _lasting(run.settings, run.settings):
            return "config.toml holds other settings"
        place.vocabulary()
        if (state := place.state()) is None:
            return ""
        tensors, about = state
        network = {name.removeprefix("network."): t for name, t in tensors.items() if name.startswith("network.")}
        _refuse_unfitting(place, run.settings, network)
        if about["best_step"]:
            _refuse_unfitting(place, run.settings, place.weights())
    except (InputError, RuntimeError, KeyError, TypeError) as error:
        return " ".join(str(error).split())
    return ""


def _lasting(settings: Config, of: Config) -> Config:
    """The settings that must be the same to go on with a run; the others are taken from `of`."""
    train = replace(settings.train, epochs=of.train.epochs, **{name: getattr(of.train, name) for name in NEUTRAL})
    data = replace(settings.data, train=of.data.train, valid=of.data.valid)
    return replace(settings, train=train, data=data)


def _refuse_unfitting(place: Run, settings: Config, weights: dict[str, Tensor]) -> None:
    network = readers.build(settings.reader_name, place.vocabulary().size, settings.reader_options)
    network.load_state_dict(weights)


def _set_aside(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(ASIDE):
            path.replace(path.with_name(path.name + ASIDE))
