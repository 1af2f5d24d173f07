"""What a sweep does with its runs, each trained here; other processes are the matter of test_interruptions."""

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
from asreader.sweep.lock import locked
from asreader.sweep.run_plan import PlannedRun
from asreader.sweep.status import FINISHED, Finished, finished, validations
from asreader.sweep.summary import DONE, FAILED, STOPPED, Report, Row
from asreader.sweep.worker import Trained, Unit
from asreader.training import loop
from tests.sweep.conftest import Sweeper

KEPT = ("weights.safetensors", "state.safetensors", "vocabulary.txt", "predictions/valid.jsonl")


def contents(out: Path) -> dict[str, list[bytes]]:
    """What each run has learnt and said."""
    return {
        run.parent.name: [(run.parent / name).read_bytes() for name in KEPT]
        for run in sorted(out.glob("*/config.toml"))
    }


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that were trained, or gone on with."""
    trained: list[str] = []
    original = loop.train

    def train(settings: Config, folder: Path, *, resume: bool = False) -> Run:
        trained.append(folder.name)
        return original(settings, folder, resume=resume)

    monkeypatch.setattr(loop, "train", train)
    return trained


def test_a_sweep_trains_each_run_as_it_would_be_trained_alone(swept: Sweeper, tmp_path: Path) -> None:
    report = swept(tmp_path / "out", "reader.hidden=4,8", seeds=2)
    assert [row.state for row in report.rows] == [DONE] * 4
    assert [dict(row.run.choice)["reader.hidden"] for row in report.rows] == ["4", "4", "8", "8"]
    for row in report.rows:
        alone = loop.train(row.run.settings, tmp_path / "alone" / row.run.id)
        scored = metrics.score_predictions(predictions.read_predictions(alone.predictions("valid")))
        assert row.accuracy == scored.accuracy
    alike = contents(tmp_path / "alone")
    assert contents(tmp_path / "out") == alike
    assert len(result_table.find_predicted_runs([tmp_path / "out"])) == 4
    for group in report.groups:
        accuracies = [row.accuracy or 0.0 for row in report.rows if row.run.choice == group.choice]
        assert group.mean == statistics.fmean(accuracies)
        assert group.deviation == statistics.stdev(accuracies)
    means = [group.mean or 0.0 for group in report.groups]
    assert means == sorted(means, reverse=True)


def test_what_is_done_is_skipped_and_shared(swept: Sweeper, tmp_path: Path, count: list[str]) -> None:
    first = swept(tmp_path, "reader.hidden=4,8")
    with pytest.raises(InputError, match="--resume"):
        swept(tmp_path, "reader.hidden=4,8")
    again = swept(tmp_path, "reader.hidden=4,8", resume=True)
    assert again.as_json() == first.as_json()
    other = swept(tmp_path, "reader.hidden=8,4,6")  # another sweep, which shares two runs with the first
    assert len(count) == len(set(count)) == 3
    shared = {row.run.id: row.accuracy for row in first.rows}
    assert {row.run.id: row.accuracy for row in other.rows if row.run.id in shared} == shared
    records = [json.loads(path.read_text()) for path in tmp_path.glob("sweep-*.json")]
    assert sorted(len(record["runs"]) for record in records) == [2, 3]


DAMAGES: dict[str, Callable[[Path], object]] = {
    "weights.safetensors": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "config.toml": lambda path: path.write_text("[reader"),
    "vocabulary.txt": lambda path: path.write_text(path.read_text()[:-20]),
    "metrics.jsonl": lambda path: path.unlink(),
    "predictions/valid.jsonl": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "card.md": lambda path: path.unlink(),
    FINISHED: lambda path: path.write_text("{"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whole") / "out"


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_run_is_named_and_repaired_and_no_other_is_touched(
    swept: Sweeper, whole: Path, count: list[str], name: str
) -> None:
    report = swept(whole, "reader.hidden=4,6", resume=True)
    before = contents(whole)
    hurt = report.rows[0].run
    DAMAGES[name](hurt.folder / name)
    count.clear()
    repaired = swept(whole, "reader.hidden=4,6", resume=True)
    assert count == [hurt.id]
    assert contents(whole) == before
    assert repaired.failed == []
    assert name == FINISHED or name in repaired.rows[0].note  # without its voucher a run is only looked at again
    assert repaired.rows[1].note == ""
    assert not list(whole.rglob("*.damaged"))


@pytest.mark.parametrize("name", ["state.safetensors", "weights.safetensors", "vocabulary.txt", "config.toml"])
def test_a_run_that_was_begun_and_is_damaged_begins_anew(
    swept: Sweeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    report = swept(tmp_path / "whole")
    run = report.rows[0].run
    wanted = contents(tmp_path / "whole")
    begun = replace(run, folder=tmp_path / "out" / run.id)
    loop.train(begun.until(1).settings, begun.folder)  # one epoch of two
    hurt = begun.folder / name
    hurt.unlink() if name == "weights.safetensors" else hurt.write_bytes(hurt.read_bytes()[:-9])
    (trained,) = worker.train_unit(Unit((begun,)))
    assert trained.failure == ""
    assert name.split(".")[0] in trained.repaired or "size mismatch" in trained.repaired
    assert contents(tmp_path / "out") == wanted


def test_a_run_that_fails_is_told_and_the_others_are_complete(
    swept: Sweeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Run.save_weights

    def full(self: Run, weights: dict[str, torch.Tensor], about: dict[str, object]) -> None:
        if any(4 in tensor.shape for tensor in weights.values()):
            raise OSError(28, "No space left on device")
        original(self, weights, about)

    monkeypatch.setattr(Run, "save_weights", full)
    report = swept(tmp_path, "reader.hidden=4,6,8")
    assert [row.state for row in report.rows] == [FAILED, DONE, DONE]
    assert "No space left on device" in report.rows[0].note
    assert "No space left on device" in "\n".join(terminal.closing(report))
    monkeypatch.undo()


def test_a_sweep_that_is_stopped_goes_on(
    swept: Sweeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: list[str]
) -> None:
    wanted = swept(tmp_path / "whole", "reader.hidden=4,6,8")
    count.clear()
    monkeypatch.setattr(threading.Event, "is_set", lambda self: len(count) == 2)
    with pytest.raises(ExecutionError, match="--resume"):
        swept(tmp_path / "out", "reader.hidden=4,6,8")
    assert len(count) == 2
    monkeypatch.setattr(threading.Event, "is_set", lambda self: False)
    report = swept(tmp_path / "out", "reader.hidden=4,6,8", resume=True)
    assert len(count) == 3
    assert [row.accuracy for row in report.rows] == [row.accuracy for row in wanted.rows]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.parametrize(("epochs", "expected"), [(1, [1]), (2, [1, 2]), (4, [1, 2, 4]), (20, [1, 2, 4, 8, 16, 20])])
def test_rungs(epochs: int, expected: list[int]) -> None:
    assert successive_halving.rungs(epochs) == expected


def longer(small: Path, tmp_path: Path, epochs: int) -> Path:
    path = tmp_path / "longer.toml"
    path.write_text(small.read_text().replace("epochs = 2", f"epochs = {epochs}"))
    return path


def test_the_worse_half_stops_early_and_the_rest_is_as_without(swept: Sweeper, small: Path, tmp_path: Path) -> None:
    config, axis = longer(small, tmp_path, 4), "train.learning_rate=0.0001,0.001,0.01,0.02,0.04"
    whole = swept(tmp_path / "whole", axis, config=config)
    report = swept(tmp_path / "out", axis, config=config, halving=True)

    alive = list(whole.rows)
    for epochs in (1, 2):  # the slow, obvious way
        reached = {row.run.id: max(v.accuracy for v in validations(row.run) if v.epoch <= epochs) for row in alive}
        order = sorted(alive, key=lambda row: (-reached[row.run.id], whole.rows.index(row)))
        alive = [row for row in alive if row in order[: (len(order) + 1) // 2]]
    survivors = {row.run.id for row in alive}
    assert {row.run.id for row in report.rows if row.state == DONE} == survivors
    assert len(survivors) == 2
    for row in report.rows:
        if row.run.id in survivors:
            assert contents(tmp_path / "out")[row.run.id] == contents(tmp_path / "whole")[row.run.id]
        else:
            assert row.state == STOPPED
            assert row.epochs in (1, 2)
            assert f"after {row.epochs} epochs" in (row.run.folder / "card.md").read_text()
            assert json.loads((row.run.folder / FINISHED).read_text())["stopped_early"]
    again = swept(tmp_path / "out", axis, config=config, halving=True, resume=True)
    assert again.as_json() == report.as_json()
    finishing = swept(tmp_path / "out", axis, config=config)  # without halving, what was stopped goes on to its end
    assert [row.accuracy for row in finishing.rows] == [row.accuracy for row in whole.rows]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    late = swept(tmp_path / "whole", axis, config=config, halving=True)  # nothing is left to be stopped
    assert {row.state for row in late.rows} == {DONE}
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_halving_is_refused_where_a_beginning_is_no_beginning(swept: Sweeper, tmp_path: Path) -> None:
    for axis in ("train.decay=linear", "train.validate_every=3"):
        with pytest.raises(InputError, match="--halving"):
            swept(tmp_path, axis, halving=True)


def told(accuracy: Callable[[PlannedRun], float | None], seen: list[PlannedRun]) -> Callable[[Unit], Sequence[Trained]]:
    """Training that takes no time."""

    def train(unit: Unit) -> tuple[Trained, ...]:
        seen.extend(unit.runs)
        return tuple(
            Trained(run.id, Finished(run.id, 2, 2, reached, {}))
            if (reached := accuracy(run)) is not None
            else Trained(run.id, None, "no memory")
            for run in unit.runs
        )

    return train


def hidden(run: PlannedRun) -> int:
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
    swept: Sweeper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    accuracy: dict[int, float | None],
    sizes: list[int],
) -> None:
    seen: list[PlannedRun] = []
    monkeypatch.setattr(driver, "train_unit", told(lambda run: accuracy[hidden(run)], seen))
    axes = ("reader.hidden=2,4,6", "reader.embedding=3,4")
    report = swept(tmp_path, *axes, seeds=2, growths=(driver.Growth("reader.hidden", 2),))
    assert sorted({hidden(run) for run in seen}) == sizes
    assert len(seen) == len({run.id for run in seen}) == len(report.rows) == 4 * len(sizes)


def test_a_grid_does_not_grow_for_ever(swept: Sweeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[PlannedRun] = []
    monkeypatch.setattr(driver, "train_unit", told(lambda run: hidden(run) / 1000, seen))
    swept(tmp_path, "reader.hidden=1,2", growths=(driver.Growth("reader.hidden", 1),))
    assert max(map(hidden, seen)) == 2 + driver.MOST_RAISES


def test_runs_of_equal_shape_are_packed_together_on_a_gpu(
    swept: Sweeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units: list[Unit] = []

    def train(unit: Unit) -> tuple[Trained, ...]:
        units.append(unit)
        return tuple(Trained(run.id, Finished(run.id, 2, 2, 0.5, {})) for run in unit.runs)

    monkeypatch.setattr(driver, "train_unit", train)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    axes = ("reader.hidden=4,8", "train.learning_rate=0.001,0.002,0.003")
    swept(tmp_path, *axes, seeds=3, gpus=1.0)
    assert [len(unit.runs) for unit in units] == [5, 4, 5, 4]  # nine of each shape, for two GPUs
    for unit in units:
        assert len({hidden(run) for run in unit.runs}) == 1
    units.clear()
    swept(tmp_path, *axes, seeds=8, gpus=1.0)
    assert [len(unit.runs) for unit in units] == [8, 8, 8] * 2
    units.clear()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    swept(tmp_path, *axes, seeds=2, gpus=0.5)
    assert [len(unit.runs) for unit in units] == [6, 6]  # two workers share the GPU: a shape for each


def test_one_that_cannot_be_trained_with_others_costs_itself_alone(
    swept: Sweeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = swept(tmp_path / "whole", seeds=4)
    wanted = contents(tmp_path / "whole")
    runs = [replace(row.run, folder=tmp_path / "out" / row.run.id) for row in report.rows]
    groups: list[list[int]] = []

    def train_together(settings: Sequence[Config], folders: Sequence[Path], *, resume: bool) -> None:
        """Memory for two readers, of which the third of all never fits."""
        groups.append([own.train.seed for own in settings])
        if len(settings) > 2 or any(own.train.seed == 3 for own in settings):
            raise RuntimeError("CUDA out of memory")
        for own, folder in zip(settings, folders, strict=True):
            loop.train(own, folder, resume=resume)

    monkeypatch.setattr(worker, "train_together", train_together)
    monkeypatch.setattr(worker, "pick_device", lambda name: torch.device("cuda"))
    trained = worker.train_unit(Unit(tuple(runs)))
    assert groups == [[1, 2, 3, 4], [1, 2], [3, 4], [3], [4]]
    assert [bool(one.failure) for one in trained] == [False, False, True, False]
    assert "CUDA out of memory" in trained[2].failure
    found = contents(tmp_path / "out")
    assert found == {run.id: wanted[run.id] for run in runs if run.seed != 3}


def test_runs_trained_side_by_side_are_runs_of_the_sweep(
    swept: Sweeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = swept(tmp_path / "whole", "train.learning_rate=0.01,0.02", seeds=2)
    runs = [replace(row.run, folder=tmp_path / "out" / row.run.id) for row in report.rows]
    monkeypatch.setattr(worker, "pick_device", lambda name: torch.device("cuda"))
    begun, *_ = runs
    worker.train_unit(Unit((begun.until(1),)))  # one of them was begun before
    trained = worker.train_unit(Unit(tuple(runs)))
    assert [one.failure or one.repaired for one in trained] == [""] * 4
    for run in runs:
        alone, together = (
            predictions.read_predictions(out / run.id / "predictions" / "valid.jsonl")
            for out in (report.out, tmp_path / "out")
        )
        for one, other in zip(alone, together, strict=True):
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-3)
        assert finished(run) is not None


def test_two_that_want_the_same_take_turns(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with locked(tmp_path, "run"):
            order.append("second")

    with locked(tmp_path, "run"):
        waiting = threading.Thread(target=second)
        waiting.start()
        time.sleep(0.1)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def shown(thing: object) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(thing)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_tables_say_what_became_of_the_runs(swept: Sweeper, tmp_path: Path) -> None:
    report = swept(tmp_path, "reader.hidden=4,6", seeds=2)
    first, second, third, fourth = report.rows
    rows = (
        first,
        replace(second, state=STOPPED),
        Row(third.run, FAILED, note="the loss is not a number"),
        Row(fourth.run),
    )
    mixed = Report(tmp_path, rows)
    text = shown(terminal.table(mixed))
    assert f"{first.accuracy:.4f}  {second.accuracy:.4f}*" in text
    assert "failed  waiting" in text
    assert "the loss is not a number" in "\n".join(terminal.closing(mixed))
    live = terminal.Board()
    live.stage(mixed, 3)
    live.news(mixed, rows[0])
    text = shown(live._table())
    assert "sweep of 4 runs: 1 done, 1 stopped early, 1 failed, 0 running; 2 to go" in text
    assert finished(first.run) is not None


def test_the_command_prints_one_document_and_says_by_its_code_whether_a_run_failed(
    swept: Sweeper, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(*more: str) -> tuple[int, dict[str, object]]:
        words = ["sweep", str(small), "--grid", "reader.hidden=4,6", "--out", str(tmp_path), "--json", *more]
        done = CliRunner().invoke(app, words)
        return done.exit_code, json.loads(done.stdout)

    seen: list[PlannedRun] = []
    monkeypatch.setattr(driver, "train_unit", told(lambda run: 0.5 if hidden(run) == 4 else None, seen))
    code, document = command()
    assert code == 1
    assert document["failed"] == 1
    assert document["best"] == seen[0].id
    assert [run["settings"] for run in document["runs"]] == [{"reader.hidden": 4}, {"reader.hidden": 6}]  # type: ignore[attr-defined]
    monkeypatch.setattr(driver, "train_unit", told(lambda run: 0.5, seen))
    code, document = command("--resume")
    assert code == 0
    assert document["failed"] == 0
    for wrong in ("--executor=rai", "--grid=reader.hiden=3", "--grow=reader.embedding=2", "--gpus=2"):
        refused = CliRunner().invoke(app, ["sweep", str(small), "--out", str(tmp_path / "new"), wrong])
        assert refused.exit_code
        assert isinstance(refused.exception, InputError | SystemExit)
