"""evaluate: accuracy of a reader on data."""

from __future__ import annotations

from typing import Annotated

import typer

from asreader.cli.options import AsJson, Data, Device, Format, PredictionFile, SkipBad, Split


def evaluate(
    run: Annotated[str, typer.Argument(help="run folder, or 'bundled'")],
    data: Data,
    predictions: PredictionFile = None,
    split: Split = None,
    answerable: Annotated[
        bool, typer.Option("--answerable", help="leave out questions whose answer is not in the document")
    ] = False,
    format: Format = None,
    skip_bad: SkipBad = False,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure the accuracy of a reader on any data."""
    from asreader.cli.tables import print_scores
    from asreader.data.dataset import load_store
    from asreader.evaluation import predictions as files
    from asreader.inference.reader import Reader

    store = load_store(data, split=split, format=format, skip_bad=skip_bad)
    evaluation = Reader.load(run, device).evaluate(store)
    if answerable:
        evaluation = evaluation.answerable(store)
    if predictions is not None:
        files.write_predictions(predictions, evaluation.predictions)
    print_scores(evaluation.scores, as_json)
