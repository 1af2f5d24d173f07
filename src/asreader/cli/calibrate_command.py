"""calibrate: temperature and confidence threshold of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, Data, Device, Format, print_json


def calibrate(
    run: Annotated[Path, typer.Argument(help="run folder", metavar="RUN")],
    data: Data,
    wanted: Annotated[
        float, typer.Option(min=0, max=1, help="accuracy to reach for answers above the confidence threshold")
    ] = 0.9,
    format: Format = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Fit a temperature and a confidence threshold for a run.

    Use held-out data that the run was not trained on. The result is saved in the run folder.
    """
    from dataclasses import asdict

    from asreader.inference.run_calibration import calibrate_run
    from asreader.runs.file_names import CALIBRATION_FILE

    result = calibrate_run(run, data, wanted=wanted, format=format, device=device)
    if as_json:
        print_json(asdict(result))
        return
    fitted = result.calibration
    print(
        f"temperature {fitted.temperature:.3f}: expected calibration error {result.error_before:.4f} -> "
        f"{result.error_after:.4f} on {result.questions:,} questions"
    )
    if result.accuracy is None or result.accuracy < wanted:
        print(f"no confidence threshold reaches an accuracy of {wanted:.0%}: every answer is marked unsure")
    else:
        print(
            f"confidence threshold {fitted.threshold:.3f}: {result.coverage:.1%} of the questions are above it, "
            f"{result.accuracy:.1%} of those are right; saved in {run / CALIBRATION_FILE}"
        )
