"""a run folder -> its status in a sweep: not started, started, finished, or damaged.

A finished run has a `finished.json`, written last, with a hash of each file that belongs to the result: one changed or
missing byte is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from torch import Tensor

from asreader import readers
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.metrics import score_predictions
from asreader.runs import metrics_log
from asreader.runs.file_names import (
    CARD_FILE,
    CONFIG_FILE,
    METRICS_FILE,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
    name_predictions,
)
from asreader.runs.folder import Run
from asreader.runs.metrics_log import ValidationRow
from asreader.settings import Config
from asreader.sweep.run_plan import NEUTRAL_SETTINGS, PlannedRun
from asreader.system import atomic_files

FINISHED_FILE = "finished.json"
DAMAGED_SUFFIX = ".damaged"
"""Suffix of files that are set aside until the run has been trained again."""
_PREDICTIONS_FILE = name_predictions("valid")
_DERIVED_FILES = (_PREDICTIONS_FILE, CARD_FILE)
"""Files that are computed from the others: to restore them nothing needs to be trained again."""
_HASHED_FILES = (CONFIG_FILE, VOCABULARY_FILE, WEIGHTS_FILE, METRICS_FILE, *_DERIVED_FILES)


@dataclass(frozen=True)
class FinishedRun:
    """The content of `finished.json`. `limit` is the number of epochs the run was allowed, `epochs` those it took."""

    run: str
    limit: int
    epochs: int
    accuracy: float
    sha256: Mapping[str, str]
    stopped_early: bool = False


def check_finished(run: PlannedRun) -> FinishedRun | None:
    """The run's status if it finished under this limit of epochs or a higher one and all its files are unchanged."""
    status = _read_status(run)
    if status is None or status.limit < run.settings.train.epochs or _list_changed_files(run, status):
        return None
    return status


def _read_status(run: PlannedRun) -> FinishedRun | None:
    try:
        status = FinishedRun(**json.loads((run.folder / FINISHED_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return status if status.run == run.id else None


def _list_changed_files(run: PlannedRun, status: FinishedRun) -> list[str]:
    """Files that differ from those the run finished with."""
    return [name for name in _HASHED_FILES if _hash_file(run.folder / name) != status.sha256.get(name)]


def _hash_file(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def is_trained(run: PlannedRun) -> bool:
    """Whether training has ended since `repair_folder` deleted the card, which training writes last."""
    return Run(run.folder).card.is_file()


def mark_finished(run: PlannedRun) -> FinishedRun:
    """Check the predictions of a trained run, write `finished.json`, and delete the files that were set aside."""
    path = Run(run.folder).predictions("valid")
    predicted = predictions.read_predictions(path)
    if len(predicted) != run.questions:
        raise InputError(f"{path}: {len(predicted):,} predictions for {run.questions:,} questions")
    hashes = {name: _hash_file(run.folder / name) or "" for name in _HASHED_FILES}
    epochs = max((row.epoch for row in read_validations(run)), default=0)
    status = FinishedRun(run.id, run.settings.train.epochs, epochs, score_predictions(predicted).accuracy, hashes)
    _write_status(run, status)
    for aside in run.folder.rglob(f"*{DAMAGED_SUFFIX}"):
        aside.unlink()
    return status


def mark_stopped_early(run: PlannedRun) -> bool:
    """Mark a run as stopped early by successive halving; False if it had used all its epochs."""
    status = _read_status(run)
    if status is None or status.limit >= run.settings.train.epochs:
        return False
    if not status.stopped_early:
        folder = Run(run.folder)
        line = f"- stopped early by a sweep, after {status.epochs} epochs: half of its runs did better\n"
        folder.save_card(folder.card.read_text(encoding="utf-8").replace("\n## ", f"{line}\n## ", 1))
        hashes = {**status.sha256, CARD_FILE: _hash_file(folder.card) or ""}
        _write_status(run, replace(status, stopped_early=True, sha256=hashes))
    return True


def _write_status(run: PlannedRun, status: FinishedRun) -> None:
    atomic_files.write_text(run.folder / FINISHED_FILE, json.dumps(asdict(status), indent=1) + "\n")


def read_validations(run: PlannedRun) -> list[ValidationRow]:
    """All validations of the run so far."""
    return metrics_log.read_validations(Run(run.folder).metrics)


def repair_folder(run: PlannedRun) -> str:
    """Make the folder resumable; returns what was wrong with it, or "".

    Files that training cannot resume from are set aside, and the run starts again.
    """
    atomic_files.remove_scratch_files(run.folder)
    status = _read_status(run)
    changed = _list_changed_files(run, status) if status is not None else []
    lost = [name for name in changed if name not in _DERIVED_FILES]
    problem = f"{', '.join(lost)} changed or missing" if lost else _find_resume_problem(run)
    if problem:
        _set_aside_files(run.folder)
    for name in (FINISHED_FILE, CARD_FILE):
        (run.folder / name).unlink(missing_ok=True)
    return problem or (f"{', '.join(changed)} changed or missing" if changed else "")


def _find_resume_problem(run: PlannedRun) -> str:
    """Why training cannot resume from this folder, or ""."""
    folder = Run(run.folder)
    try:
        if not folder.exists():
            return f"{CONFIG_FILE} is missing" if any(run.folder.glob("*.safetensors")) else ""
        if _with_neutral_settings(folder.load_config(), run.settings) != run.settings:
            return f"{CONFIG_FILE} holds other settings"
        folder.load_vocabulary()
        if (state := folder.load_state()) is None:
            return ""
        tensors, about = state
        network = {name.removeprefix("network."): t for name, t in tensors.items() if name.startswith("network.")}
        _check_weights_fit(folder, run.settings, network)
        if about["best_step"]:
            _check_weights_fit(folder, run.settings, folder.load_weights())
    except (InputError, RuntimeError, KeyError, TypeError) as error:
        return " ".join(str(error).split())
    return ""


def _with_neutral_settings(settings: Config, source: Config) -> Config:
    """The settings with those that may change on resume taken from `source`."""
    neutral = {name: getattr(source.train, name) for name in (*NEUTRAL_SETTINGS, "epochs")}
    data = replace(settings.data, train=source.data.train, valid=source.data.valid)
    return replace(settings, train=replace(settings.train, **neutral), data=data)


def _check_weights_fit(folder: Run, settings: Config, weights: dict[str, Tensor]) -> None:
    """Raise RuntimeError if the weights do not fit the network of these settings."""
    network = readers.build(settings.reader_name, folder.load_vocabulary().size, settings.reader_options)
    network.load_state_dict(weights)


def _set_aside_files(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(DAMAGED_SUFFIX):
            path.replace(path.with_name(path.name + DAMAGED_SUFFIX))
