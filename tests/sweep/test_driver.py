"""A sweep with its runs trained in this process; test_interruptions has those in other processes."""

from __future__ import annotations

import io
import json
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from asreader.cli import app
from asreader.errors import ExecutionError, InputError
from asreader.evaluation import metrics, predictions, result_table
from asreader.runs.folder import Run
from asreader.settings import Config
from asreader.sweep import driver, successive_halving, terminal, worker
from asreader.sweep.lock import hold_lock
from asreader.sweep.run_plan import PlannedRun
from asreader.sweep.search_space import MAX_RAISES, GridGrowth
from asreader.sweep.status import FINISHED_FILE, FinishedRun, check_finished, read_validations
from asreader.sweep.summary import DONE, FAILED, STOPPED, SweepReport, SweepRow
from asreader.sweep.worker import TrainedRun, WorkItem
from asreader.training import loop
from tests.sweep.conftest import SweepFunction

COMPARED_FILES = ("weights.safetensors", "state.safetensors", "vocabulary.txt", "predictions/valid.jsonl")


def read_contents(out: Path) -> dict[str, list[bytes]]:
    """Run id -> the bytes of its weights, state, vocabulary and predictions."""
    return {
        run.parent.name: [(run.parent / name).read_bytes() for name in COMPARED_FILES]
        for run in sorted(out.glob("*/config.toml"))
    }


@pytest.fixture
def trained_ids(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the runs that were trained or resumed."""
    trained: list[str] = []
    original = loop.train_run

    def train_run(settings: Config, folder: Path, *, resume: bool = False) -> Run:
        trained.append(folder.name)
        return original(settings, folder, resume=resume)

    monkeypatch.setattr(loop, "train_run", train_run)
    return trained


def test_a_sweep_trains_each_run_as_if_alone(sweep_small: SweepFunction, tmp_path: Path) -> None:
    report = sweep_small(tmp_path / "out", "reader.hidden=4,8", seeds=2)
    assert [row.state for row in report.rows] == [DONE] * 4
    assert [dict(row.run.combination)["reader.hidden"] for row in report.rows] == ["4", "4", "8", "8"]
    for row in report.rows:
        alone = loop.train_run(row.run.settings, tmp_path / "alone" / row.run.id)
        scored = metrics.score_predictions(predictions.read_predictions(alone.predictions("valid")))
        assert row.accuracy == scored.accuracy
    assert read_contents(tmp_path / "out") == read_contents(tmp_path / "alone")
    assert len(result_table.find_predicted_runs([tmp_path / "out"])) == 4
    for group in report.groups:
        accuracies = [row.accuracy or 0.0 for row in report.rows if row.run.combination == group.combination]
        assert group.mean == statistics.fmean(accuracies)
        assert group.deviation == statistics.stdev(accuracies)
    means = [group.mean or 0.0 for group in report.groups]
    assert means == sorted(means, reverse=True)


def test_finished_runs_are_skipped_and_shared_between_sweeps(
    sweep_small: SweepFunction, tmp_path: Path, trained_ids: list[str]
) -> None:
    first = sweep_small(tmp_path, "reader.hidden=4,8")
    with pytest.raises(InputError, match="--resume"):
        sweep_small(tmp_path, "reader.hidden=4,8")
    again = sweep_small(tmp_path, "reader.hidden=4,8", resume=True)
    assert again.as_json() == first.as_json()
    other = sweep_small(tmp_path, "reader.hidden=8,4,6")  # another sweep, which shares two runs with the first
    assert len(trained_ids) == len(set(trained_ids)) == 3
    shared = {row.run.id: row.accuracy for row in first.rows}
    assert {row.run.id: row.accuracy for row in other.rows if row.run.id in shared} == shared
    records = [json.loads(path.read_text()) for path in tmp_path.glob("sweep-*.json")]
    assert sorted(len(record["runs"]) for record in records) == [2, 3]


DAMAGE: dict[str, Callable[[Path], object]] = {
    "weights.safetensors": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "config.toml": lambda path: path.write_text("[reader"),
    "vocabulary.txt": lambda path: path.write_text(path.read_text()[:-20]),
    "metrics.jsonl": lambda path: path.unlink(),
    "predictions/valid.jsonl": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "card.md": lambda path: path.unlink(),
    FINISHED_FILE: lambda path: path.write_text("{"),
}


@pytest.fixture(scope="module")
def whole_sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whole") / "out"


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_run_is_reported_and_repaired_and_no_other_changes(
    sweep_small: SweepFunction, whole_sweep: Path, trained_ids: list[str], name: str
) -> None:
    report = sweep_small(whole_sweep, "reader.hidden=4,6", resume=True)
    before = read_contents(whole_sweep)
    damaged = report.rows[0].run
    DAMAGE[name](damaged.folder / name)
    trained_ids.clear()
    repaired = sweep_small(whole_sweep, "reader.hidden=4,6", resume=True)
    assert trained_ids == [damaged.id]
    assert read_contents(whole_sweep) == before
    assert repaired.failed == []
    assert name == FINISHED_FILE or name in repaired.rows[0].note  # without finished.json a run is only checked again
    assert repaired.rows[1].note == ""
    assert not list(whole_sweep.rglob("*.damaged"))


@pytest.mark.parametrize("name", ["state.safetensors", "weights.safetensors", "vocabulary.txt", "config.toml"])
def test_a_damaged_unfinished_run_starts_again(
    sweep_small: SweepFunction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    report = sweep_small(tmp_path / "whole")
    run = report.rows[0].run
    expected = read_contents(tmp_path / "whole")
    unfinished = replace(run, folder=tmp_path / "out" / run.id)
    loop.train_run(unfinished.limit_epochs(1).settings, unfinished.folder)  # one epoch of two
    damaged = unfinished.folder / name
    if name == "weights.safetensors":
        damaged.unlink()
    else:
        damaged.write_bytes(damaged.read_bytes()[:-9])
    (trained,) = worker.train_work_item(WorkItem((unfinished,)))
    assert trained.failure == ""
    assert name.split(".")[0] in trained.repaired or "size mismatch" in trained.repaired
    assert read_contents(tmp_path / "out") == expected


def test_a_failed_run_is_reported_and_the_others_finish(
    sweep_small: SweepFunction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Run.save_weights

    def save_weights(self: Run, weights: dict[str, torch.Tensor], about: dict[str, object]) -> None:
        if any(4 in tensor.shape for tensor in weights.values()):
            raise OSError(28, "No space left on device")
        original(self, weights, about)

    monkeypatch.setattr(Run, "save_weights", save_weights)
    report = sweep_small(tmp_path, "reader.hidden=4,6,8")
    assert [row.state for row in report.rows] == [FAILED, DONE, DONE]
    assert "No space left on device" in report.rows[0].note
    assert "No space left on device" in "\n".join(terminal.format_closing_lines(report))
    monkeypatch.undo()


def test_a_stopped_sweep_can_be_resumed(
    sweep_small: SweepFunction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained_ids: list[str]
) -> None:
    expected = sweep_small(tmp_path / "whole", "reader.hidden=4,6,8")
    trained_ids.clear()
    monkeypatch.setattr(threading.Event, "is_set", lambda self: len(trained_ids) == 2)
    with pytest.raises(ExecutionError, match="--resume"):
        sweep_small(tmp_path / "out", "reader.hidden=4,6,8")
    assert len(trained_ids) == 2
    monkeypatch.setattr(threading.Event, "is_set", lambda self: False)
    report = sweep_small(tmp_path / "out", "reader.hidden=4,6,8", resume=True)
    assert len(trained_ids) == 3
    assert [row.accuracy for row in report.rows] == [row.accuracy for row in expected.rows]
    assert read_contents(tmp_path / "out") == read_contents(tmp_path / "whole")


@pytest.mark.parametrize(("epochs", "expected"), [(1, [1]), (2, [1, 2]), (4, [1, 2, 4]), (20, [1, 2, 4, 8, 16, 20])])
def test_rungs_double_up_to_the_last_epoch(epochs: int, expected: list[int]) -> None:
    assert successive_halving.compute_rungs(epochs) == expected


def write_longer_settings(small: Path, tmp_path: Path, epochs: int) -> Path:
    path = tmp_path / "longer.toml"
    path.write_text(small.read_text().replace("epochs = 2", f"epochs = {epochs}"))
    return path


def test_halving_stops_the_worse_half_and_leaves_the_others_unchanged(
    sweep_small: SweepFunction, small: Path, tmp_path: Path
) -> None:
    config, axis = write_longer_settings(small, tmp_path, 4), "train.learning_rate=0.0001,0.001,0.01,0.02,0.04"
    whole = sweep_small(tmp_path / "whole", axis, config=config)
    report = sweep_small(tmp_path / "out", axis, config=config, halving=True)

    alive = list(whole.rows)
    for epochs in (1, 2):  # the slow computation
        best = {row.run.id: max(v.accuracy for v in read_validations(row.run) if v.epoch <= epochs) for row in alive}
        ranked = sorted(alive, key=lambda row: (-best[row.run.id], whole.rows.index(row)))
        alive = [row for row in alive if row in ranked[: (len(ranked) + 1) // 2]]
    survivors = {row.run.id for row in alive}
    assert {row.run.id for row in report.rows if row.state == DONE} == survivors
    assert len(survivors) == 2
    for row in report.rows:
        if row.run.id in survivors:
            assert read_contents(tmp_path / "out")[row.run.id] == read_contents(tmp_path / "whole")[row.run.id]
        else:
            assert row.state == STOPPED
            assert row.epochs in (1, 2)
            assert f"after {row.epochs} epochs" in (row.run.folder / "card.md").read_text()
            assert json.loads((row.run.folder / FINISHED_FILE).read_text())["stopped_early"]
    again = sweep_small(tmp_path / "out", axis, config=config, halving=True, resume=True)
    assert again.as_json() == report.as_json()
    finishing = sweep_small(
        tmp_path / "out", axis, config=config
    )  # without halving, stopped runs continue to their ends
    assert [row.accuracy for row in finishing.rows] == [row.accuracy for row in whole.rows]
    assert read_contents(tmp_path / "out") == read_contents(tmp_path / "whole")
    late = sweep_small(tmp_path / "whole", axis, config=config, halving=True)  # no run is left to stop
    assert {row.state for row in late.rows} == {DONE}
    assert read_contents(tmp_path / "out") == read_contents(tmp_path / "whole")


def test_halving_refuses_settings_that_depend_on_the_number_of_epochs(
    sweep_small: SweepFunction, tmp_path: Path
) -> None:
    for axis in ("train.decay=linear", "train.validate_every=3"):
        with pytest.raises(InputError, match="--halving"):
            sweep_small(tmp_path, axis, halving=True)


def fake_training(
    accuracy: Callable[[PlannedRun], float | None], seen: list[PlannedRun]
) -> Callable[[WorkItem], Sequence[TrainedRun]]:
    """A replacement for `train_work_item` that returns these accuracies; None is a failure."""

    def train(item: WorkItem) -> tuple[TrainedRun, ...]:
        seen.extend(item.runs)
        return tuple(
            TrainedRun(run.id, FinishedRun(run.id, 2, 2, value, {}))
            if (value := accuracy(run)) is not None
            else TrainedRun(run.id, None, "no memory")
            for run in item.runs
        )

    return train


def hidden_size(run: PlannedRun) -> int:
    return int(run.settings.reader_options["hidden"])


@pytest.mark.parametrize(
    ("accuracy", "sizes"),
    [
        ({2: 0.5, 4: 0.6, 6: 0.4, 8: 0.3}, [2, 4, 6, 8]),
        ({2: 0.5, 4: 0.4, 6: 0.3}, [2, 4, 6]),
        ({2: 0.5, 4: 0.6, 6: 0.7, 8: None}, [2, 4, 6, 8]),
        ({2: 0.5, 4: 0.6, 6: 0.5, 8: 0.7, 10: 0.7, 12: 0.7}, [2, 4, 6, 8, 10, 12]),
    ],
)
def test_a_grid_grows_while_accuracy_does_not_fall_consistently(
    sweep_small: SweepFunction,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    accuracy: dict[int, float | None],
    sizes: list[int],
) -> None:
    seen: list[PlannedRun] = []
    monkeypatch.setattr(driver, "train_work_item", fake_training(lambda run: accuracy[hidden_size(run)], seen))
    axes = ("reader.hidden=2,4,6", "reader.embedding=3,4")
    report = sweep_small(tmp_path, *axes, seeds=2, growths=(GridGrowth("reader.hidden", 2),))
    assert sorted({hidden_size(run) for run in seen}) == sizes
    assert len(seen) == len({run.id for run in seen}) == len(report.rows) == 4 * len(sizes)


def test_a_grid_does_not_grow_for_ever(
    sweep_small: SweepFunction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[PlannedRun] = []
    monkeypatch.setattr(driver, "train_work_item", fake_training(lambda run: hidden_size(run) / 1000, seen))
    sweep_small(tmp_path, "reader.hidden=1,2", growths=(GridGrowth("reader.hidden", 1),))
    assert max(map(hidden_size, seen)) == 2 + MAX_RAISES


def test_runs_of_equal_shape_are_packed_together_on_a_gpu(
    sweep_small: SweepFunction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items: list[WorkItem] = []

    def train(item: WorkItem) -> tuple[TrainedRun, ...]:
        items.append(item)
        return tuple(TrainedRun(run.id, FinishedRun(run.id, 2, 2, 0.5, {})) for run in item.runs)

    monkeypatch.setattr(driver, "train_work_item", train)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    axes = ("reader.hidden=4,8", "train.learning_rate=0.001,0.002,0.003")
    sweep_small(tmp_path, *axes, seeds=3, gpus=1.0)
    assert [len(item.runs) for item in items] == [5, 4, 5, 4]  # nine of each shape, for two GPUs
    for item in items:
        assert len({hidden_size(run) for run in item.runs}) == 1
    items.clear()
    sweep_small(tmp_path, *axes, seeds=8, gpus=1.0)
    assert [len(item.runs) for item in items] == [8, 8, 8] * 2
    items.clear()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    sweep_small(tmp_path, *axes, seeds=2, gpus=0.5)
    assert [len(item.runs) for item in items] == [6, 6]  # two workers share the GPU: one shape each


def test_a_run_that_cannot_be_trained_with_others_fails_alone(
    sweep_small: SweepFunction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = sweep_small(tmp_path / "whole", seeds=4)
    expected = read_contents(tmp_path / "whole")
    runs = [replace(row.run, folder=tmp_path / "out" / row.run.id) for row in report.rows]
    groups: list[list[int]] = []
    original = loop.train_runs

    def train_runs(settings: Sequence[Config], folders: Sequence[Path], *, resume: bool) -> None:
        """Memory for two readers; the one with seed 3 never fits."""
        groups.append([one.train.seed for one in settings])
        if len(settings) > 2 or any(one.train.seed == 3 for one in settings):
            raise RuntimeError("CUDA out of memory")
        for one, folder in zip(settings, folders, strict=True):
            original([one], [folder], resume=resume)

    monkeypatch.setattr(loop, "train_runs", train_runs)
    monkeypatch.setattr(worker, "pick_device", lambda name: torch.device("cuda"))
    trained = worker.train_work_item(WorkItem(tuple(runs)))
    assert groups == [[1, 2, 3, 4], [1, 2], [3, 4], [3], [4]]
    assert [bool(one.failure) for one in trained] == [False, False, True, False]
    assert "CUDA out of memory" in trained[2].failure
    assert read_contents(tmp_path / "out") == {run.id: expected[run.id] for run in runs if run.seed != 3}


def test_runs_trained_together_equal_runs_trained_alone(
    sweep_small: SweepFunction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = sweep_small(tmp_path / "whole", "train.learning_rate=0.01,0.02", seeds=2)
    runs = []
    for planned in (row.run for row in report.rows):
        stacked = replace(planned.settings, train=replace(planned.settings.train, engine="stacked"))
        runs.append(replace(planned, folder=tmp_path / "out" / planned.id, settings=stacked))
    monkeypatch.setattr(worker, "pick_device", lambda name: torch.device("cuda"))
    worker.train_work_item(WorkItem((runs[0].limit_epochs(1),)))  # one of them was started before
    trained = worker.train_work_item(WorkItem(tuple(runs)))
    assert [one.failure or one.repaired for one in trained] == [""] * 4
    for run in runs:
        alone, together = (
            predictions.read_predictions(out / run.id / "predictions" / "valid.jsonl")
            for out in (report.out, tmp_path / "out")
        )
        for one, other in zip(alone, together, strict=True):
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-3)
        assert check_finished(run) is not None


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with hold_lock(tmp_path, "run"):
            order.append("second")

    with hold_lock(tmp_path, "run"):
        waiting = threading.Thread(target=second)
        waiting.start()
        time.sleep(0.1)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def print_to_text(thing: object) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(thing)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_tables_show_the_state_of_every_run(sweep_small: SweepFunction, tmp_path: Path) -> None:
    report = sweep_small(tmp_path, "reader.hidden=4,6", seeds=2)
    first, second, third, fourth = report.rows
    rows = (
        first,
        replace(second, state=STOPPED),
        SweepRow(third.run, FAILED, note="the loss is not a number"),
        SweepRow(fourth.run),
    )
    mixed = SweepReport(tmp_path, rows)
    text = print_to_text(terminal.build_sweep_table(mixed))
    assert f"{first.accuracy:.4f}  {second.accuracy:.4f}*" in text
    assert "failed  waiting" in text
    assert "the loss is not a number" in "\n".join(terminal.format_closing_lines(mixed))
    live = terminal.SweepTerminal()
    live.start_stage(mixed, 3)
    live.report_run(mixed, rows[0])
    text = print_to_text(live._render_table())
    assert "sweep of 4 runs: 1 done, 1 stopped early, 1 failed, 0 running; 2 to go" in text
    assert check_finished(first.run) is not None


def test_the_command_prints_one_document_and_exits_with_1_if_a_run_failed(
    sweep_small: SweepFunction, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_command(*more: str) -> tuple[int, dict[str, object]]:
        words = ["sweep", str(small), "--grid", "reader.hidden=4,6", "--out", str(tmp_path), "--json", *more]
        done = CliRunner().invoke(app, words)
        return done.exit_code, json.loads(done.stdout)

    seen: list[PlannedRun] = []
    monkeypatch.setattr(
        driver, "train_work_item", fake_training(lambda run: 0.5 if hidden_size(run) == 4 else None, seen)
    )
    code, document = run_command()
    assert code == 1
    assert document["failed"] == 1
    assert document["best"] == seen[0].id
    assert [run["settings"] for run in document["runs"]] == [{"reader.hidden": 4}, {"reader.hidden": 6}]  # type: ignore[attr-defined]
    monkeypatch.setattr(driver, "train_work_item", fake_training(lambda run: 0.5, seen))
    code, document = run_command("--resume")
    assert code == 0
    assert document["failed"] == 0
    for wrong in ("--executor=rai", "--grid=reader.hiden=3", "--grow=reader.embedding=2", "--gpus=2"):
        refused = CliRunner().invoke(app, ["sweep", str(small), "--out", str(tmp_path / "new"), wrong])
        assert refused.exit_code
        assert isinstance(refused.exception, InputError | SystemExit)
