"""Benchmarks compare equal computations and record the machine; the documents show the recorded rows."""

from __future__ import annotations

import importlib
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from asreader import readers
from asreader.batches.host import Batcher
from asreader.benchmark.plain_reader import PlainDataset, PlainReader, PlainTraining, answer_all
from asreader.benchmark.synthetic_data import (
    CANDIDATE_COUNT,
    QUESTION_WORDS,
    SINGLE_DOCUMENT_WORDS,
    SyntheticData,
    make_synthetic_data,
)
from asreader.benchmark.timing import Contender, Times, describe_device, time_alternately
from asreader.cli import app
from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl
from asreader.inference.reader import Reader
from asreader.ops.gru import cpu
from asreader.runs.folder import describe_commit

ROOT = Path(__file__).parent.parent
CPU = torch.device("cpu")
PARTS = {"embed": "embed", "document_encoder.layers.0": "document", "question_encoder.layers.0": "question"}


@pytest.fixture(scope="module")
def data() -> SyntheticData:
    return make_synthetic_data(12, seed=3, words=400)


def build_pair(data: SyntheticData) -> tuple[torch.nn.Module, PlainReader]:
    """Our reader and the plain one with the same weights, large enough to make words differ."""
    torch.manual_seed(2)
    ours = readers.build("attention_sum", data.vocabulary.size, {"embedding": 7, "hidden": 6})
    for parameter in ours.parameters():
        torch.nn.init.uniform_(parameter, -0.6, 0.6)
    plain = PlainReader(data.vocabulary.size, 7, 6)
    plain.load_state_dict(_rename_weights(ours.state_dict()))
    return ours, plain


def _rename_weights(named: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {
        f"{PARTS[prefix]}.{name.removeprefix(prefix + '.')}": tensor
        for name, tensor in named.items()
        for prefix in PARTS
        if name.startswith(prefix + ".")
    }


def test_probabilities_and_gradients_equal_those_of_the_plain_reader(data: SyntheticData) -> None:
    ours, plain = build_pair(data)
    numbers = np.arange(len(data.store))
    batch = Batcher(data.store, data.vocabulary).make_batch(numbers)
    reading = ours.answer(ours.read(batch.document), batch)  # type: ignore[operator]
    plain_batch = PlainDataset(data.store, data.vocabulary, CPU).make_batch(numbers)
    log_probabilities = plain(plain_batch)
    torch.testing.assert_close(reading.log_probabilities, log_probabilities, rtol=1e-5, atol=1e-5)
    assert torch.equal(batch.answers, plain_batch.answers)
    reading.compute_losses(batch.answers).mean.backward()
    torch.nn.functional.nll_loss(log_probabilities, plain_batch.answers).backward()
    gradients = _rename_weights({name: parameter.grad for name, parameter in ours.named_parameters()})  # type: ignore[misc]
    for name, parameter in plain.named_parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().max() > 0
        torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-4, atol=1e-6)


def test_both_readers_give_the_same_answers(data: SyntheticData) -> None:
    ours, plain = build_pair(data)
    predictions = Reader(ours.eval(), data.vocabulary).evaluate(data.store).predictions
    answers = answer_all(plain.eval(), PlainDataset(data.store, data.vocabulary, CPU), 5)
    assert [prediction.best for prediction in predictions] == answers


def test_the_plain_reader_learns(data: SyntheticData) -> None:
    training = PlainTraining(build_pair(data)[1], PlainDataset(data.store, data.vocabulary, CPU), torch.float32)
    losses = [float(training.take_step(range(12))) for _ in range(8)]
    assert losses[-1] < losses[0]


def test_synthetic_data_has_the_shape_of_the_childrens_book_test() -> None:
    data = make_synthetic_data(200)
    assert abs(data.store.lengths.mean() - 433) < 30
    assert abs(np.mean([len(data.store.questions[n]) for n in range(200)]) - 28) < 4
    assert data.store.answerable.all()
    assert (data.vocabulary.rows(data.store.lexicon) > 0).all()
    assert len(data.single_example.words) == SINGLE_DOCUMENT_WORDS
    assert (len(data.single_example.question), len(data.single_example.candidates)) == (QUESTION_WORDS, CANDIDATE_COUNT)
    distinct = len({word for number in range(64) for word in data.store.decode_example(number).words})
    assert distinct / data.store.lengths[:64].sum() > 0.106  # the fraction in batches of 64 official questions


def test_rounds_alternate_and_the_ratio_is_of_medians() -> None:
    calls: list[str] = []
    ours, plain = Contender(lambda: calls.append("ours"), 1), Contender(lambda: calls.append("plain"), 1)
    times = time_alternately(ours, plain, CPU, seconds=10.0, max_rounds=3)
    assert calls == ["ours", "plain"] * 3
    assert len(times.ours) == len(times.plain) == 3
    assert Times((1.0, 2.0, 9.0), (4.0, 5.0, 6.0)).ratio == 2.5


@pytest.mark.parametrize("benchmark", ["train", "answer"])
def test_a_row_has_the_fixed_fields(benchmark: str, tmp_path: Path) -> None:
    appended = tmp_path / "rows.jsonl"
    options = ["--seconds", "0", "--hidden", "4", "--embedding", "4", "--device", "cpu", "--append", str(appended)]
    done = CliRunner().invoke(app, ["benchmark", benchmark, "--json", *options], catch_exceptions=False)
    assert done.exit_code == 0
    row = json.loads(done.stdout)
    assert row["benchmark"] == benchmark
    assert row["device"] == describe_device(CPU)
    assert row["commit"] == describe_commit()
    assert row["ratio"] > 0
    assert [json.loads(line) for line in appended.read_text().splitlines()] == [row]


def rows() -> list[dict[str, object]]:
    kept = ROOT / "benchmarks" / "results" / "benchmark.jsonl"
    return [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]


def test_the_tables_of_performance_are_the_recorded_ones() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    shown = [row for row in rows() if "CPU" in str(row["device"])]
    assert {row["benchmark"] for row in shown} == {"train", "answer"}
    newest = {(row["benchmark"], row["hidden"]): row for row in shown}
    for row in newest.values():
        end = f"**{row['ratio']}** | {row['device']} | {row['commit']} | {row['date']} |"
        if row["benchmark"] == "train":
            figures = (
                f"{1000 * float(str(row['seconds_per_question'])):.3g} ms | "
                f"{1000 * float(str(row['yardstick_seconds_per_question'])):.3g} ms"
            )
            assert f"| {row['hidden']} | {row['batch']} | {figures} | {end}" in text
        else:
            figures = f"{row['questions_per_second']} | {row['yardstick_questions_per_second']}"
            single = f"{row['single_milliseconds']} ms ({row['yardstick_single_milliseconds']} ms)"
            assert f"| {row['hidden']} | {figures} | {single} | {row['further_milliseconds']} ms | {end}" in text


def test_questions_per_second_of_the_validation_path(tmp_path: Path) -> None:
    data = tmp_path / "questions.jsonl"
    data.write_text("".join(map(jsonl.format_example, generate_stories(40, 1))), encoding="utf-8")
    command = [sys.executable, "benchmarks/checks.py", str(data), "--size", "8", "--repeats", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    row = json.loads(done.stdout)
    assert row["questions"] == 40 and row["per_second"] > 0


def run_together(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """A tiny measurement on a CPU."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    together = importlib.import_module("together")
    small = together.DataShape(64, 12, 3, 5, 20, 300, 8, hidden=8, question=4)
    monkeypatch.setitem(together.SHAPES, "tiny", small)
    arguments = "--engine stacked --shape tiny --readers 2 --steps 4 --repeats 1 --precision float32 --no-graphs"
    monkeypatch.setattr(sys, "argv", ["together.py", *arguments.split()])
    together.main()
    row: dict[str, Any] = json.loads(capsys.readouterr().out)
    return row


def test_the_speed_benchmark_checks_what_it_times(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = run_together(monkeypatch, capsys)
    assert row["ms_per_step"] > 0 and row["loss"] > 0 and row["worst_difference"] < 1e-4


def test_the_speed_benchmark_fails_if_a_step_learns_nonsense(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = cpu.backward

    def flip_gradients(*arguments: Any) -> Any:
        out, sums = original(*arguments)
        return -50 * out, sums

    monkeypatch.setattr(cpu, "backward", flip_gradients)
    with pytest.raises(SystemExit, match="losses differ from the reference"):
        run_together(monkeypatch, capsys)


def gpu_rows(benchmark: str) -> list[dict[str, Any]]:
    lines = (ROOT / "benchmarks" / "results" / "together.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["benchmark"] == benchmark]


def read_document(name: str) -> str:
    """A document of docs/ with its line breaks as spaces."""
    return " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())


def test_the_gpu_tables_are_the_recorded_ones() -> None:
    text = read_document("performance.md")
    newest = {(row["shape"], row["readers"]): row for row in gpu_rows("together")}
    for row in newest.values():
        figures = f"{row['ms_per_step']:.2f} | {row['seconds_per_reader_and_epoch']:.2f}"
        assert f"| {figures} | {row['peak_GB']:.2f} GB | {row['reserved_GB']:.2f} GB | {row['commit']} |" in text
    for row in gpu_rows("answering")[-2:]:
        figures = f"{row['questions_per_second']:,} | {row['in_batches_of_2048']:,} | {row['commit']}"
        assert f" | {figures} |" in text
    (plain,) = gpu_rows("plain-epoch")
    for document in (text, read_document("notebook/gpu.md")):
        assert f"{plain['ms_per_step']} ms per step" in document
        for count, words in ((1, "One reader is {:.0f} times as fast"), (16, "sixteen together are {:.0f} times")):
            factor = plain["ms_per_step"] / newest["ne", count]["ms_per_step"] * count
            assert words.format(factor) in document


def test_the_accuracies_of_gpu_training_are_the_recorded_ones() -> None:
    text = read_document("notebook/gpu.md")
    trained, whole = gpu_rows("accuracy")[-1], gpu_rows("accuracy-one-epoch")[-1]
    after_two = [accuracies[-1] for accuracies in trained["accuracies"]]
    for row, epochs, accuracies in ((whole, 1, whole["accuracies"]), (trained, 2, after_two)):
        figures = f"{statistics.mean(accuracies):.4f} | {statistics.stdev(accuracies):.4f}"
        assert f"| {row['commit']} | {epochs} | {figures} |" in text
    assert f"took {trained['seconds']} s" in text
    (together,) = gpu_rows("together-training")
    assert f"took {together['seconds']} s" in text
    for benchmark, name in (
        ("accuracy-plain", "plain, seeds 1 to 4"),
        ("accuracy-beside-plain", "trained together, seeds 1 to 8"),
    ):
        row = gpu_rows(benchmark)[-1]
        columns = [*zip(*row["accuracies"], strict=True)]
        shown = [statistics.mean(column) for column in columns] + [statistics.stdev(columns[-1])]
        assert f"| {name} | " + " | ".join(f"{accuracy:.4f}" for accuracy in shown) + " |" in text
        assert f"({row['commit']})" in text
        assert f"{statistics.mean(columns[-1]):.4f}" in read_document("performance.md")


def test_the_float32_differences_are_the_recorded_ones() -> None:
    text = read_document("notebook/gpu.md")
    exact = gpu_rows("float32")[-1]
    for key in ("greatest_differences", "nn_GRU_from_itself_nudged"):
        shown = [np.format_float_positional(value, precision=2, fractional=False) for value in exact[key]]
        assert f"| {' | '.join(shown)} |" in text
    assert f"`benchmarks/checks.py`, {exact['commit']})" in text
