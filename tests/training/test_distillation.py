from __future__ import annotations

import glob
import json
import math
import random
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asreader.cli import app
from asreader.cloze.stories.generator import generate_stories
from asreader.data.example import GAP, Example
from asreader.data.formats import jsonl
from asreader.data.store import Store, encode_examples
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.predictions import Prediction
from asreader.inference.reader import Reader
from asreader.readers import Reading
from asreader.runs.folder import Run
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.training import distillation, loop
from asreader.training.distillation import Teacher

NOTHING = -math.inf


def slow(logs: list[float], answer: int, said: list[float], weight: float) -> float:
    """One question's loss, in Python."""
    possible = [place for place, log in enumerate(logs) if log > NOTHING]
    total = sum(said[place] for place in possible)
    if not total:
        return -logs[answer]
    taught = sum(said[place] / total * -logs[place] for place in possible)
    return (1 - weight) * -logs[answer] + weight * taught


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[list[float]], list[int], list[list[float]]]:
    """Log probabilities, answers, and what a teacher says; some candidates cannot be pointed at."""
    count, width = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    number = st.one_of(st.just(NOTHING), st.floats(-20, 0))
    share = st.one_of(st.just(0.0), st.floats(1e-3, 1))
    logs = draw(st.lists(st.lists(number, min_size=width, max_size=width), min_size=count, max_size=count))
    said = draw(st.lists(st.lists(share, min_size=width, max_size=width), min_size=count, max_size=count))
    return logs, draw(st.lists(st.integers(-1, width - 1), min_size=count, max_size=count)), said


def reading(logs: torch.Tensor) -> Reading:
    return Reading(torch.zeros(len(logs), 1, dtype=logs.dtype), logs)


@given(drawn=questions(), weight=st.sampled_from([0.1, 0.5, 1.0]))
def test_losses_and_gradients_are_those_of_a_slow_computation(
    drawn: tuple[list[list[float]], list[int], list[list[float]]], weight: float
) -> None:
    logs, answers, said = drawn
    found = torch.tensor(logs, dtype=torch.float64, requires_grad=True)
    computed = reading(found).compute_losses(torch.tensor(answers), torch.tensor(said, dtype=torch.float64), weight)
    losses = computed.values[computed.is_counted]
    rows = [row for row, answer in enumerate(answers) if answer >= 0 and logs[row][answer] > NOTHING]
    assert losses.tolist() == pytest.approx([slow(logs[row], answers[row], said[row], weight) for row in rows])
    computed.values.sum().backward()
    assert found.grad is not None
    for row, own in enumerate(logs):
        for place, log in enumerate(own):
            nudged = [[*own[:place], log + sign * 1e-4, *own[place + 1 :]] for sign in (1, -1)]
            up, down = (slow(one, answers[row], said[row], weight) if row in rows else 0 for one in nudged)
            rise = (up - down) / 2e-4 if row in rows and log > NOTHING else 0
            assert found.grad[row, place].item() == pytest.approx(rise, abs=1e-6)


def story_settings(folder: Path, count: int = 44) -> Config:
    for name, size, seed in (("train", count, 1), ("valid", 10, 2)):
        (folder / f"{name}.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(size, seed))))
    return Config(
        data=DataSettings(train=str(folder / "train.jsonl"), valid=str(folder / "valid.jsonl")),
        reader={"embedding": 6, "hidden": 5},
        train=TrainSettings(epochs=2, batch=16, patience=9, device="cpu", log_every=1, tensorboard=False),
    )


def taught(settings: Config, *files: Path, weight: float = 0.5) -> Config:
    names = ",".join(map(str, files))
    return replace(settings, train=replace(settings.train, teacher=names, teacher_weight=weight))


def losses(run: Run) -> list[float]:
    return [json.loads(line)["loss"] for line in run.metrics.read_text().splitlines()]


def one_hot(example: Example) -> Prediction:
    shares = np.array([word == example.answer for word in example.candidates], np.float32)
    return Prediction(example.id, example.answer, example.candidates, shares)


@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_a_teacher_that_knows_the_answers_is_no_teacher(tmp_path: Path, weight: float) -> None:
    settings = story_settings(tmp_path)
    predictions.write_predictions(tmp_path / "right.jsonl", map(one_hot, generate_stories(44, 1)))
    plain = loop.train_run(settings, tmp_path / "plain")
    run = loop.train_run(taught(settings, tmp_path / "right.jsonl", weight=weight), tmp_path / "taught")
    assert losses(run) == pytest.approx(losses(plain), abs=1e-5)


def test_a_teachers_doubts_are_learnt(tmp_path: Path) -> None:
    """Two names in the same part: taught that both are as good, the reader comes to say so."""
    document = (("Ana", "and", "Bo", "met", "."),)
    asked = [Example(str(n), document, (GAP, "met", "."), ("Ana", "Bo"), "Ana") for n in range(8)]
    (tmp_path / "data.jsonl").write_text("".join(map(jsonl.format_example, asked)))
    even = (Prediction(one.id, "Ana", ("Ana", "Bo"), np.array([0.5, 0.5])) for one in asked)
    predictions.write_predictions(tmp_path / "even.jsonl", even)
    settings = Config(
        data=DataSettings(train=str(tmp_path / "data.jsonl"), valid=str(tmp_path / "data.jsonl"), min_count=1),
        reader={"embedding": 4, "hidden": 4},
        train=TrainSettings(epochs=60, batch=8, learning_rate=0.05, device="cpu", tensorboard=False, metric="loss"),
    )
    settings = replace(settings, data=replace(settings.data, valid=""))
    for weight, confidence in ((1.0, 0.5), (0.5, 0.75)):
        run = loop.train_run(taught(settings, tmp_path / "even.jsonl", weight=weight), tmp_path / f"run{weight}")
        found = Reader.load(run.folder, "cpu").answer("Ana and Bo met .", "XXXXX met .", ["Ana", "Bo"])
        assert found.confidence == pytest.approx(confidence, abs=0.05)


def shown(teacher: Teacher, store: Store) -> list[list[float]]:
    widths = [len(store.candidates(number, store.document(number))) for number in range(len(store))]
    return [teacher.look_up(np.array([number]), width)[0].tolist() for number, width in enumerate(widths)]


def random_prediction(example: Example, generator: np.random.Generator) -> Prediction:
    shares = generator.dirichlet(np.ones(len(example.choices))).astype(np.float32)
    return Prediction(example.id, example.answer, tuple(example.choices), shares)


def test_files_are_aligned_by_question_and_candidate_and_averaged(tmp_path: Path) -> None:
    asked = [*generate_stories(12, 3)]
    asked[4] = replace(asked[4], candidates=())  # every word of the document is one
    store, generator = encode_examples(asked), np.random.default_rng(0)
    said = [[random_prediction(example, generator) for example in asked] for _ in range(2)]
    for number, own in enumerate(said):
        shuffled = []
        for one in random.Random(number).sample(own, len(own)):
            order = generator.permutation(len(one.candidates))
            mixed = tuple(one.candidates[place] for place in order)
            shuffled.append(Prediction(one.id, one.answer, mixed, one.probabilities[order]))
        other = Prediction("of another book", None, ("Ana",), np.array([1.0]))
        predictions.write_predictions(tmp_path / f"{number}.jsonl", [*shuffled, other])
    found = distillation.load_teacher([tmp_path / "0.jsonl", tmp_path / "1.jsonl"], 0.5, store)
    for own, one, two in zip(shown(found, store), *said, strict=True):
        assert own == pytest.approx(((one.probabilities + two.probabilities) / 2).tolist(), abs=1e-6)
    assert found.probabilities.dtype == np.float32
    padded = found.look_up(np.array([4, 0]), 99)
    assert padded[1, : len(asked[0].candidates)].tolist() == shown(found, store)[0]
    assert padded.sum(dim=1).tolist() == pytest.approx([1, 1])


def test_copies_and_empty_candidates_have_nothing_and_the_rest_sums_to_one(tmp_path: Path) -> None:
    example = Example("x", (("Ana", "met", "Bo", "."),), (GAP, "met", "Bo"), ("Ana", "", "Bo", "Ana"), "Ana")
    said = Prediction("x", "Ana", ("Ana", "Bo", "Ana", ""), np.array([0.3, 0.1, 0.0, 0.2]))
    predictions.write_predictions(tmp_path / "said.jsonl", [said])
    store = encode_examples([example])
    (found,) = shown(distillation.load_teacher([tmp_path / "said.jsonl"], 0.5, store), store)
    assert found == pytest.approx([0.75, 0, 0.25, 0])


def test_a_file_that_does_not_fit_is_refused_by_the_name_of_the_question(tmp_path: Path) -> None:
    settings, path = story_settings(tmp_path, 6), tmp_path / "said.jsonl"
    right = [one_hot(example) for example in generate_stories(6, 1)]
    third = right[3]
    other_candidates = Prediction(third.id, third.answer, ("Zed", *third.candidates[1:]), third.probabilities)
    other_answer = Prediction(third.id, "Zed", third.candidates, third.probabilities)
    for wrong, said in (
        ([*right[:3], *right[4:]], "1 training questions are missing"),
        ([*right[:3], other_candidates, *right[4:]], "has other candidates"),
        ([*right[:3], other_answer, *right[4:]], "has another answer"),
    ):
        predictions.write_predictions(path, wrong)
        with pytest.raises(InputError, match=said) as caught:
            loop.train_run(taught(settings, path), tmp_path / "run")
        assert repr(third.id) in str(caught.value)
        assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="cannot be read"):
        loop.train_run(taught(settings, tmp_path / "nowhere.jsonl"), tmp_path / "run")
    with pytest.raises(InputError, match="names no file"):
        distillation.load_teacher([], 0.5, encode_examples(generate_stories(2, 1)))
    with pytest.raises(InputError, match="share an id"):
        distillation.load_teacher([path], 0.5, encode_examples([*generate_stories(1, 1), *generate_stories(1, 1)]))


def test_questions_that_are_not_trained_on_need_no_teacher(tmp_path: Path) -> None:
    asked = [*generate_stories(4, 1)]
    hopeless = replace(asked[2], document=(("Nobody", "came", "."),))
    predictions.write_predictions(tmp_path / "said.jsonl", [one_hot(one) for one in asked if one is not asked[2]])
    distillation.load_teacher([tmp_path / "said.jsonl"], 0.5, encode_examples([*asked[:2], hopeless, asked[3]]))


def test_the_commands_of_the_documentation_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    (block,) = (part for part in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "teacher" in part)
    (tmp_path / "small.toml").write_text(story_settings(tmp_path).toml())
    monkeypatch.chdir(tmp_path)
    for line in block.splitlines():
        words = [found for word in shlex.split(line)[1:] for found in sorted(glob.glob(word)) or [word]]
        assert not app(words, standalone_mode=False), line
    assert "`teacher.jsonl`" in (tmp_path / "runs" / "taught" / "card.md").read_text()
