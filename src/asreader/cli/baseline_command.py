"""baseline: accuracy of a rule without training."""

from __future__ import annotations

from typing import Annotated

import typer

from asreader.cli.options import AsJson, Data, Format, Only, PredictionFile, SkipBad


def baseline(
    name: Annotated[str, typer.Argument(help="maximum-frequency, exclusive-frequency, word-distance or uniform")],
    data: Data,
    predictions: PredictionFile = None,
    format: Format = None,
    only: Only = None,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Measure the accuracy of a simple rule that is not trained.

    Candidates that tie share the credit equally.
    """
    from asreader import baselines
    from asreader.cli.tables import print_scores
    from asreader.data.dataset import load_examples
    from asreader.evaluation import predictions as files

    questions = (example for _, example in load_examples(data, format=format, only=only, skip_bad=skip_bad))
    evaluation = baselines.evaluate_baseline(name, questions)
    if predictions is not None:
        files.write_predictions(predictions, evaluation.predictions)
    print_scores(evaluation.scores, as_json)
