"""The command line as its users meet it: real processes, real files, one clear line for a mistake."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asreader import plugins
from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl
from asreader.evaluation import predictions

CBT = """1 Ana gave the pear to Bo .
2 Bo went to the mill .
3 XXXXX ate the pear .\tBo\t\tAna|Bo|mill|pear

1 Cy saw Di .
2 Di sang to XXXXX .\tCy\t\tCy|Di
"""


def asreader(*arguments: object, text: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "asreader", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=cwd, timeout=120)


def good(*arguments: object, text: str = "", cwd: Path | None = None) -> str:
    done = asreader(*arguments, text=text, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*arguments: object, text: str = "") -> str:
    done = asreader(*arguments, text=text)
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
    good("train", "small.toml", "--out", "run", cwd=folder)
    return folder / "run"


def test_help_is_quick_and_names_every_command() -> None:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        text = good("--help")
        times.append(time.perf_counter() - start)
    for command in (
        "demo",
        "answer",
        "formats",
        "readers",
        "stats",
        "convert",
        "prepare",
        "train",
        "evaluate",
        "baseline",
    ):
        assert f"\n  {command} " in text
    # Half a second on an idle machine; here two test workers share the cores.
    assert statistics.median(times) < (2.0 if os.environ.get("PYTEST_XDIST_WORKER") else 0.5)


def test_plugins_are_listed_one_a_line() -> None:
    assert len(good("formats").splitlines()) == len(plugins.list_plugins("data.formats"))
    listed = json.loads(good("readers", "--json"))
    assert {row["name"] for row in listed} == {*plugins.list_plugins("readers"), *plugins.list_plugins("baselines")}


def test_stats_has_the_fixed_fields(cbt: Path) -> None:
    found = json.loads(good("stats", cbt, "--json"))
    assert found["valid"]["questions"] == 2
    assert found["valid"]["candidates"] == {"max": 4, "mean": 3.0, "min": 2}
    assert found["valid"]["document_tokens"] == {"mean": 8.5, "min": 4, "max": 13}
    assert found["valid"]["vocabulary"] > 0
    assert "questions" in good("stats", cbt)


def test_convert_there_and_back(cbt: Path, tmp_path: Path) -> None:
    good("convert", cbt, "--out", tmp_path / "a.jsonl")
    good("convert", tmp_path / "a.jsonl", "--to", "cbt", "--out", tmp_path / "b.txt")
    assert (tmp_path / "b.txt").read_text().strip() == CBT.strip()


def test_prepare_makes_a_store_a_split(cbt: Path, tmp_path: Path, run: Path) -> None:
    out = tmp_path / "stores"
    assert "2 questions" in good("prepare", cbt, "--out", out)
    assert [path.name for path in out.iterdir()] == ["valid"]
    from_store = json.loads(good("evaluate", run, out / "valid", "--json"))
    assert from_store == json.loads(good("evaluate", run, cbt, "--json"))
    for data in (out, out / "valid"):  # what is prepared is data like any other
        for command in (("stats",), ("baseline", "maximum-frequency")):
            assert good(*command, data, "--json") == good(*command, cbt, "--json")
        good("convert", data, "--to", "cbt", "--out", tmp_path / "back.txt")
        assert (tmp_path / "back.txt").read_text().strip() == CBT.strip()
    assert "exists already" in refused("prepare", cbt, "--out", out)


def test_evaluate_has_the_fixed_fields_and_writes_predictions(run: Path, cbt: Path, tmp_path: Path) -> None:
    found = json.loads(good("evaluate", run, cbt, "--predictions", tmp_path / "p.jsonl", "--json"))
    assert set(found) == {
        "questions", "accuracy", "accuracy_at", "interval", "answer_not_in_document", "unknown_words",
    }  # fmt: skip
    assert set(found["accuracy_at"]) == {"1", "2", "5"}
    assert [p.candidates for p in predictions.read_predictions(tmp_path / "p.jsonl")] == [
        ("Ana", "Bo", "mill", "pear"),
        ("Cy", "Di"),
    ]


def test_baseline(cbt: Path) -> None:
    found = json.loads(good("baseline", "maximum-frequency", cbt, "--json"))
    assert found["accuracy"] == (1.0 + 0.5) / 2  # Bo stands twice; Cy and Di share a tie
    assert "accuracy" in good("baseline", "uniform", cbt)


def test_answer_from_a_file_and_from_standard_input(run: Path, tmp_path: Path) -> None:
    text = "Ana gave the pear to Bo. Bo went to the mill."
    (tmp_path / "story.txt").write_text(text)
    question = ["--question", "XXXXX ate the pear.", "--candidates", "Ana, Bo,mill"]
    page = tmp_path / "answer.html"
    from_file = json.loads(
        good("answer", run, "--document", tmp_path / "story.txt", *question, "--html", page, "--json")
    )
    assert from_file == json.loads(good("answer", run, "--document", "-", *question, "--json", text=text))
    assert {choice["word"] for choice in from_file["candidates"]} == {"Ana", "Bo", "mill"}
    assert "<mark" in page.read_text()
    shown = good("answer", run, "--document", "-", *question, text=text)
    assert "Bo¹ went to the mill²." in shown
    assert "%" in shown


def test_mistakes_are_one_line_and_exit_2(run: Path, cbt: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text(CBT.replace("XXXXX ate", "Bo ate"))
    assert f"{bad}:3" in refused("stats", bad, "--format", "cbt")
    assert "1" in json.loads(good("stats", bad, "--format", "cbt", "--skip-bad", "--json")).__str__()
    assert "nowhere.txt" in refused("stats", tmp_path / "nowhere.txt")
    assert "did you mean" in refused("stats", cbt, "--format", "cbtt")
    assert "did you mean" in refused("baseline", "maximum-frequencies", cbt)
    assert "not a run" in refused("evaluate", tmp_path, cbt)
    assert "small" in refused("train", tmp_path / "small.toml", "--out", tmp_path / "r")
    assert "--out" in refused("prepare", cbt)
    assert "No such command" in refused("trian")
    assert "empty" in refused("answer", run, "--document", "-", "--question", "XXXXX ran.", text="")
    (tmp_path / "latin.txt").write_bytes("café".encode("latin-1"))
    assert "UTF-8" in refused("answer", run, "--document", tmp_path / "latin.txt", "--question", "XXXXX ran.")


def test_a_folder_that_cannot_be_written_is_said(cbt: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused("prepare", cbt, "--out", tmp_path / "file" / "stores")
    assert "cannot be written" in refused("convert", cbt, "--out", tmp_path / "file" / "x.jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's always-full device")
def test_a_full_disk_is_said_in_one_line(cbt: Path) -> None:
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
    said = good("train", tmp_path / "small.toml", "--readers", 2, "--out", tmp_path / "runs")
    assert said.count(": done;") == 2
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["seed-4", "seed-5"]
    weights = [(tmp_path / "runs" / name / "weights.safetensors").read_bytes() for name in ("seed-4", "seed-5")]
    assert weights[0] != weights[1]


def test_make_books_and_read_what_was_made(tmp_path: Path) -> None:
    text = "\n".join(" ".join(sentence) for story in generate_stories(40, 3) for sentence in story.document)
    (tmp_path / "tales.txt").write_text(text)
    said = good("make", "books", tmp_path / "tales.txt", "--type", "cn", "--out", tmp_path / "made.txt", "--workers", 1)
    assert "questions" in said and "a window from 1 books" in said
    counted = json.loads(good("stats", tmp_path / "made.txt", "--json"))
    (questions,) = counted.values()
    told = json.loads(
        good("make", "books", tmp_path / "tales.txt", "--type", "cn", "--out", tmp_path / "made.jsonl", "--json")
    )
    assert told["questions"] == questions["questions"] and told["books"] == 1 and told["bad"] == 0
    assert questions["candidates"] == {"mean": 10, "min": 10, "max": 10}


def test_make_news_and_read_what_was_made(tmp_path: Path) -> None:
    story = "Anna Berg met Carl Lund in Oslo. Berg is a painter.\n\n@highlight\n\nAnna Berg meets a rival in Oslo\n"
    (tmp_path / "one.story").write_text(story)
    said = good("make", "news", tmp_path / "one.story", "--out", tmp_path / "questions", "--workers", 1)
    assert said.startswith("2 questions, 2.0 an article")
    assert json.loads(good("stats", tmp_path / "questions", "--json"))["questions"]["questions"] == 2
    good("make", "news", tmp_path / "one.story", "--out", tmp_path / "made.jsonl", "--workers", 1)
    rows = [json.loads(line) for line in (tmp_path / "made.jsonl").read_text().splitlines()]
    assert {row["entities"][row["answer"]] for row in rows} == {"Anna Berg", "Oslo"}


def test_mistakes_in_making_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    out = ("--out", tmp_path / "out.txt")
    assert "there is no file in it" in refused("make", "books", tmp_path / "empty", "--type", "ne", *out)
    assert "a binary file" in refused("make", "books", tmp_path / "picture.png", "--type", "ne", *out)
    assert "none of the books" in refused("make", "books", tmp_path / "picture.png", "--type", "ne", "--skip-bad", *out)
    assert "did you mean 'lexical'" in refused("make", "books", tmp_path, "--type", "ne", "--tagger", "lexica", *out)
    assert "no articles" in refused("make", "news", tmp_path / "picture.png", *out)
    assert "did you mean 'local'" in refused("make", "books", __file__, "--type", "ne", "--executor", "loca", *out)
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "picture.png"}
