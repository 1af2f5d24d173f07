"""Documents are correct: every command, example and listing in them is run or compared here."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import runpy
import shlex
import statistics
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from asreader import plugins, readers
from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl
from asreader.settings import DataSettings, TrainSettings

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

ARTICLES = """id,article,highlights
1,"Mayor Petra Kovar opened a bridge in Lindholm on Monday. Kovar said the bridge had cost less than a car park. \
The builder Tomas Reyes was not there. Lindholm had waited nine years for it.","Petra Kovar opens a new bridge over \
the river"
"""


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.skipif("ASREADER_LOWEST" in os.environ, reason="the help is that of the locked typer")
def test_the_command_reference_is_the_real_help() -> None:
    spec = importlib.util.spec_from_file_location("write_cli", ROOT / "docs" / "write_cli.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == module.format_reference(), "run `make docs`"


def test_python_of_the_readme_prints_what_the_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(ROOT / "README.md", "python")
    exec(compile(code, "README.md", "exec"), {})
    expected = re.findall(r"# -> (.*)", code)
    assert capsys.readouterr().out.splitlines() == expected


def test_shell_of_the_readme_runs(tmp_path: Path) -> None:
    """Each `asreader` command of the README runs, in order, in a new folder; the text after `# ->` is its answer."""
    (settings,) = blocks(ROOT / "README.md", "toml")
    (tmp_path / "small.toml").write_text(settings)
    for name, count, seed in (("train", 60, 1), ("valid", 20, 2)):
        (tmp_path / f"{name}.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(count, seed))))
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "tales.txt").write_text(
        "\n".join(" ".join(sentence) for story in generate_stories(40, 3) for sentence in story.document)
    )
    (tmp_path / "articles.csv").write_text(ARTICLES)
    count = 0
    for block in blocks(ROOT / "README.md", "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            command, _, expected = line.partition("# ->")
            words = shlex.split(command, comments=True)
            if not words or words[0] not in ("asreader", "echo"):
                continue
            shell = command.replace("asreader", f"{shlex.quote(sys.executable)} -m asreader", 1)
            process = subprocess.run(shell, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=300)
            assert process.returncode == 0, f"{command}: {process.stderr}"
            if expected:  # the answer comes first; the whole document with all candidates follows
                assert process.stdout.split()[0] == expected.strip()
            count += 1
    assert count >= 8


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?<!asreader )\bmake ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8"))):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_setting_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for name, section in (("data", DataSettings), ("train", TrainSettings)):
        for setting in fields(section):
            shown = str(setting.default).lower() if isinstance(setting.default, bool) else repr(setting.default)
            row = f"| `{name}.{setting.name}` | `{shown.replace(chr(39), chr(34))}` |"
            assert row in text, f"docs/settings.md lacks the row {row}"
    for key, parameter in readers.settings("attention_sum").items():
        assert f"| `reader.{key}` | `{str(parameter.default)!s}` |".replace("`document`", '`"document"`') in text


def test_every_plugin_is_documented() -> None:
    for folder, page in (("data.formats", "data.md"), ("cloze.tagging", "cloze.md"), ("executors", "cloze.md")):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for name in plugins.list_plugins(folder):
            assert re.search(rf"\b{name}\b", text), f"{page} does not name {name}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")


def test_links_lead_somewhere() -> None:
    folders = ("benchmarks", "docs", "reproduce")
    for path in [*ROOT.glob("*.md"), *(path for folder in folders for path in (ROOT / folder).rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (path.parent / target).exists(), f"{path.name} -> {target}"


@pytest.mark.parametrize("folder", ["benchmarks", "reproduce"])
def test_every_script_and_result_file_is_listed(folder: str) -> None:
    text = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"[a-z]+\.(?:py|jsonl)", text))
    assert listed == {path.name for path in (ROOT / folder).rglob("*.*") if path.suffix in (".py", ".jsonl")}


def test_the_tables_of_cloze_are_the_recorded_ones() -> None:
    text = (ROOT / "docs" / "cloze.md").read_text(encoding="utf-8")
    lines = (ROOT / "reproduce" / "results" / "cloze.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    names = {row["benchmark"] for row in rows}
    recorded = {name: [row for row in rows if row["benchmark"] == name] for name in names}
    for key in ("recall", "questions_per_window", "candidates_named", "candidates_in_class"):
        shipped, crossed = recorded["cloze-recall"]
        assert f"| {shipped[key]:.4f} | {crossed[key]:.4f} |" in text
    official, ours = recorded["cloze-valid"]
    for key in ("maximum_frequency", "document_words", "question_words", "lower_case_answers"):
        assert f"| {official[key]} | {ours[key]} |" in text
    for ours, published in zip(recorded["cloze-train"], recorded["cloze-train-published"], strict=True):
        assert f"{ours['questions']:,}" in text and f"{published['questions']:,}" in text
        for key in ("document_words", "question_words"):
            assert f"| {published[key]:.2f} | {ours[key]:.2f} (" in text
        assert f"{ours['shortest']} to {ours['longest']}" in text
        assert str(ours["seconds"]) in text
    for row in recorded["sentences"]:
        if (row["headings"], row["paragraphs"]) == ("drop", "flow together"):
            assert f"| {row['precision']:.4f}, {row['recall']:.4f} |" in text
    assert f"| {recorded['words'][0]['of_ordinary_text']:.4f} |" in text
    (news,) = recorded["news"]
    for key in ("questions_per_article", "candidates_mean", "highlights_with_question", "seconds_per_1000_articles"):
        assert f"| {news[key]} |" in text


def test_the_table_of_babi_is_the_recorded_one() -> None:
    rows = map(json.loads, (ROOT / "reproduce" / "results" / "babi.jsonl").read_text(encoding="utf-8").splitlines())
    shown = [row for row in rows if "CPU" in row["device"]]
    text = (ROOT / "docs" / "results" / "babi.md").read_text(encoding="utf-8")
    for row in shown:
        assert f"| {row['task']} | {row['accuracy']:.3f} | {row['epochs']} |" in text
    assert f"**{statistics.mean(row['accuracy'] for row in shown):.4f}**" in text
    assert len(shown) == 10


def test_the_tables_of_the_childrens_book_test_are_the_recorded_ones() -> None:
    tables = runpy.run_path(str(ROOT / "reproduce" / "tables.py"))
    for document in tables["DOCUMENTS"]:
        text = document.read_text(encoding="utf-8")
        assert text == tables["update_tables"](text), f"run `python reproduce/tables.py` to update {document.name}"
        assert text.count("<!-- end -->") == len(tables["TABLE_BLOCK"].findall(text)) >= 2
    (leaks,) = tables["read_rows"]("cbt-ne", "leaks")
    text = " ".join(tables["DOCUMENTS"][0].read_text(encoding="utf-8").split())
    assert f"{leaks['without']} and {leaks['with']}, a difference" in text
    assert f"{leaks['leaked_right_without']} and {leaks['leaked_right_with']} right" in text


def test_the_readme_says_of_the_bundled_reader_what_its_card_says() -> None:
    card = (ROOT / "src" / "asreader" / "pretrained" / "card.md").read_text(encoding="utf-8")
    figures = re.findall(r"\| ([\d.]+) \| ([\d.]+ to [\d.]+) \|", card)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    official, _, nouns, lambada, written = (f"{accuracy} ({interval})" for accuracy, interval in figures)
    assert f"| {official} " in readme
    assert f"| {nouns}; {lambada} |" in readme
    assert written.split()[0] in readme
