"""Reports: sections, missing files, hostile text, learning curves and training commands."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asreader import baselines, readers
from asreader.cloze.stories.generator import generate_stories
from asreader.data.example import GAP, Example
from asreader.data.formats import jsonl
from asreader.data.statistics import compute_statistics
from asreader.data.store import encode_examples
from asreader.data.vocabulary import build_vocabulary
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.inference.reader import Reader
from asreader.pages import report_page, run_records
from asreader.pages.run_records import RunRecord
from asreader.pages.sections import learning_curves
from asreader.runs.folder import Run
from asreader.runs.metrics_log import MetricsRow
from asreader.settings import Config, DataSettings, TrainSettings, parse_settings

EXAMPLES = list(generate_stories(40, seed=4))
HOSTILE = "<script>alert(1)</script>"
SECTIONS = (
    "Results",
    "Learning curves",
    "Settings",
    "Data",
    "Figures",
    "Examples",
    "Environment",
    "How to make it again",
)


def write_run(folder: Path, data: Path, examples: list[Example] = EXAMPLES, seed: int = 1, hidden: int = 4) -> Run:
    """A run folder as training writes it, with random weights."""
    vocabulary = build_vocabulary(encode_examples(examples).count_words(), min_count=1, unknown=10)
    options = {"embedding": 4, "hidden": hidden}
    settings = Config(
        DataSettings(train=str(data), valid=str(data), unknown=10),
        {"name": "attention_sum", **options},
        TrainSettings(seed=seed, epochs=2),
    )
    run = Run(folder)
    run.create(settings, vocabulary)
    torch.manual_seed(seed)
    network = readers.build("attention_sum", vocabulary.size, options)
    for parameter in network.parameters():
        parameter.data *= 3
    run.save_weights(network.state_dict(), {})
    evaluation = Reader(network, vocabulary).evaluate(encode_examples(examples))
    predictions.write_predictions(run.predictions("valid"), evaluation.predictions)
    rows = [{"step": step, "epoch": 0, "kind": "train", "loss": 3 / step} for step in range(1, 11)]
    rows += [{"step": 5 * n, "epoch": n, "kind": "valid", "loss": 1 / n, "accuracy": n / 10} for n in (1, 2)]
    run.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step": 11, "ki')
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "stories.jsonl").write_text("".join(map(jsonl.format_example, EXAMPLES)))
    write_run(folder / "one", folder / "stories.jsonl")
    for seed in (1, 2, 3):
        write_run(folder / "many" / f"seed-{seed}", folder / "stories.jsonl", seed=seed)
    return folder


@pytest.fixture(scope="module")
def single_report(folder: Path) -> str:
    report_page.write_report(folder / "one", folder / "one.html")
    return (folder / "one.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sweep_report(folder: Path) -> str:
    report_page.write_report(folder / "many", folder / "many.html", paper="cbt-ne")
    return (folder / "many.html").read_text(encoding="utf-8")


def test_report_of_a_run_has_every_section(single_report: str, folder: Path, parsed: Any) -> None:
    page = parsed(single_report)
    page.check()
    for title in SECTIONS:
        assert f"{title}</h2>" in single_report
    predicted = predictions.read_predictions(folder / "one" / "predictions" / "valid.jsonl")
    right = sum(one.candidates[one.best] == one.answer for one in predicted)
    assert f"{100 * right / len(predicted):.1f}%" in page.text
    assert f"{len(predicted) - right} wrong" in page.text
    assert "Not here" not in page.text
    assert len(page.all("img")) >= 8 and len(page.all("article")) >= 8
    assert page.all("html") == [{"lang": "en"}] and page.elements[-1][0] == "script"


def test_baselines_and_statistics_match_the_data(single_report: str, parsed: Any) -> None:
    text = parsed(single_report).text
    for name in ("maximum_frequency", "uniform"):
        assert f"{100 * baselines.evaluate_baseline(name, EXAMPLES).scores.accuracy:.1f}" in text
    expected = compute_statistics(EXAMPLES)
    assert f"mean document words{expected.document_tokens.mean:,.2f}{expected.document_tokens.mean:,.2f}" in text
    assert f"vocabulary{expected.vocabulary:,}{expected.vocabulary:,}" in text


def test_report_of_several_runs_compares_with_the_paper(sweep_report: str, folder: Path, parsed: Any) -> None:
    page = parsed(sweep_report)
    page.check()
    assert "greedy ensemble" in page.text and "73.8" in page.text  # the paper's single reader on these data
    assert "all 3 runs" in page.text and "How many runs are right" in page.text
    assert "varies" in page.text
    best = max(run_records.read_run_records(folder / "many"), key=lambda record: record.accuracy)
    assert f"thick: {best.name}, the best of 3 runs" in page.text


def test_missing_files_are_reported_and_the_rest_is_shown(tmp_path: Path, parsed: Any) -> None:
    data = tmp_path / "stories.jsonl"
    data.write_text("".join(map(jsonl.format_example, EXAMPLES)))
    run = write_run(tmp_path / "run", data)
    run.environment.unlink()
    (run.folder / "weights.safetensors").unlink()
    page = parsed(report_page.render_report(run.folder, tmp_path / "r.html"))
    page.check()
    assert "environment.json is missing" in page.text and "weights.safetensors: missing" in page.text
    assert "Calibration" in page.text and not page.all("article")
    data.unlink()
    page = parsed(report_page.render_report(run.folder, tmp_path / "r.html"))
    page.check()
    assert page.text.count("the validation data are not where config.toml says") >= 3 and not page.all("img")
    assert "Highest: 20.0% at step 10" in page.text
    assert report_page.render_report(run.folder, tmp_path / "r.html") == report_page.render_report(
        run.folder, tmp_path / "r.html"
    )
    run.predictions("valid").unlink()
    run.metrics.unlink()
    page = parsed(report_page.render_report(run.folder, tmp_path / "r.html"))
    page.check()
    assert "no run has predicted" in page.text and "metrics.jsonl has no row" in page.text


def test_validation_data_can_be_given(tmp_path: Path, parsed: Any) -> None:
    data = tmp_path / "stories.jsonl"
    data.write_text("".join(map(jsonl.format_example, EXAMPLES)))
    run = write_run(tmp_path / "run", data)
    moved = data.rename(tmp_path / "moved here.jsonl")
    page = parsed(report_page.render_report(run.folder, tmp_path / "r.html", data=moved))
    page.check()
    assert "Calibration" in page.text and page.all("article")
    assert f"--data '{moved}'" in page.text
    assert "Calibration" not in parsed(report_page.render_report(run.folder, tmp_path / "r.html")).text


def test_folder_without_run_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="run"):
            report_page.render_report(path, tmp_path / "r.html")


def test_hostile_text_is_escaped_everywhere(tmp_path: Path, parsed: Any, browser: Any) -> None:
    words = (HOSTILE, "\u202e\u2069evil", "x" * 100_000, '"><img/src=x/onerror=alert(1)>', "😀", "\x1b[0m")
    examples = [
        Example(f"{HOSTILE}\u202e{n}", (words, words[n % 6 :]), (*words, GAP), words[: 2 + n % 5], words[n % 2])
        for n in range(12)
    ]
    folder = tmp_path / "<img src=x onerror=alert(1)>\u202e &amp;"
    folder.mkdir()
    data = folder / "valid<b>\u202e.jsonl"
    data.write_text("".join(map(jsonl.format_example, examples)))
    run = write_run(folder / "<script>run", data, examples)
    settings = run.load_config()
    run.save_config(replace(settings, train=replace(settings.train, teacher=f"</pre>{HOSTILE * 9}")))
    run.environment.write_text(json.dumps({HOSTILE: '<img src="http://x.example/">', "commit": "<b>\u202e"}))
    html = report_page.render_report(run.folder, tmp_path / "r.html")
    page = parsed(html)
    page.check()
    assert page.text.count("alert(1)") > 30 and "\u202e" not in html
    (tmp_path / "r.html").write_text(html, encoding="utf-8")
    for width in (1280, 400):
        visit = browser.open(tmp_path / "r.html", width=width)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert not visit.messages
        assert all(url.startswith(("file:", "data:")) for url in visit.requests)


def test_hostile_setting_name_is_escaped(tmp_path: Path, parsed: Any) -> None:
    data = tmp_path / "stories.jsonl"
    data.write_text("".join(map(jsonl.format_example, EXAMPLES)))
    run = write_run(tmp_path / "run", data)
    file = run.folder / "config.toml"
    file.write_text(file.read_text().replace("[reader]", f'[reader]\n"</code>{HOSTILE}" = 1'))
    page = parsed(report_page.render_report(run.folder, tmp_path / "r.html"))
    page.check()
    assert f"reader.</code>{HOSTILE}" in page.text and "has no setting" in page.text
    commands = run_records.format_training_commands(run_records.read_run_records(run.folder))
    assert parse_settings(commands.shared_settings).reader == run.load_config().reader


def test_browser_reports_no_error_and_no_request(
    single_report: str, sweep_report: str, folder: Path, browser: Any, tmp_path: Path
) -> None:
    for name in ("one", "many"):
        for width, dark in ((1280, False), (400, False), (400, True)):
            visit = browser.open(folder / f"{name}.html", width=width, dark=dark)
            assert not visit.messages, visit.messages
            assert [url for url in visit.requests if not url.startswith(("data:", "file:"))] == []
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            images = "[...document.images].every(image => image.complete && image.naturalWidth > 0)"
            assert browser.evaluate(images) is True
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@given(
    st.lists(
        st.tuples(st.integers(1, 4), *map(st.sampled_from, ((64, 128), (0.001, 0.5), ("a b", "'$x")))),
        min_size=1,
        max_size=4,
        unique=True,
    )
)
def test_training_commands_reproduce_the_settings(rows: list[tuple[int, int, float, str]]) -> None:
    configs = [
        Config(
            DataSettings(train=name),
            {"name": "attention_sum", "hidden": hidden},
            TrainSettings(seed=s, learning_rate=r),
        )
        for s, hidden, r, name in rows
    ]
    records = [RunRecord(f"r{n}", Path(f"runs/r {n}"), config, (), {}, {}) for n, config in enumerate(configs)]
    commands = run_records.format_training_commands(records)
    parsed: list[Config] = []
    for line in commands.command_lines.splitlines():
        words = shlex.split(line)
        sets = [words[n + 1] for n, word in enumerate(words) if word == "--set"]
        count = int(words[words.index("--readers") + 1]) if "--readers" in words else 1
        first = parse_settings(commands.shared_settings, sets)
        parsed += [replace(first, train=replace(first.train, seed=first.train.seed + n)) for n in range(count)]
    flattened = sorted(map(str, map(run_records.flatten_complete_settings, parsed)))
    assert flattened == sorted(map(str, map(run_records.flatten_complete_settings, configs)))


def test_settings_that_differ_from_the_defaults_come_first(single_report: str, parsed: Any) -> None:
    text = parsed(single_report).text
    first, _, rest = text.partition("settings at their defaults")
    for key in ("reader.hidden", "train.epochs", "data.unknown"):
        assert key in first
    for key in ("train.clip", "data.min_count"):
        assert key not in first and key in rest


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_ticks_are_even_and_cover_all_values(low: float, span: float) -> None:
    ticks = learning_curves.choose_ticks(low, low + span)
    slack = 1e-6 * (abs(low) + span + 1)
    assert ticks[0] <= low + slack and ticks[-1] >= low + span - slack
    assert 2 <= len(ticks) <= 8 and ticks[0] < ticks[-1]
    steps = [after - before for before, after in pairwise(ticks)]
    assert max(steps) - min(steps) <= slack


def test_curves_match_the_metrics() -> None:
    rows = [MetricsRow(step, 0, "valid", 1 / step, step / 100) for step in (10, 20, 40)]
    record = RunRecord("r", Path(), Config(), tuple(rows), {}, {})
    drawn = learning_curves.build_learning_curves([record])
    loss, accuracy = re.findall(r'points="([^"]*)"', drawn)
    ticks = learning_curves.choose_ticks(0.1, 0.4)
    expected = [(1000 * row.step / 40, 1000 * (ticks[-1] - row.accuracy) / (ticks[-1] - ticks[0])) for row in rows]
    assert accuracy == " ".join(f"{x:.0f},{y:.0f}" for x, y in expected)
    assert loss.startswith("250,") and "Lowest: 0.0250 at step 40" in drawn
