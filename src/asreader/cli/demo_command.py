"""demo: a complete small experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(out: Annotated[Path, typer.Option(help="folder for data and runs")] = Path("runs/demo")) -> None:
    """Train a small reader on generated stories, in three minutes.

    Generates stories, trains two readers, evaluates and combines them, answers questions and shows the attention.
    """
    from asreader.cli.demo import run_demo

    run_demo(out)
