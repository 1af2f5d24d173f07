"""The command line as users see it: real processes, real files, one clear line for a mistake."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from asreader import plugins
from asreader.cli import app
from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl
from asreader.evaluation import predictions

CBT = """1 Ana gave the pear to Bo .
2 Bo went to the mill .
3 XXXXX ate the pear .\tBo\t\tAna|Bo|mill|pear

1 Cy saw Di .
2 Di sang to XXXXX .\tCy\t\tCy|Di
"""


def run_asreader(*arguments: object, text: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "asreader", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=cwd, timeout=120)


def run_good(*arguments: object, text: str = "", cwd: Path | None = None) -> str:
    done = run_asreader(*arguments, text=text, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_refused(*arguments: object, text: str = "") -> str:
    done = run_asreader(*arguments, text=text)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture
def cbt(tmp_path: Path) -> Path:
    path = tmp_path / "cbtest_NE_valid.txt"
    path.write_text(CBT)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    (folder / "train.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(100, 1))))
    (folder / "valid.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(20, 2))))
    (folder / "small.toml").write_text(
        '[data]\ntrain = "train.jsonl"\nvalid = "valid.jsonl"\n[reader]\nembedding = 6\nhidden = 6\n'
        '[train]\nepochs = 1\ndevice = "cpu"\n'
    )
    run_good("train", "small.toml", "--out", "run", cwd=folder)
    return folder / "run"


def list_subcommands(group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        yield name, command
        if hasattr(command, "commands"):
            yield from list_subcommands(command)


def test_help_is_quick_and_lists_every_command_in_its_group() -> None:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        text = run_good("--help")
        times.append(time.perf_counter() - start)
    groups = {group: lines.splitlines() for group, lines in re.findall(r"\n(\w+):\n((?:  .+\n)+)", text)}
    listed = {group: {line.split()[0] for line in lines} for group, lines in groups.items() if group != "Options"}
    assert listed == {
        "Use": {"answer", "demo", "report", "gallery"},
        "Data": {"stats", "convert", "prepare", "make", "formats", "taggers"},
        "Train": {"train", "sweep", "evaluate", "calibrate", "ensemble", "readers", "executors", "engines", "ops"},
        "Compare": {"table", "compare", "analyse", "baseline", "benchmark"},
    }
    # Half a second on an idle machine; two test workers share the cores.
    assert statistics.median(times) < (2.0 if os.environ.get("PYTEST_XDIST_WORKER") else 0.5)


def test_no_help_line_is_cut_at_80_columns() -> None:
    for name, command in list_subcommands(typer.main.get_command(app)):
        first_sentence = " ".join((command.help or "").split("\n\n")[0].split())
        assert 0 < len(first_sentence) <= 63, name
    assert "..." not in run_good("--help").partition("Use:")[2]


def test_h_is_help_and_no_arguments_are_too() -> None:
    for group in ((), ("make",), ("benchmark",)):
        assert run_good(*group, "-h") == run_good(*group, "--help") == run_good(*group)
    assert run_good("train", "-h") == run_good("train", "--help")


def test_plugins_are_listed_one_a_line() -> None:
    assert len(run_good("formats").splitlines()) == len(plugins.list_plugins("data.formats"))
    listed = json.loads(run_good("readers", "--json"))
    assert {row["name"] for row in listed} == {*plugins.list_plugins("readers"), *plugins.list_plugins("baselines")}


def test_stats_has_the_fixed_fields(cbt: Path) -> None:
    found = json.loads(run_good("stats", cbt, "--json"))
    assert found["valid"]["questions"] == 2
    assert found["valid"]["candidates"] == {"max": 4, "mean": 3.0, "min": 2}
    assert found["valid"]["document_tokens"] == {"mean": 8.5, "min": 4, "max": 13}
    assert found["valid"]["vocabulary"] > 0
    assert "questions" in run_good("stats", cbt)


def test_convert_there_and_back(cbt: Path, tmp_path: Path) -> None:
    run_good("convert", cbt, "--out", tmp_path / "a.jsonl")
    run_good("convert", tmp_path / "a.jsonl", "--to", "cbt", "--out", tmp_path / "b.txt")
    assert (tmp_path / "b.txt").read_text().strip() == CBT.strip()


def test_prepare_makes_a_store_a_split(cbt: Path, tmp_path: Path, run: Path) -> None:
    out = tmp_path / "stores"
    assert "2 questions" in run_good("prepare", cbt, "--out", out)
    assert [path.name for path in out.iterdir()] == ["valid"]
    from_store = json.loads(run_good("evaluate", run, out / "valid", "--json"))
    assert from_store == json.loads(run_good("evaluate", run, cbt, "--json"))
    for data in (out, out / "valid"):  # a prepared store is data like any other
        for command in (("stats",), ("baseline", "maximum-frequency")):
            assert run_good(*command, data, "--json") == run_good(*command, cbt, "--json")
        run_good("convert", data, "--to", "cbt", "--out", tmp_path / "back.txt")
        assert (tmp_path / "back.txt").read_text().strip() == CBT.strip()
    assert "exists already" in run_refused("prepare", cbt, "--out", out)


def test_evaluate_has_the_fixed_fields_and_writes_predictions(run: Path, cbt: Path, tmp_path: Path) -> None:
    found = json.loads(run_good("evaluate", run, cbt, "--predictions", tmp_path / "p.jsonl", "--json"))
    assert set(found) == {
        "questions",
        "accuracy",
        "accuracy_at",
        "interval",
        "answer_not_in_document",
        "unknown_words",
    }
    assert set(found["accuracy_at"]) == {"1", "2", "5"}
    assert [p.candidates for p in predictions.read_predictions(tmp_path / "p.jsonl")] == [
        ("Ana", "Bo", "mill", "pear"),
        ("Cy", "Di"),
    ]


def test_baseline(cbt: Path) -> None:
    found = json.loads(run_good("baseline", "maximum-frequency", cbt, "--json"))
    assert found["accuracy"] == (1.0 + 0.5) / 2  # Bo is there twice; Cy and Di tie
    assert "accuracy" in run_good("baseline", "uniform", cbt)


def test_answer_from_a_file_and_from_standard_input(run: Path, tmp_path: Path) -> None:
    text = "Ana gave the pear to Bo. Bo went to the mill."
    (tmp_path / "story.txt").write_text(text)
    question = ["--question", "XXXXX ate the pear.", "--candidates", "Ana, Bo,mill"]
    page = tmp_path / "answer.html"
    from_file = json.loads(
        run_good("answer", run, "--document", tmp_path / "story.txt", *question, "--html", page, "--json")
    )
    assert from_file == json.loads(run_good("answer", run, "--document", "-", *question, "--json", text=text))
    assert {choice["word"] for choice in from_file["candidates"]} == {"Ana", "Bo", "mill"}
    assert "<mark" in page.read_text()
    shown = run_good("answer", run, "--document", "-", *question, text=text)
    rank = {choice["word"]: mark for choice, mark in zip(from_file["candidates"], "¹²³", strict=True)}
    assert f"Bo{rank['Bo']} went to the mill{rank['mill']}." in shown
    assert "%" in shown


def test_mistakes_are_one_line_and_exit_2(run: Path, cbt: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text(CBT.replace("XXXXX ate", "Bo ate"))
    assert f"{bad}:3" in run_refused("stats", bad, "--format", "cbt")
    assert "1" in json.loads(run_good("stats", bad, "--format", "cbt", "--skip-bad", "--json")).__str__()
    assert "nowhere.txt" in run_refused("stats", tmp_path / "nowhere.txt")
    assert "did you mean" in run_refused("stats", cbt, "--format", "cbtt")
    assert "did you mean" in run_refused("baseline", "maximum-frequencies", cbt)
    assert "not a run" in run_refused("evaluate", tmp_path, cbt)
    assert "small" in run_refused("train", tmp_path / "small.toml", "--out", tmp_path / "r")
    assert "--out" in run_refused("prepare", cbt)
    assert "No such command" in run_refused("trian")
    assert "empty" in run_refused("answer", run, "--document", "-", "--question", "XXXXX ran.", text="")
    (tmp_path / "latin.txt").write_bytes("café".encode("latin-1"))
    assert "UTF-8" in run_refused("answer", run, "--document", tmp_path / "latin.txt", "--question", "XXXXX ran.")


def test_a_folder_that_cannot_be_written_is_reported(cbt: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in run_refused("prepare", cbt, "--out", tmp_path / "file" / "stores")
    assert "cannot be written" in run_refused("convert", cbt, "--out", tmp_path / "file" / "x.jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's always-full device")
def test_a_full_disk_is_reported_in_one_line(cbt: Path) -> None:
    command = [sys.executable, "-m", "asreader", "stats", str(cbt), "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "asreader: output: No space left on device\n"


def test_several_readers_are_trained_into_folders_named_by_their_seeds(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(20, 1))))
    (tmp_path / "small.toml").write_text(
        f'[data]\ntrain = "{tmp_path / "train.jsonl"}"\n[reader]\nembedding = 8\nhidden = 8\n'
        '[train]\nepochs = 1\nseed = 4\ndevice = "cpu"\n'
    )
    output = run_good("train", tmp_path / "small.toml", "--readers", 2, "--out", tmp_path / "runs")
    assert output.count(": done;") == 2
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["seed-4", "seed-5"]
    weights = [(tmp_path / "runs" / name / "weights.safetensors").read_bytes() for name in ("seed-4", "seed-5")]
    assert weights[0] != weights[1]


def test_make_books_writes_readable_questions(tmp_path: Path) -> None:
    text = "\n".join(" ".join(sentence) for story in generate_stories(40, 3) for sentence in story.document)
    (tmp_path / "tales.txt").write_text(text)
    output = run_good(
        "make", "books", tmp_path / "tales.txt", "--type", "cn", "--out", tmp_path / "made.txt", "--workers", 1
    )
    assert "questions" in output and "a window from 1 books" in output
    counted = json.loads(run_good("stats", tmp_path / "made.txt", "--json"))
    (questions,) = counted.values()
    summary = json.loads(
        run_good("make", "books", tmp_path / "tales.txt", "--type", "cn", "--out", tmp_path / "made.jsonl", "--json")
    )
    assert summary["questions"] == questions["questions"] and summary["books"] == 1 and summary["bad"] == 0
    assert questions["candidates"] == {"mean": 10, "min": 10, "max": 10}


def test_make_news_writes_readable_questions(tmp_path: Path) -> None:
    story = "Anna Berg met Carl Lund in Oslo. Berg is a painter.\n\n@highlight\n\nAnna Berg meets a rival in Oslo\n"
    (tmp_path / "one.story").write_text(story)
    output = run_good("make", "news", tmp_path / "one.story", "--out", tmp_path / "questions", "--workers", 1)
    assert output.startswith("2 questions, 2.0 an article")
    assert json.loads(run_good("stats", tmp_path / "questions", "--json"))["questions"]["questions"] == 2
    run_good("make", "news", tmp_path / "one.story", "--out", tmp_path / "made.jsonl", "--workers", 1)
    rows = [json.loads(line) for line in (tmp_path / "made.jsonl").read_text().splitlines()]
    assert {row["entities"][row["answer"]] for row in rows} == {"Anna Berg", "Oslo"}


def test_mistakes_in_making_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    out = ("--out", tmp_path / "out.txt")
    assert "there is no file in it" in run_refused("make", "books", tmp_path / "empty", "--type", "ne", *out)
    assert "a binary file" in run_refused("make", "books", tmp_path / "picture.png", "--type", "ne", *out)
    assert "none of the books" in run_refused(
        "make", "books", tmp_path / "picture.png", "--type", "ne", "--skip-bad", *out
    )
    assert "did you mean 'lexical'" in run_refused(
        "make", "books", tmp_path, "--type", "ne", "--tagger", "lexica", *out
    )
    assert "no articles" in run_refused("make", "news", tmp_path / "picture.png", *out)
    assert "did you mean 'local'" in run_refused("make", "books", __file__, "--type", "ne", "--executor", "loca", *out)
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "picture.png"}
