"""Ensembles of saved predictions, against slow and obvious computations and hand-made cases with ties."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest
from typer.testing import CliRunner

from asreader.cli import app
from asreader.errors import InputError
from asreader.evaluation import ensembling, predictions
from asreader.evaluation.metrics import scores
from asreader.evaluation.predictions import Prediction


def written(folder: Path, readers: int, questions: int, seed: int = 1, candidates: int = 4) -> list[Path]:
    """Files of readers that are right more often than not; each has lines and candidates in an order of its own."""
    random = Random(seed)
    names = [f"c{number}" for number in range(candidates)]
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for reader in range(readers):
        rows = []
        for number in range(questions):
            values = np.array([random.random() for _ in names])
            values[number % candidates] += random.random() * (1 + reader / readers)
            order = random.sample(range(candidates), candidates) if reader else list(range(candidates))
            rows.append(
                Prediction(
                    f"q{number}",
                    names[number % candidates],
                    tuple(names[place] for place in order),
                    (values / values.sum())[order],
                )
            )
        if reader:
            random.shuffle(rows)
        paths.append(folder / f"{reader}.jsonl")
        predictions.write(paths[-1], rows)
    return paths


def slow_accuracy(paths: list[Path], members: list[int]) -> float:
    """The mean of probabilities, question by question, candidate by candidate; the first of equals is chosen."""
    files = [{row.id: row for row in predictions.read(path)} for path in paths]
    right = 0
    for id, question in files[0].items():
        means = {}
        for candidate in question.candidates:
            said = [files[m][id].probabilities[files[m][id].candidates.index(candidate)] for m in members]
            means[candidate] = sum(map(float, said)) / len(said)
        right += max(means, key=means.__getitem__) == question.answer
    return right / len(files[0])


def slow_greedy(paths: list[Path]) -> list[int]:
    ranked = sorted(range(len(paths)), key=lambda reader: -slow_accuracy(paths, [reader]))
    chosen: list[int] = []
    best = -1.0
    for reader in ranked:
        if slow_accuracy(paths, [*chosen, reader]) > best:
            chosen.append(reader)
            best = slow_accuracy(paths, chosen)
    return chosen


@pytest.mark.parametrize("seed", range(4))
def test_members_and_accuracies_are_those_of_the_slow_way(tmp_path: Path, seed: int) -> None:
    paths = written(tmp_path, 7, 60, seed)
    valid = ensembling.aligned(paths)
    assert valid.accuracies() == pytest.approx([slow_accuracy(paths, [reader]) for reader in range(7)])
    assert ensembling.greedy(valid) == slow_greedy(paths)
    members = ensembling.best_share(valid, 0.7)
    assert len(members) == 5
    assert set(members) == set(sorted(range(7), key=lambda reader: -slow_accuracy(paths, [reader]))[:5])
    assert scores(valid.predictions(members)).accuracy == pytest.approx(slow_accuracy(paths, members))


def test_an_ensemble_of_one_is_itself(tmp_path: Path) -> None:
    (path,) = written(tmp_path, 1, 30)
    found = ensembling.aligned([path]).predictions([0])
    for ours, own in zip(found, predictions.read(path), strict=True):
        assert (ours.id, ours.answer, ours.candidates) == (own.id, own.answer, own.candidates)
        assert np.array_equal(ours.probabilities, own.probabilities)


def save(path: Path, *rows: tuple[str, str, dict[str, float]]) -> Path:
    predictions.write(path, [Prediction(id, answer, tuple(said), list(said.values())) for id, answer, said in rows])  # type: ignore[arg-type]
    return path


def test_a_tie_is_decided_by_the_first_files_order_and_never_by_the_answer(tmp_path: Path) -> None:
    one = save(tmp_path / "1", ("a", "y", {"x": 0.5, "y": 0.5}), ("b", "x", {"x": 0.5, "y": 0.5}))
    two = save(tmp_path / "2", ("b", "x", {"y": 0.5, "x": 0.5}), ("a", "y", {"y": 0.5, "x": 0.5}))
    assert ensembling.aligned([one, two]).accuracies().tolist() == [0.5, 0.5]
    assert scores(ensembling.aligned([one, two]).predictions([0, 1])).accuracy == 0.5


def test_greedy_keeps_only_what_improves(tmp_path: Path) -> None:
    best = save(tmp_path / "1", ("a", "x", {"x": 0.9, "y": 0.1}), ("b", "x", {"x": 0.4, "y": 0.6}))
    helps = save(tmp_path / "2", ("a", "x", {"x": 0.4, "y": 0.6}), ("b", "x", {"x": 0.9, "y": 0.1}))
    copy = save(tmp_path / "3", ("a", "x", {"x": 0.9, "y": 0.1}), ("b", "x", {"x": 0.4, "y": 0.6}))
    assert ensembling.greedy(ensembling.aligned([best, copy, helps])) == [0, 2]


def test_empty_candidates_and_copies_are_never_chosen(tmp_path: Path) -> None:
    row = Prediction("a", "x", ("", "y", "y", "x"), np.array([0.9, 0.1, 0.8, 0.2]))
    predictions.write(tmp_path / "1", [row])
    assert ensembling.aligned([tmp_path / "1"]).accuracies().tolist() == [1.0]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([("b", "x", {"x": 1.0, "y": 0.0})], "the question 'a' of .* is missing"),
        ([("a", "x", {"x": 1.0, "z": 0.0})], "the question 'a' has other candidates"),
        ([("a", "y", {"x": 1.0, "y": 0.0})], "the question 'a' has another answer"),
        ([("a", "x", {"x": 1.0, "y": 0.0}), ("c", "x", {"x": 1.0})], "the question 'c' is not in"),
    ],
)
def test_files_of_different_data_are_refused_by_question(
    tmp_path: Path, rows: list[tuple[str, str, dict[str, float]]], reason: str
) -> None:
    one = save(tmp_path / "1", ("a", "x", {"x": 1.0, "y": 0.0}))
    with pytest.raises(InputError, match=reason):
        ensembling.aligned([one, save(tmp_path / "2", *rows)])


def test_the_paper_s_largest_ensemble_takes_seconds(tmp_path: Path) -> None:
    paths = written(tmp_path, 2, 2500, candidates=10) * 42
    start = time.perf_counter()
    valid = ensembling.aligned(paths)
    ensembling.greedy(valid)
    ensembling.best_share(valid, 0.7)
    assert time.perf_counter() - start < 15  # under 5 s on a quiet machine


def test_the_command_takes_many_files_behind_one_option(tmp_path: Path) -> None:
    valid, test = written(tmp_path / "valid", 5, 40, 1), written(tmp_path / "test", 5, 30, 2)
    out = tmp_path / "out"
    words = ["ensemble", "--valid", *map(str, valid), "--test", *map(str, test), "--out", str(out), "--json"]
    for method in ("average", "greedy"):
        done = CliRunner().invoke(app, [*words, "--method", method], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        members = [valid.index(Path(name)) for name in told["members"]]
        assert told["method"] == method
        assert told["valid"]["accuracy"] == pytest.approx(slow_accuracy(valid, members))
        assert told["test"]["accuracy"] == pytest.approx(slow_accuracy(test, members))
        assert scores(predictions.read(out)).accuracy == told["test"]["accuracy"]
    with pytest.raises(InputError, match="name both of each reader"):
        CliRunner().invoke(app, [*words[: 2 + len(valid)], "--test", str(test[0])], catch_exceptions=False)
