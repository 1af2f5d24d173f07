"""train: one reader, or several with consecutive seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import ConfigFile, SettingOverrides


def train(
    config: ConfigFile,
    out: Annotated[Path, typer.Option(help="run folder to write", metavar="RUN")],
    settings: SettingOverrides = [],  # noqa: B006
    readers: Annotated[
        int, typer.Option(min=1, help="number of readers to train, with consecutive seeds, into RUN/seed-N")
    ] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="continue a run that was stopped")] = False,
) -> None:
    """Train a reader, or several with consecutive seeds.

    On a GPU several readers are trained together.
    """
    from asreader.settings import load_settings
    from asreader.training import loop

    for run in loop.train(load_settings(config, settings), out, count=readers, resume=resume):
        print(f"{run.folder}: done; try `asreader evaluate {run.folder} DATA` or `asreader answer {run.folder} ...`")
