"""ensemble: several readers combined by their saved predictions."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from asreader.cli.options import AsJson, print_json


class EnsembleMethod(StrEnum):
    """How members are chosen and weighted."""

    average = "average"
    greedy = "greedy"
    all = "all"
    weighted = "weighted"


class ManyValuesCommand(TyperCommand):
    """A command whose list options take all words that follow: --valid runs/*/predictions/valid.jsonl."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its values, as the parser expects."""
        lists = {name for parameter in self.params if getattr(parameter, "multiple", False) for name in parameter.opts}
        expanded: list[str] = []
        option = ""
        for argument in args:
            if argument.startswith("-"):
                option = argument if argument in lists else ""
                expanded += [] if option else [argument]
            else:
                expanded += [option, argument] if option else [argument]
        return super().parse_args(ctx, expanded)


def ensemble(
    valid: Annotated[list[Path], typer.Option(help="validation predictions, one file a reader", metavar="PRED...")],
    test: Annotated[list[Path], typer.Option(help="test predictions of the same readers", metavar="PRED...")] = [],  # noqa: B006
    method: Annotated[
        EnsembleMethod,
        typer.Option(help="mean of the best, the paper's greedy selection, mean of all, or fitted weights"),
    ] = EnsembleMethod.average,
    top: Annotated[float, typer.Option(min=0, max=1, help="fraction of the readers that `average` uses")] = 0.7,
    out: Annotated[Path | None, typer.Option(help="write the ensemble's predictions here", metavar="FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Combine readers by their saved predictions.

    Members and weights are chosen on validation data alone.
    """
    from asreader.evaluation import ensembles, predictions

    combined = ensembles.build_ensemble(valid, test, method.value, top)
    if out is not None:
        predictions.write_predictions(out, combined.predictions)
    if as_json:
        print_json(combined.as_json())
    else:
        from asreader.cli.tables import format_ensemble, print_renderable

        print_renderable(format_ensemble(combined))
