"""docs/comparing.md is true: its commands are run on the invented runs, and print what the page says."""

from __future__ import annotations

import re
import shlex
from glob import glob
from pathlib import Path

import pytest
from typer.testing import CliRunner

from asreader.cli import app
from asreader.evaluation import bootstrap, comparison, ensembles
from asreader.evaluation.metrics import compute_wilson_interval

PAGE = Path(__file__).parents[2] / "docs" / "comparing.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(("command", "promised"), re.findall(r"```sh\n(.*?)```\n\n```text\n(.*?)```", TEXT, re.DOTALL))
def test_commands_print_what_the_page_says(
    command: str, promised: str, invented: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(invented)
    program, *words = shlex.split(command)
    assert program == "asreader"
    spelled = [name for word in words for name in (sorted(glob(word)) if "*" in word else [word])]
    done = CliRunner().invoke(app, spelled, catch_exceptions=False, env={"COLUMNS": "80"})
    assert [line.rstrip() for line in done.stdout.rstrip().splitlines()] == promised.splitlines()


def test_every_block_of_the_page_is_run() -> None:
    assert len(re.findall("```sh", TEXT)) == len(re.findall("```text", TEXT)) == 4
    assert len(re.findall("```python", TEXT)) == 1


def test_python_of_the_page_prints_what_it_says(
    invented: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(invented)
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, PAGE.name, "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"# -> (.*)", code)


def test_rules_of_the_page_are_those_of_the_code() -> None:
    assert f"{bootstrap.DRAWS:,} bootstrap draws" in TEXT
    assert f"up to {comparison.MAX_PERMUTATIONS:,}" in TEXT
    assert ensembles.TOLERANCE == 1e-5 and "10⁻⁵" in TEXT
    assert ensembles.FOLDS == 5 and "each fifth" in TEXT
    for method in ensembles.METHODS:
        assert f"| `{method}` |" in TEXT
    assert comparison.run_permutation_test([1, 2, 3], [4, 5, 6]).least == pytest.approx(0.1)
    assert comparison.run_permutation_test([1, 2, 3, 4], [5, 6, 7, 8]).p == pytest.approx(0.03, abs=0.005)
    assert compute_wilson_interval(0.7, 2500)[1] == pytest.approx(0.7 + 0.018, abs=0.0005)
