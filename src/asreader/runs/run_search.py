"""folder -> the runs in or below it, and where a run keeps its predictions and vocabulary; imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from asreader.data import vocabulary
from asreader.data.vocabulary import Vocabulary
from asreader.errors import InputError
from asreader.system.atomic_files import walk_folders

CONFIG = "config.toml"
VOCABULARY = "vocabulary.txt"
PREDICTIONS = "predictions"


def find_runs(folder: Path) -> list[Path]:
    """The folder itself if it is a run, else all runs below it, sorted."""
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder; name a run, or a folder of runs")
    if (folder / CONFIG).is_file():
        return [folder]
    runs = sorted(
        path for path in walk_folders(folder) if all((path / name).is_file() for name in (CONFIG, VOCABULARY))
    )
    if not runs:
        raise InputError(f"{folder}: no run is in it; `asreader train` makes one")
    return runs


def find_predicted_runs(folders: Sequence[Path], split: str = "valid") -> list[Path]:
    """All folders in or below these that hold predictions of a split, sorted; settings and weights may be missing."""
    paths = {path for folder in folders for path in walk_folders(folder)}
    runs = sorted(path for path in paths if locate_predictions(path, split).is_file())
    if not runs:
        names = ", ".join(map(str, folders))
        raise InputError(f"{names}: no run with {PREDICTIONS}/{split}.jsonl in it; train some, or name their folder")
    return runs


def locate_predictions(run: Path, split: str) -> Path:
    """The prediction file of a split, whether it exists or not."""
    return run / PREDICTIONS / f"{split}.jsonl"


def locate_run(prediction_file: Path) -> Path | None:
    """The run that a prediction file belongs to; None for a file outside of a run."""
    folder = prediction_file.resolve().parent
    return folder.parent if folder.name == PREDICTIONS else None


def load_vocabulary(run: Path) -> Vocabulary | None:
    """The vocabulary of a run; None if the folder holds predictions alone."""
    return vocabulary.load_vocabulary(run / VOCABULARY) if (run / CONFIG).is_file() else None
