"""Systems: how prediction files, runs and folders are read and matched with their questions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from asreader.data.example import Example
from asreader.data.formats import jsonl
from asreader.data.vocabulary import Vocabulary
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.breakdowns import systems
from asreader.evaluation.breakdowns.systems import SystemSource
from asreader.evaluation.predictions import Prediction
from asreader.evaluation.result_table import find_prediction_files

NAMES = ("Ada", "Bo", "Cy", "lamp", "1907", "New York", "@entity4", "oil")
KNOWN = Vocabulary(("Ada", "lamp", "1907"), unknown=2, entities=1)
RUNS = 3


def make_examples(count: int = 40) -> list[Example]:
    """Questions drawn at random."""
    random = Random(5)
    examples = []
    for number in range(count):
        candidates = tuple(random.sample(NAMES, random.randint(2, 8)))
        words = tuple(word for _ in range(random.randint(2, 25)) for word in random.choice(candidates).split())
        examples.append(Example(f"q{number}", (words,), ("XXXXX",), candidates, random.choice(candidates)))
    return examples


def make_predictions(run: int) -> list[Prediction]:
    """Predictions of one run, drawn at random; ties are common."""
    random = Random(run)
    predicted = []
    for example in make_examples():
        weights = [random.choice((1, 2, 4)) + 3 * (word == example.answer) for word in example.candidates]
        shares = [weight / sum(weights) for weight in weights]
        predicted.append(Prediction(example.id, example.answer, example.candidates, shares))  # type: ignore[arg-type]
    return predicted


def judge_run(run: int) -> list[bool]:
    """Whether the most probable candidate, the first of equals, is the answer."""
    return [
        one.candidates[one.probabilities.tolist().index(one.probabilities.max())] == one.answer
        for one in make_predictions(run)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Questions in valid.jsonl, three runs on them in runs/, the second file in another order."""
    (tmp_path / "valid.jsonl").write_text("".join(map(jsonl.format_example, make_examples())))
    for run in range(RUNS):
        predicted = make_predictions(run)
        folder = tmp_path / "runs" / f"seed-{run + 1}"
        predictions.write_predictions(
            folder / "predictions" / "valid.jsonl", predicted if run != 1 else reversed(predicted)
        )
        KNOWN.save(folder / "vocabulary.txt")
        (folder / "config.toml").write_text("")
    return tmp_path


def test_systems_are_read_from_files_runs_and_folders(folder: Path) -> None:
    data = folder / "valid.jsonl"
    file = folder / "runs" / "seed-2" / "predictions" / "valid.jsonl"
    whole, run, alone = systems.load_systems(
        [
            SystemSource(folder / "runs", data),
            SystemSource(folder / "runs" / "seed-1", data),
            SystemSource(file, data, "file"),
        ]
    )
    assert (whole.name, whole.runs) == ("runs", ("seed-1", "seed-2", "seed-3"))
    assert (run.name, run.runs, alone.name) == ("seed-1", ("seed-1",), "file")
    assert whole.correct.tolist() == [judge_run(run) for run in range(RUNS)]
    assert alone.correct.tolist()[0] == judge_run(1)[::-1]
    assert whole.questions is run.questions  # looked at once
    assert alone.questions.ids == whole.questions.ids[::-1]
    assert whole.vocabulary == KNOWN
    assert whole.questions.name == "valid"


def test_runs_are_sorted_by_number(tmp_path: Path) -> None:
    for seed in (10, 9, 1, 2):
        predictions.write_predictions(tmp_path / f"seed-{seed}" / "predictions" / "valid.jsonl", [])
    found = [path.parent.parent.name for path in find_prediction_files(tmp_path)]
    assert found == ["seed-1", "seed-2", "seed-9", "seed-10"]
    with pytest.raises(InputError, match=r"seed-1/predictions/test\.jsonl: missing"):
        find_prediction_files(tmp_path, "test")


def test_questions_without_an_answer_do_not_count(folder: Path) -> None:
    predicted = make_predictions(0)
    predicted[3] = Prediction(predicted[3].id, None, predicted[3].candidates, predicted[3].probabilities)
    predictions.write_predictions(folder / "some.jsonl", predicted)
    examples = [json.loads(jsonl.format_example(example)) for example in make_examples()]
    del examples[3]["answer"]
    (folder / "some-data.jsonl").write_text("".join(json.dumps(example) + "\n" for example in examples))
    (system,) = systems.load_systems([SystemSource(folder / "some.jsonl", folder / "some-data.jsonl")])
    assert len(system.questions) == 39
    assert "q3" not in system.questions.ids
    assert system.correct.shape == (1, 39)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: Prediction("nobody", one.answer, one.candidates, one.probabilities), "is not in"),
        (lambda one: Prediction(one.id, one.candidates[0], one.candidates, one.probabilities), "another answer"),
    ],
)
def test_predictions_of_other_data_are_refused(
    folder: Path, change: Callable[[Prediction], Prediction], message: str
) -> None:
    predicted = make_predictions(0)
    index = next(index for index, one in enumerate(predicted) if one.answer != one.candidates[0])
    predicted[index] = change(predicted[index])
    predictions.write_predictions(folder / "other.jsonl", predicted)
    with pytest.raises(InputError, match=message):
        systems.load_systems([SystemSource(folder / "other.jsonl", folder / "valid.jsonl")])


def test_two_systems_of_one_name_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="same name"):
        systems.load_systems([SystemSource(folder / "runs", folder / "valid.jsonl")] * 2)


def test_source_is_parsed_from_one_argument(folder: Path) -> None:
    data = Path("data.txt")
    odd = folder / "a=b:c.jsonl"
    odd.write_text("")
    assert systems.parse_source("x.jsonl", data) == SystemSource(Path("x.jsonl"), data)
    assert systems.parse_source("news=x.jsonl", data) == SystemSource(Path("x.jsonl"), data, "news")
    assert systems.parse_source("news=x.jsonl:d.txt", data) == SystemSource(Path("x.jsonl"), Path("d.txt"), "news")
    assert systems.parse_source(str(odd), data) == SystemSource(odd, data)
    assert systems.parse_source(f"n={odd}", data) == SystemSource(odd, data, "n")
    assert systems.parse_source(f"n={odd}:d.txt", data) == SystemSource(odd, Path("d.txt"), "n")
    with pytest.raises(InputError, match="names no predictions"):
        systems.parse_source("news=", data)
