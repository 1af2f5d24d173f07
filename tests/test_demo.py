from __future__ import annotations

import pytest

from asreader.cli.demo import MONTHS, blend_months, compare_january_and_march
from asreader.cli.tables import print_renderable
from asreader.inference.reader import Reader


def test_an_even_blend_of_january_and_march_is_february() -> None:
    probabilities = blend_months({"January": 0.5, "March": 0.5})
    assert max(probabilities, key=probabilities.__getitem__) == "February"
    assert sum(probabilities.values()) == pytest.approx(1)


def test_the_pointer_sum_answers_january_or_march(capsys: pytest.CaptureFixture[str]) -> None:
    reader = Reader.load()
    answer = reader.answer(
        "A UFO was observed above our city in January and again in March.",
        "An observer has spotted a UFO in XXXXX.",
        MONTHS,
    )
    assert answer.answer in ("January", "March")
    assert {choice.word for choice in answer.candidates if choice.probability > 0} <= {"January", "March"}
    print_renderable(compare_january_and_march(reader))
    assert "February" in capsys.readouterr().out
