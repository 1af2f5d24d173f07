"""Ensembles of saved predictions, against slow and obvious computations and hand-made cases with ties."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from typer.testing import CliRunner

from asreader.cli import app
from asreader.errors import InputError
from asreader.evaluation import ensembles, predictions
from asreader.evaluation.metrics import break_ties_by_order, rank_answer, score_predictions
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
        predictions.write_predictions(paths[-1], rows)
    return paths


def slow_accuracy(paths: list[Path], members: Sequence[int], weights: Sequence[float] | None = None) -> float:
    """The mean of probabilities, question by question, candidate by candidate; the first of equals is chosen."""
    files = [{row.id: row for row in predictions.read_predictions(path)} for path in paths]
    shares = weights or [1.0] * len(members)
    right = 0
    for id, question in files[0].items():
        means = {}
        for candidate in question.candidates:
            said = [files[m][id].probabilities[files[m][id].candidates.index(candidate)] for m in members]
            means[candidate] = sum(float(value) * share for value, share in zip(said, shares, strict=True))
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
    valid = ensembles.align_predictions(paths)
    assert valid.compute_accuracies() == pytest.approx([slow_accuracy(paths, [reader]) for reader in range(7)])
    assert list(ensembles.select_greedily(valid).members) == slow_greedy(paths)
    share = ensembles.average_best_readers(valid, 0.7)
    assert len(share.members) == 5
    assert set(share.members) == set(sorted(range(7), key=lambda reader: -slow_accuracy(paths, [reader]))[:5])
    everyone = ensembles.average_all_readers(valid)
    assert sorted(everyone.members) == list(range(7)) and set(everyone.weights) == {1 / 7}
    for chosen in (share, everyone, ensembles.select_greedily(valid), ensembles.fit_weights(valid)):
        slow = slow_accuracy(paths, chosen.members, chosen.weights)
        assert score_predictions(chosen.predict(valid)).accuracy == pytest.approx(slow)
        assert valid.mark_correct(chosen.mix_probabilities(valid)).mean() == pytest.approx(slow)


@pytest.mark.parametrize("top", [1, 2, 3])
def test_the_answer_among_the_best_is_that_of_metrics(tmp_path: Path, top: int) -> None:
    """With coarse probabilities, so that ties are common, a copy, an absent answer and an unknown one."""
    random = Random(top)
    rows = [
        Prediction(str(n), random.choice("abcz"), ("", "a", "b", "a", "c"), [random.choice([0, 0.2]) for _ in range(5)])  # type: ignore[arg-type]
        for n in range(60)
    ]
    predictions.write_predictions(tmp_path / "1", [*rows, Prediction("unknown", None, ("a",), [1.0])])  # type: ignore[arg-type]
    said = ensembles.align_predictions([tmp_path / "1"])
    wanted = [found is not None and break_ties_by_order(found, top) == 1 for found in map(rank_answer, rows)]
    assert said.mark_correct(said.probabilities[0], top).tolist() == wanted


def log_likelihood(paths: list[Path], weights: Sequence[float]) -> float:
    """The mean log probability of the answers, question by question."""
    files = [{row.id: row for row in predictions.read_predictions(path)} for path in paths]
    total = 0.0
    for id, question in files[0].items():
        said = [file[id].probabilities[file[id].candidates.index(str(question.answer))] for file in files]
        total += math.log(sum(float(value) * share for value, share in zip(said, weights, strict=True)))
    return total / len(files[0])


def spread(chosen: ensembles.Ensemble, readers: int) -> list[float]:
    """The weight of every reader, 0 for those left out."""
    weights = dict(zip(chosen.members, chosen.weights, strict=True))
    return [weights.get(reader, 0.0) for reader in range(readers)]


@pytest.mark.parametrize("seed", range(3))
def test_two_weights_are_the_best_of_a_grid(tmp_path: Path, seed: int) -> None:
    paths = written(tmp_path, 2, 50, seed)
    found = spread(ensembles.fit_weights(ensembles.align_predictions(paths)), 2)
    grid = [step / 200 for step in range(201)]
    best = max(grid, key=lambda share: log_likelihood(paths, (share, 1 - share)))
    assert log_likelihood(paths, found) >= log_likelihood(paths, (best, 1 - best)) - ensembles.TOLERANCE
    assert found[0] == pytest.approx(best, abs=0.015)  # a step of the grid, and what a flat top leaves open


def test_no_other_weights_make_the_answers_likelier(tmp_path: Path) -> None:
    paths = written(tmp_path, 5, 60, 3)
    chosen = ensembles.fit_weights(ensembles.align_predictions(paths))
    assert sum(chosen.weights) == pytest.approx(1) and min(chosen.weights) > 0
    assert list(chosen.weights) == sorted(chosen.weights, reverse=True)
    reached = log_likelihood(paths, spread(chosen, 5))
    random = Random(4)
    for _ in range(60):
        drawn = [random.gammavariate(0.7, 1) for _ in paths]
        assert log_likelihood(paths, [value / sum(drawn) for value in drawn]) <= reached + ensembles.TOLERANCE


def test_a_copy_of_a_reader_changes_no_fitted_prediction(tmp_path: Path) -> None:
    paths = written(tmp_path, 3, 60, 5)
    alone, doubled = (ensembles.align_predictions(files) for files in (paths, [*paths, paths[0]]))
    one, two = (
        ensembles.fit_weights(alone).mix_probabilities(alone),
        ensembles.fit_weights(doubled).mix_probabilities(doubled),
    )
    assert np.abs(one - two).max() < 0.01


def test_who_alone_knows_an_answer_keeps_a_weight(tmp_path: Path) -> None:
    names = [str(number) for number in range(40)]
    wise = save(tmp_path / "1", *((name, "x", {"x": 0.9, "y": 0.1}) for name in names), ("odd", "x", {"x": 0, "y": 1}))
    odd = save(tmp_path / "2", *((name, "x", {"x": 0.01, "y": 0.9}) for name in names), ("odd", "x", {"x": 1, "y": 0}))
    found = spread(ensembles.fit_weights(ensembles.align_predictions([wise, odd])), 2)
    assert 1 / 41 <= found[1] < 0.05  # at least the share of its one question


def test_weights_of_readers_that_know_nothing_are_equal(tmp_path: Path) -> None:
    paths = [save(tmp_path / name, ("a", "x", {"x": 0.0, "y": 1.0}), ("b", "z", {"x": 1.0})) for name in "12"]
    assert ensembles.fit_weights(ensembles.align_predictions(paths)).weights == (0.5, 0.5)


@pytest.mark.parametrize("method", ensembles.METHODS)
def test_cross_validation_is_that_of_a_loop(tmp_path: Path, method: str) -> None:
    """Files without a block of neighbours are written and chosen by; the block is then answered by that ensemble."""
    paths = written(tmp_path / "all", 4, 43, 2)
    whole = ensembles.align_predictions(paths)
    choice = ensembles.METHODS[method](0.5)
    ids = [row.id for row in predictions.read_predictions(paths[0])]
    sizes = [9, 9, 9, 8, 8]
    right = 0.0
    for number, size in enumerate(sizes):
        block = set(ids[sum(sizes[:number]) : sum(sizes[: number + 1])])
        parts = {}
        for name in ("held", "others"):
            (tmp_path / name).mkdir(exist_ok=True)
            parts[name] = [tmp_path / name / path.name for path in paths]
            for path, part in zip(paths, parts[name], strict=True):
                predictions.write_predictions(
                    part, [row for row in predictions.read_predictions(path) if (row.id in block) == (name == "held")]
                )
        chosen = choice(ensembles.align_predictions(parts["others"]))
        right += size * slow_accuracy(parts["held"], chosen.members, chosen.weights)
    crossed = ensembles.cross_validate(whole, choice)
    assert crossed is not None
    assert crossed.sum() == pytest.approx(right)


def test_a_single_question_cannot_be_cross_validated(tmp_path: Path) -> None:
    one = save(tmp_path / "1", ("a", "x", {"x": 1.0}), ("b", None, {"x": 1.0}))
    assert ensembles.cross_validate(ensembles.align_predictions([one]), ensembles.select_greedily) is None


@pytest.mark.parametrize("method", ensembles.METHODS)
def test_ties_never_favour_the_right_answer(tmp_path: Path, method: str) -> None:
    """Readers that are undecided, and readers whose mean is: what comes first in the data wins, right or wrong."""
    even, left, right = {"x": 0.5, "y": 0.5}, {"x": 0.6, "y": 0.4}, {"x": 0.4, "y": 0.6}
    mirrored = {"y": 0.5, "x": 0.5}
    one = save(tmp_path / "1", ("a", "y", even), ("b", "x", even), ("c", "y", left), ("d", "y", right))
    two = save(tmp_path / "2", ("d", "y", left), ("c", "y", right), ("b", "x", mirrored), ("a", "y", mirrored))
    said = ensembles.align_predictions([one, two])
    for chosen in (
        ensembles.METHODS[method](1.0)(said),
        ensembles.weight_equally([0, 1]),
        ensembles.weight_equally([1, 0]),
    ):
        right_on = dict(zip("abcd", said.mark_correct(chosen.mix_probabilities(said)).tolist(), strict=True))
        assert not right_on["a"] and right_on["b"]
        if len(chosen.members) == 2:
            assert not right_on["c"] and not right_on["d"]
        assert score_predictions(chosen.predict(said)).accuracy == sum(right_on.values()) / 4


def test_a_sum_of_equals_is_equal_whatever_the_weights(tmp_path: Path) -> None:
    """Candidates in different columns that every reader holds equal: no rounding may tell them apart."""
    random = Random(6)
    names = [f"c{number}" for number in range(13)]
    paths = []
    for reader in range(9):
        shares = [random.random() / 13 for _ in range(40)]
        rows = [Prediction(str(n), "c12", tuple(names), [share] * 13) for n, share in enumerate(shares)]  # type: ignore[arg-type]
        paths.append(tmp_path / str(reader))
        predictions.write_predictions(paths[-1], rows)
    said = ensembles.align_predictions(paths)
    weights = [random.random() for _ in paths]
    uneven = ensembles.Ensemble(tuple(range(9)), tuple(weight / sum(weights) for weight in weights))
    for chosen in (uneven, ensembles.fit_weights(said), ensembles.average_all_readers(said)):
        assert not said.mark_correct(chosen.mix_probabilities(said)).any()


def test_an_ensemble_of_one_is_itself(tmp_path: Path) -> None:
    (path,) = written(tmp_path, 1, 30)
    found = ensembles.align_predictions([path]).average_predictions([0])
    for ours, own in zip(found, predictions.read_predictions(path), strict=True):
        assert (ours.id, ours.answer, ours.candidates) == (own.id, own.answer, own.candidates)
        assert np.array_equal(ours.probabilities, own.probabilities)


def save(path: Path, *rows: tuple[str, str, dict[str, float]]) -> Path:
    predictions.write_predictions(
        path, [Prediction(id, answer, tuple(said), list(said.values())) for id, answer, said in rows]
    )  # type: ignore[arg-type]
    return path


def test_a_tie_is_decided_by_the_first_files_order_and_never_by_the_answer(tmp_path: Path) -> None:
    one = save(tmp_path / "1", ("a", "y", {"x": 0.5, "y": 0.5}), ("b", "x", {"x": 0.5, "y": 0.5}))
    two = save(tmp_path / "2", ("b", "x", {"y": 0.5, "x": 0.5}), ("a", "y", {"y": 0.5, "x": 0.5}))
    assert ensembles.align_predictions([one, two]).compute_accuracies().tolist() == [0.5, 0.5]
    assert score_predictions(ensembles.align_predictions([one, two]).average_predictions([0, 1])).accuracy == 0.5


def test_greedy_keeps_only_what_improves(tmp_path: Path) -> None:
    best = save(tmp_path / "1", ("a", "x", {"x": 0.9, "y": 0.1}), ("b", "x", {"x": 0.4, "y": 0.6}))
    helps = save(tmp_path / "2", ("a", "x", {"x": 0.4, "y": 0.6}), ("b", "x", {"x": 0.9, "y": 0.1}))
    copy = save(tmp_path / "3", ("a", "x", {"x": 0.9, "y": 0.1}), ("b", "x", {"x": 0.4, "y": 0.6}))
    assert ensembles.select_greedily(ensembles.align_predictions([best, copy, helps])).members == (0, 2)


def test_empty_candidates_and_copies_are_never_chosen(tmp_path: Path) -> None:
    row = Prediction("a", "x", ("", "y", "y", "x"), np.array([0.9, 0.1, 0.8, 0.2]))
    predictions.write_predictions(tmp_path / "1", [row])
    assert ensembles.align_predictions([tmp_path / "1"]).compute_accuracies().tolist() == [1.0]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([("b", "x", {"x": 1.0})], "the question 'a' of .* is missing"),
        ([("a", "x", {"x": 1.0, "z": 0.0}), ("b", "x", {"x": 1.0})], "the question 'a' has other candidates"),
        ([("b", "x", {"x": 1.0}), ("a", "y", {"x": 1.0, "y": 0.0})], "the question 'a' has another answer"),
        ([("b", "x", {"x": 1.0}), ("c", "x", {"x": 1.0})], "the question 'c' is not in"),
    ],
)
def test_files_of_different_data_are_refused_by_question(
    tmp_path: Path, rows: list[tuple[str, str, dict[str, float]]], reason: str
) -> None:
    one = save(tmp_path / "1", ("a", "x", {"x": 1.0, "y": 0.0}), ("b", "x", {"x": 1.0}))
    other = save(tmp_path / "2", *rows)
    with pytest.raises(InputError, match=reason) as caught:
        ensembles.align_predictions([one, other])
    assert str(caught.value).startswith(f"{other}: ") and str(one) in str(caught.value)


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_named_wherever_it_stands(tmp_path: Path, content: str) -> None:
    good, empty = save(tmp_path / "1", ("a", "x", {"x": 1.0})), tmp_path / "2"
    empty.write_text(content)
    for paths in ([good, empty], [empty, good]):
        with pytest.raises(InputError, match=f"^{empty}: holds no predictions$"):
            ensembles.align_predictions(paths)


def test_a_damaged_file_is_named_with_its_line(tmp_path: Path) -> None:
    paths = written(tmp_path, 3, 8)
    paths[1].write_bytes(paths[1].read_bytes()[:-40])
    with pytest.raises(InputError, match=f"^{paths[1]}:8: not a line of a prediction file"):
        ensembles.align_predictions(paths)


def test_the_paper_s_largest_ensemble_takes_seconds(tmp_path: Path) -> None:
    paths = written(tmp_path, 2, 2500, candidates=10) * 42
    start = time.process_time()
    valid = ensembles.align_predictions(paths)
    for method in ensembles.METHODS.values():
        chosen = method(0.7)(valid)
        assert ensembles.cross_validate(valid, method(0.7)) is not None
        chosen.predict(valid)
    assert time.process_time() - start < 15  # all four methods under 5 s on a quiet machine


def test_the_command_takes_many_files_behind_one_option(tmp_path: Path) -> None:
    valid, test = written(tmp_path / "valid", 5, 40, 1), written(tmp_path / "test", 5, 30, 2)
    out = tmp_path / "out"
    words = ["ensemble", "--valid", *map(str, valid), "--test", *map(str, test), "--out", str(out)]
    for method in ensembles.METHODS:
        done = CliRunner().invoke(app, [*words, "--json", "--method", method], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        members = [valid.index(Path(name)) for name in told["members"]]
        assert told["method"] == method
        assert len(told["weights"]) == len(members) and sum(told["weights"]) == pytest.approx(1)
        assert told["valid"]["accuracy"] == pytest.approx(slow_accuracy(valid, members, told["weights"]))
        assert told["test"]["accuracy"] == pytest.approx(slow_accuracy(test, members, told["weights"]))
        assert told["best_single"] == pytest.approx(max(slow_accuracy(valid, [reader]) for reader in range(5)))
        assert score_predictions(predictions.read_predictions(out)).accuracy == told["test"]["accuracy"]
        shown = CliRunner().invoke(app, [*words, "--method", method], catch_exceptions=False).stdout
        assert f"{method} ensemble of {len(members)} of 5 readers" in shown
        assert f"cross-validated (chosen on other questions): {told['cross_validated']:.4f}" in shown
        assert (f"{max(told['weights']):.4f}  {told['members'][0]}" in shown) == (method == "weighted")
    with pytest.raises(InputError, match="name both of each reader"):
        CliRunner().invoke(app, [*words[: 2 + len(valid)], "--test", str(test[0])], catch_exceptions=False)
