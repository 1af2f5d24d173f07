"""invented runs: folders with settings and predictions, the same on every machine, and no training behind them."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import pytest

from asreader.data.example import Example
from asreader.data.formats import jsonl
from asreader.evaluation import predictions
from asreader.evaluation.predictions import Prediction
from asreader.settings import parse_settings

NAMES = ("Ada", "Bruno", "Clara", "Dario", "Edda", "Falk")
QUESTIONS = {"valid": 200, "test": 250}
SEEDS = (1, 2, 3, 4)
NOISE = {128: 1.4, 256: 1.0}
"""Of readers with so many hidden units: the wider ones know a little more."""


def invent(folder: Path) -> Path:
    """Two settings with four seeds each in runs/hidden-H/seed-S, and the questions in valid.jsonl and test.jsonl."""
    for split, count in QUESTIONS.items():
        random = Random(split)
        answers = [random.choice(NAMES) for _ in range(count)]
        hints = [[random.gauss(0, 1) + 2 * (name == answer) for name in NAMES] for answer in answers]
        for hidden, noise in NOISE.items():
            for seed in SEEDS:
                run = folder / "runs" / f"hidden-{hidden}" / f"seed-{seed}"
                (run / "predictions").mkdir(parents=True, exist_ok=True)
                (run / "config.toml").write_text(
                    parse_settings("", [f"reader.hidden={hidden}", f"train.seed={seed}"]).toml()
                )
                rows = said(answers, hints, noise, Random(f"{split} {hidden} {seed}"))
                predictions.write_predictions(run / "predictions" / f"{split}.jsonl", rows)
        questions = [
            Example(f"q{number}", ((answer, "it", "was"),), ("XXXXX", "found", f"lamp-{number}", "."), NAMES, answer)
            for number, answer in enumerate(answers)
        ]
        (folder / f"{split}.jsonl").write_text("".join(map(jsonl.format_example, questions)), encoding="utf-8")
    return folder


def said(answers: list[str], hints: list[list[float]], noise: float, own: Random) -> list[Prediction]:
    """What a reader says that sees the hints through noise."""
    rows = []
    for number, (answer, hint) in enumerate(zip(answers, hints, strict=True)):
        seen = [math.exp(value + noise * own.gauss(0, 1)) for value in hint]
        shares = [value / math.fsum(seen) for value in seen]
        rows.append(Prediction(f"q{number}", answer, NAMES, shares))  # type: ignore[arg-type]
    return rows


@pytest.fixture(scope="session")
def invented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of invented runs; only read."""
    return invent(tmp_path_factory.mktemp("invented"))
