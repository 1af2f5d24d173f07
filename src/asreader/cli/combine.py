"""ensemble, table, compare: what many runs say together, how well, and which are better."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from asreader.cli.options import AsJson, Format, print_json


class Method(StrEnum):
    """How members are chosen."""

    average = "average"
    greedy = "greedy"
    all = "all"
    weighted = "weighted"


class Style(StrEnum):
    """How a table is written."""

    terminal = "terminal"
    markdown = "markdown"
    latex = "latex"


class Published(StrEnum):
    """The data sets of the paper's tables."""

    cnn = "cnn"
    dailymail = "dailymail"
    cbt_ne = "cbt-ne"
    cbt_cn = "cbt-cn"


class ManyValues(TyperCommand):
    """A command whose list options take all words that follow: --valid runs/*/predictions/valid.jsonl."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its values, as the parser wants it."""
        lists = {name for parameter in self.params if getattr(parameter, "multiple", False) for name in parameter.opts}
        spelled: list[str] = []
        option = ""
        for argument in args:
            if argument.startswith("-"):
                option = argument if argument in lists else ""
                spelled += [] if option else [argument]
            else:
                spelled += [option, argument] if option else [argument]
        return super().parse_args(ctx, spelled)


def ensemble(
    valid: Annotated[list[Path], typer.Option(help="validation predictions, one file a reader", metavar="PRED...")],
    test: Annotated[list[Path], typer.Option(help="test predictions of the same readers", metavar="PRED...")] = [],  # noqa: B006
    method: Annotated[
        Method, typer.Option(help="the mean of the best, the paper's greedy choice, the mean of all, fitted weights")
    ] = Method.average,
    top: Annotated[float, typer.Option(min=0, max=1, help="which part of the readers `average` takes")] = 0.7,
    out: Annotated[Path | None, typer.Option(help="write the ensemble's predictions here", metavar="FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Combine readers by their saved predictions; members are chosen on validation data alone."""
    from asreader.evaluation import ensembles, predictions

    found = ensembles.combine(valid, test, method.value, top)
    if out is not None:
        predictions.write(out, found.predictions)
    if as_json:
        print_json(found.as_json())
    else:
        from asreader.cli import tables

        tables.print_renderable(tables.format_ensemble(found))


def table(
    folders: Annotated[list[Path], typer.Argument(help="runs, or folders of runs on the same data", metavar="DIR...")],
    paper: Annotated[
        Published | None, typer.Option(help="put the paper's figures on this data set beside ours")
    ] = None,
    style: Annotated[Style, typer.Option(help="how to write it")] = Style.terminal,
    as_json: AsJson = False,
) -> None:
    """The paper's result table for a set of runs: best, mean of the best, ensembles, spread; in per cent."""
    from dataclasses import asdict

    from asreader.evaluation import result_table

    rows = result_table.rows(result_table.find(folders), paper.value if paper else None)
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        from asreader.cli import tables

        tables.print_renderable(tables.format_results(rows, style.value))


def compare(
    first: Annotated[Path, typer.Argument(help="predictions, a run, or a folder of runs (seeds)", metavar="A")],
    second: Annotated[Path, typer.Argument(help="another of the same questions", metavar="B")],
    data: Annotated[
        Path | None, typer.Option(help="the questions, to show those that only one side answers", metavar="DATA")
    ] = None,
    split: Annotated[str | None, typer.Option(help="which predictions of runs: valid (the default) or test")] = None,
    format: Format = None,
    show: Annotated[int, typer.Option(min=0, help="how many questions of each kind to show")] = 5,
    as_json: AsJson = False,
) -> None:
    """Which of two readers is better, by how much and how surely, and on which questions they differ."""
    from asreader.evaluation import comparison

    found = comparison.compare(first, second, split=split, data=data, format=format)
    if as_json:
        print_json(found.as_json())
    else:
        from asreader.cli import tables

        tables.print_renderable(tables.format_comparison(found, show))
