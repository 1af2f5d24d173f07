"""docs/scaling.md says what the measured rows say, and its commands are commands."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer

from asreader import readers
from asreader.cli import app

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def scaling() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scaling", ROOT / "benchmarks" / "scaling.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["scaling"] = module
    spec.loader.exec_module(module)
    return module


def test_the_document_is_computed_from_the_rows(scaling: ModuleType) -> None:
    assert scaling.update_tables(TEXT) == TEXT, "run `python benchmarks/scaling.py`"


def test_figures_against_the_slow_way(scaling: ModuleType) -> None:
    together = [row for row in scaling.read_rows("together") if row["benchmark"] == "together"]
    latest = {(row["shape"], row["readers"]): row["seconds_per_reader_and_epoch"] for row in together}
    quickest = {shape: min(latest[key] for key in latest if key[0] == shape) for shape in ("ne", "cnn")}
    assert f"**{84 * 3 * quickest['cnn'] / 3600:.1f}**" in TEXT
    assert f"**{84 * 3 * quickest['ne'] / 108_719 * 14_000_000 / 3600:.1f}**" in TEXT


def test_weights_are_counted_as_the_reader_has_them(scaling: ModuleType) -> None:
    data = scaling.DataSize(1, 1, 1, 50, 6, 5, 1, "books")
    network = readers.build("attention_sum", 50 + scaling.FIXED_ROWS, {"embedding": 6, "hidden": 5})
    assert data.parameters == sum(parameter.numel() for parameter in network.parameters())


def test_commands_have_the_options_they_are_shown_with() -> None:
    shown = [
        shlex.split(line, comments=True)
        for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
        for line in block.replace("\\\n", " ").splitlines()
    ]
    commands = [words[1:] for words in shown if words[:1] == ["asreader"]]
    commands += [words[words.index("asreader") + 1 :] for words in shown if words[:1] == ["torchrun"]]
    assert sum(words[0] == "sweep" for words in commands) >= 3
    group = typer.main.get_command(app)
    for name, *arguments in commands:
        group.commands[name].make_context(name, arguments)  # type: ignore[attr-defined]
    for config in re.findall(r"configs/[\w-]+\.toml", TEXT):
        assert (ROOT / config).is_file()
