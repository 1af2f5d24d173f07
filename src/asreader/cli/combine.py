"""ensemble, table: what many runs say together, and how well."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from asreader.cli.options import AsJson, print_json
from asreader.errors import InputError


class Method(StrEnum):
    """How members are chosen."""

    average = "average"
    greedy = "greedy"


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
    method: Annotated[Method, typer.Option(help="the mean of the best, or the paper's greedy choice")] = Method.average,
    top: Annotated[float, typer.Option(min=0, max=1, help="which part of the readers `average` takes")] = 0.7,
    out: Annotated[Path | None, typer.Option(help="write the ensemble's predictions here", metavar="FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Combine readers by their saved predictions; members are chosen on validation data alone."""
    from asreader.evaluation import ensembling, predictions
    from asreader.evaluation.metrics import scores

    if test and len(test) != len(valid):
        raise InputError(f"--valid names {len(valid)} files and --test {len(test)}; name both of each reader, in order")
    on_valid = ensembling.aligned(valid)
    members = ensembling.greedy(on_valid) if method is Method.greedy else ensembling.best_share(on_valid, top)
    said = {"valid": on_valid.predictions(members)}
    if test:
        said["test"] = ensembling.aligned(test).predictions(members)
    found = {split: scores(those) for split, those in said.items()}
    if out is not None:
        predictions.write(out, said["test" if test else "valid"])
    names = [str(valid[member]) for member in members]
    if as_json:
        print_json({"method": method.value, "members": names} | {split: one.as_json() for split, one in found.items()})
        return
    single = on_valid.accuracies()
    print(f"{method.value} ensemble of {len(members)} of {len(valid)} readers")
    print(f"best single reader on validation data: {single.max():.4f}")
    for split, one in found.items():
        low, high = one.interval
        print(f"{split}: {one.accuracy:.4f} (95% interval {low:.4f} to {high:.4f}), in the best 2: "
              f"{one.accuracy_at[2]:.4f}, in the best 5: {one.accuracy_at[5]:.4f}")  # fmt: skip


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

    from asreader.evaluation import results

    rows = results.rows(results.find(folders), paper.value if paper else None)
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        from asreader import tables

        tables.show(tables.results(rows, style.value))
