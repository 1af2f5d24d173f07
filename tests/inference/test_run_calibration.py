"""A calibrated run keeps the order of its answers; its confidence matches its accuracy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from asreader.cloze.stories.generator import generate_stories
from asreader.data.dataset import load_store
from asreader.data.formats import jsonl
from asreader.errors import InputError
from asreader.evaluation import calibration
from asreader.inference.reader import BUNDLED, Reader
from asreader.inference.run_calibration import calibrate_run
from asreader.runs.folder import Run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    import asreader

    return Path(shutil.copytree(Path(asreader.__file__).parent / "pretrained", tmp_path / "run"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    place = tmp_path / "data.jsonl"
    place.write_text("".join(map(jsonl.format_example, generate_stories(150, 77))))
    return place


def test_confidence_changes_and_answers_do_not(run: Path, data: Path) -> None:
    (run / "calibration.json").unlink(missing_ok=True)
    store = load_store(data)
    before = Reader.load(run, "cpu").evaluate(store)
    found = calibrate_run(run, data, wanted=0.9, device="cpu")
    after = Reader.load(run, "cpu").evaluate(store)
    assert after.loss == pytest.approx(before.loss)
    for one, other in zip(before.predictions, after.predictions, strict=True):
        assert one.candidates[one.best] == other.candidates[other.best]
    slow = calibration.apply_temperature(before.predictions, found.calibration.temperature)
    for one, other in zip(slow, after.predictions, strict=True):
        assert np.allclose(one.probabilities, other.probabilities, atol=1e-5)
    assert calibration.fit_temperature(after.predictions) == pytest.approx(1, abs=0.01)
    assert found.questions == 150
    # Once more: what is fitted is always the reader as it was trained.
    assert calibrate_run(run, data, wanted=0.9, device="cpu").calibration == found.calibration


def test_sure_answers_are_as_good_as_wanted(run: Path, data: Path) -> None:
    found = calibrate_run(run, data, wanted=0.97, device="cpu")
    judged = calibration.judge_answers(Reader.load(run, "cpu").evaluate(load_store(data)).predictions)
    above = judged.confidence >= found.calibration.threshold - 1e-6
    assert judged.correct[above].mean() >= 0.97
    assert found.coverage == pytest.approx(above.mean())
    answers = [Reader.load(run, "cpu").explain(example) for example in generate_stories(40, 78)]
    assert {answer.sure for answer in answers} == {True, False}
    assert all(answer.sure == (answer.confidence >= found.calibration.threshold) for answer in answers)
    assert not any(answer.as_json()["sure"] for answer in answers if answer.confidence < found.calibration.threshold)


def test_where_nothing_is_good_enough_nothing_is_sure(run: Path, tmp_path: Path) -> None:
    """Every answer is exchanged for another candidate, so that the reader is hardly ever right."""
    wrong = []
    for example in generate_stories(60, 79):
        row = json.loads(jsonl.format_example(example))
        row["answer"] = next(word for word in row["candidates"] if word != row["answer"])
        wrong.append(json.dumps(row) + "\n")
    (tmp_path / "wrong.jsonl").write_text("".join(wrong))
    assert calibrate_run(run, tmp_path / "wrong.jsonl", wanted=0.99, device="cpu").calibration.threshold == 1.0


@pytest.mark.parametrize("text", ["{", '{"temperature": 0}', '{"heat": 1}', '{"threshold": 2}', "[1]"])
def test_a_damaged_file_is_named(run: Path, text: str) -> None:
    (run / "calibration.json").write_text(text)
    with pytest.raises(InputError, match=r"calibration\.json: damaged"):
        Run(run).load_calibration()
    assert Reader.load(BUNDLED, "cpu").calibration.temperature > 0
