"""Runs are found below folders and links, and their files are where runs/folder.py writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from asreader.data.vocabulary import Vocabulary
from asreader.errors import InputError
from asreader.runs.folder import Run
from asreader.runs.run_search import find_predicted_runs, find_runs, load_vocabulary, locate_predictions, locate_run
from asreader.settings import Config


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name in ("a", "deep/b"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        Run(folder).create(Config(), Vocabulary(("lamp",), unknown=1))
    return tmp_path


def test_a_run_is_itself_and_a_folder_gives_all_runs_below_it(runs: Path) -> None:
    assert find_runs(runs / "a") == [runs / "a"]
    assert find_runs(runs) == [runs / "a", runs / "deep" / "b"]


def test_a_folder_without_vocabulary_is_not_found_from_above(runs: Path) -> None:
    (runs / "a" / "vocabulary.txt").unlink()
    assert find_runs(runs) == [runs / "deep" / "b"]


def test_missing_runs_are_errors_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run is in it"):
        find_runs(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        find_runs(tmp_path / "missing")
    with pytest.raises(InputError, match=r"no run with predictions/test\.jsonl"):
        find_predicted_runs([tmp_path], "test")


def test_prediction_files_are_those_of_the_run(runs: Path) -> None:
    file = Run(runs / "a").predictions("valid")
    assert locate_predictions(runs / "a", "valid") == file
    file.parent.mkdir()
    file.touch()
    assert find_predicted_runs([runs, runs / "a"]) == [runs / "a"]
    assert locate_run(file) == (runs / "a").resolve()
    assert locate_run(runs / "valid.jsonl") is None


def test_the_vocabulary_is_that_of_the_run(runs: Path) -> None:
    assert load_vocabulary(runs / "a") == Run(runs / "a").load_vocabulary()
    assert load_vocabulary(runs) is None
