"""a run, held-out data -> calibration.json: the temperature and the threshold of its confidence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from asreader.data.dataset import load_store
from asreader.evaluation import calibration
from asreader.inference.reader import Reader
from asreader.runs.folder import ConfidenceCalibration, Run


@dataclass(frozen=True)
class Calibrated:
    """What was found. Errors are expected calibration errors; accuracy and coverage those at the threshold."""

    calibration: ConfidenceCalibration
    questions: int
    error_before: float
    error_after: float
    accuracy: float | None
    coverage: float


def calibrate_run(
    run: Path, data: Path, *, wanted: float, format: str | None = None, device: str = "auto"
) -> Calibrated:
    """Fit temperature and threshold on data and keep them with the run: from then on its answers are calibrated."""
    reader = Reader.load(run, device)
    reader.calibration = ConfidenceCalibration()
    said = reader.evaluate(load_store(data, format=format)).predictions
    temperature = calibration.fit_temperature(said)
    after = calibration.apply_temperature(said, temperature)
    covered = calibration.measure_coverage(after)
    enough = [
        threshold
        for threshold, accuracy in zip(covered.thresholds, covered.accuracy, strict=True)
        if accuracy >= wanted
    ]
    # Where nothing is as good as that, no answer is sure: a confidence is never above 1.
    found = ConfidenceCalibration(temperature, float(enough[0]) if enough else 1.0)
    Run(run).save_calibration(found)
    point = covered.find_point(found.threshold)
    before_and_after = [calibration.measure_reliability(these).error for these in (said, after)]
    return Calibrated(
        found, len(said), before_and_after[0], before_and_after[1], accuracy=point.accuracy, coverage=point.coverage
    )
