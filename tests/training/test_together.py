from __future__ import annotations

import gc
import json
import os
import signal
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from asreader.kernels.words import distinct
from asreader.training.stacked import Lesson, Stack
from asreader.training.stacked_step import Step
from asreader.training.together import train_together
from safetensors.torch import load_file

from asreader.batches.device import Widths, resident
from asreader.batches.host import Batcher
from asreader.cloze.stories.generator import generate_stories
from asreader.data.dataset import load_store
from asreader.data.example import GAP, Example
from asreader.data.formats import jsonl
from asreader.data.store import encode_examples
from asreader.data.vocabulary import build_vocabulary
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.inference.reader import Reader
from asreader.readers.attention_sum import AttentionSum
from asreader.runs.folder import Run
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.training import loop, stacked

CLOSE = 1e-5


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("data")
    for name, count, seed in (("train", 44, 1), ("valid", 20, 2)):  # 44 questions: the last batch of 16 is short
        (folder / f"{name}.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(count, seed))))
    return Config(
        data=DataSettings(train=str(folder / "train.jsonl"), valid=str(folder / "valid.jsonl")),
        reader={"name": "attention_sum", "embedding": 6, "hidden": 5},
        train=TrainSettings(
            epochs=2, batch=16, prefetch=2, patience=9, device="cpu", log_every=1, tensorboard=False, clip=0.01
        ),
    )


def group(settings: Config, count: int = 3, **changes: object) -> list[Config]:
    """Readers of their own seeds and learning rates."""
    return [
        replace(settings, train=replace(settings.train, seed=n + 1, learning_rate=0.01 * (n + 1), **changes))  # type: ignore[arg-type]
        for n in range(count)
    ]


def folders(parent: Path, count: int = 3) -> list[Path]:
    return [parent / str(n) for n in range(count)]


@pytest.fixture(scope="module")
def alone(settings: Config, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    places = folders(tmp_path_factory.mktemp("alone"))
    return [loop.train(own, place) for own, place in zip(group(settings), places, strict=True)]


@pytest.fixture(scope="module")
def together(settings: Config, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return train_together(group(settings), folders(tmp_path_factory.mktemp("together")))


def rows(run: Run) -> list[dict[str, object]]:
    return [json.loads(line) for line in run.metrics.read_text().splitlines()]


def near(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Adam turns a gradient that is nothing but rounding into a step of visible size, so weights are only near."""
    return float((one - other).abs().max()) <= 1e-3 * float(one.abs().max())


def assert_same(left: Run, right: Run) -> None:
    """Equal up to rounding: every loss, every score, the weights, Adam's moments, the answers, the files."""
    names = [{path.relative_to(run.folder) for path in run.folder.rglob("*")} for run in (left, right)]
    assert names[0] == names[1]
    pairs = list(zip(rows(left), rows(right), strict=True))
    for one, other in pairs:
        assert [one[key] for key in ("step", "epoch", "kind")] == [other[key] for key in ("step", "epoch", "kind")]
        assert one["loss"] == pytest.approx(other["loss"], abs=CLOSE)
        assert one.get("accuracy") == other.get("accuracy")
        assert one.get("best") == other.get("best")
    for file in ("weights.safetensors", "state.safetensors"):
        one, other = (load_file(run.folder / file) for run in (left, right))
        assert one.keys() == other.keys()
        assert all(near(one[name], other[name]) for name in one), file
    assert left.load_state()[1] == pytest.approx(right.load_state()[1], abs=CLOSE)  # type: ignore[index]
    for file in ("config.toml", "vocabulary.txt", "card.md"):
        assert (left.folder / file).read_text() == (right.folder / file).read_text()
    for one, other in zip(
        *(predictions.read_predictions(run.predictions("valid")) for run in (left, right)), strict=True
    ):
        assert (one.id, one.candidates) == (other.id, other.candidates)
        assert np.allclose(one.probabilities, other.probabilities, atol=CLOSE)


def test_readers_trained_together_are_those_trained_alone(alone: list[Run], together: list[Run]) -> None:
    assert len(rows(together[0])) == 2 * (3 + 1)  # three batches and a validation in each epoch
    for one, other in zip(alone, together, strict=True):
        assert_same(one, other)
    assert rows(together[0])[0]["loss"] != rows(together[1])[0]["loss"]


def test_a_group_of_one(settings: Config, alone: list[Run], tmp_path: Path) -> None:
    (run,) = train_together(group(settings, 1), [tmp_path / "0"])
    assert_same(alone[0], run)


def interrupted(patch: pytest.MonkeyPatch, after: int, train: Callable[[], object]) -> None:
    """Ctrl-C during the group's step of this number."""
    original, taken = Step.take, 0

    def stopping(self: Step, order: torch.Tensor, widths: Widths) -> torch.Tensor:
        nonlocal taken
        taken += 1
        if taken == after:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, order, widths)

    patch.setattr(Step, "take", stopping)
    with pytest.raises(KeyboardInterrupt):
        train()
    patch.undo()


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_stopped_and_resumed_equals_uninterrupted(
    settings: Config, together: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    places = folders(tmp_path)
    interrupted(monkeypatch, steps, lambda: train_together(group(settings), places))
    for one, other in zip(train_together(group(settings), places, resume=True), together, strict=True):
        assert_same(one, other)


def test_begun_together_continued_alone_and_the_other_way_round(
    settings: Config, alone: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = folders(tmp_path)
    interrupted(monkeypatch, 2, lambda: train_together(group(settings), places))
    assert_same(loop.train(group(settings)[1], places[1], resume=True), alone[1])  # this one has finished
    assert Run(places[0]).load_state()[1]["step"] == 2  # type: ignore[index]
    short = [replace(own, train=replace(own.train, epochs=1)) for own in group(settings)]
    loop.train(short[2], places[2], resume=True)  # this one is an epoch ahead of the first
    for one, other in zip(train_together(group(settings), places, resume=True), alone, strict=True):
        assert_same(one, other)


def test_steps_go_with_their_group(settings: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU they hold graphs and memory, which the next readers of the same process need."""
    made: list[weakref.ref[Step]] = []

    def step(*arguments: Any, **options: Any) -> Step:
        assert all(earlier() is None for earlier in made)
        own = Step(*arguments, **options)
        made.append(weakref.ref(own))
        return own

    monkeypatch.setattr("asreader.training.together.Step", step)
    gc.disable()
    try:
        train_together(group(settings, patience=1, epochs=5), folders(tmp_path))  # some leave before the others
        assert len(made) > 1 and all(own() is None for own in made)
    finally:
        gc.enable()


def test_readers_that_finish_make_room_and_change_nothing_for_the_others(settings: Config, tmp_path: Path) -> None:
    hasty = group(settings, patience=1, epochs=5)
    found = train_together(hasty, folders(tmp_path / "together"))
    lengths = []
    for own, run, place in zip(hasty, found, folders(tmp_path / "alone"), strict=True):
        assert_same(loop.train(own, place), run)
        lengths.append(len(rows(run)))
    assert len(set(lengths)) > 1


@pytest.mark.parametrize("every", [2, 7])
def test_validation_every_few_batches(settings: Config, tmp_path: Path, every: int) -> None:
    often = group(settings, 2, validate_every=every, metric="loss", patience=2)
    for own, run, place in zip(
        often, train_together(often, folders(tmp_path / "t", 2)), folders(tmp_path / "a", 2), strict=True
    ):
        assert_same(loop.train(own, place), run)


def test_without_validation_data(settings: Config, tmp_path: Path) -> None:
    blind = replace(settings, data=replace(settings.data, valid=""))
    (run,) = train_together(group(blind, 1), [tmp_path / "0"])
    other = loop.train(group(blind, 1)[0], tmp_path / "alone")
    assert near(run.load_weights()["embed.weight"], other.load_weights()["embed.weight"])


def test_a_reader_that_diverges_leaves_and_is_named(settings: Config, alone: list[Run], tmp_path: Path) -> None:
    wild = group(settings, 2)
    wild[1] = replace(wild[1], train=replace(wild[1].train, learning_rate=1e38))
    with pytest.raises(InputError, match="1: the loss is not a number at step"):
        train_together(wild, folders(tmp_path, 2))
    assert_same(Run(tmp_path / "0"), alone[0])


@pytest.mark.parametrize("question_at", ["before", "around"])
def test_a_question_beside_its_document(settings: Config, tmp_path: Path, question_at: str) -> None:
    asked = replace(settings, data=replace(settings.data, question_at=question_at, anonymise=0.3))
    for own, run, place in zip(
        group(asked, 2),
        train_together(group(asked, 2), folders(tmp_path / "t", 2)),
        folders(tmp_path / "a", 2),
        strict=True,
    ):
        assert_same(loop.train(own, place), run)


def test_what_cannot_be_stacked_is_trained_one_by_one(
    settings: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once = replace(settings, train=replace(settings.train, epochs=1))
    for number, other in enumerate(
        (
            replace(once, reader={**once.reader, "layers": 2}),
            replace(once, reader={**once.reader, "normalise": "candidates"}),
        )
    ):
        (run,) = train_together([other], [tmp_path / f"together{number}"])
        assert_same(loop.train(other, tmp_path / f"alone{number}"), run)
        assert "one after the other" in capsys.readouterr().err


def test_validation_data_that_cannot_be_held_is_read_one_by_one(settings: Config, tmp_path: Path) -> None:
    document = (("Ana", "Bo", "met", "Bo", "."),)
    example = Example("x", document, (GAP, "met", "Bo"), ("Ana Bo", "Bo"), "Ana Bo")
    data = tmp_path / "valid.jsonl"
    data.write_text(jsonl.format_example(example))
    other = replace(settings, data=replace(settings.data, valid=str(data)))
    (run,) = train_together(group(other, 1), [tmp_path / "together"])
    assert_same(loop.train(group(other, 1)[0], tmp_path / "alone"), run)


def test_unequal_readers_and_used_folders_are_refused(settings: Config, together: list[Run], tmp_path: Path) -> None:
    one, two = group(settings, 2)
    with pytest.raises(InputError, match="--resume"):
        train_together([one], [together[0].folder])
    with pytest.raises(InputError, match=r"differ in train\.seed"):
        train_together([one, replace(two, reader={**two.reader, "hidden": 7})], folders(tmp_path, 2))
    with pytest.raises(InputError, match=r"differ in train\.seed"):
        train_together([one, replace(two, train=replace(two.train, batch=7))], folders(tmp_path, 2))
    with pytest.raises(InputError, match="share a folder"):
        train_together([one, two], [tmp_path / "x", tmp_path / "x"])
    with pytest.raises(InputError, match="one of its own"):
        train_together([one, two], [tmp_path / "x"])
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_losses_and_gradients_are_those_of_the_network(precision: torch.dtype) -> None:
    """A CPU's own recurrence stays in float32 whatever the precision, so in bfloat16 the two only have to be near."""
    torch.manual_seed(3)
    store = encode_examples([*generate_stories(7, 3)])
    words = build_vocabulary(store.count_words(), min_count=2, unknown=5)
    data, batcher = resident(store, words, device=torch.device("cpu")), Batcher(store, words)
    numbers, sizes = np.array([[0, 1, 2, 3], [6, 5, 6, 6]]), [4, 2]
    networks = [AttentionSum(words.size, embedding=6, hidden=5) for _ in sizes]
    weights = Stack.zeros(2, networks[0], torch.device("cpu"))
    for reader, network in enumerate(networks):
        torch.nn.init.normal_(network.document_encoder.layers[0].bias_hh_l0)  # type: ignore[arg-type]
        for name, view in weights.views(reader).items():
            view.copy_(network.get_parameter(name).detach())
    weights, widths = weights.learnable(), data.widths(numbers)
    batch = data.batch(torch.from_numpy(numbers), torch.tensor(sizes), widths)
    met = distinct(batch.document, batch.question, words.size, widths.words, widths.lines)
    losses = stacked.losses(weights, stacked.vectors(weights, met), met, batch, Lesson(precision))
    gradients = Stack.of(torch.autograd.grad(losses.sum(), weights.tensors()))
    near = CLOSE if precision == torch.float32 else 0.25
    for reader, (network, size) in enumerate(zip(networks, sizes, strict=True)):
        whole = batcher.batch(numbers[reader, :size])
        loss = network.answer(network.read(whole.document), whole).losses(whole.answers).mean()
        loss.backward()
        assert losses[reader].item() == pytest.approx(loss.item(), abs=near)
        for name, gradient in gradients.views(reader).items():
            own = network.get_parameter(name).grad
            assert own is not None
            assert torch.allclose(gradient, own, atol=near * max(1e-3, float(own.abs().max())), rtol=near), name


def test_a_run_trained_together_answers(together: list[Run], settings: Config) -> None:
    found = Reader.load(together[0].folder).evaluate(loop.load(settings.data.valid, "valid", settings))
    best = max(float(row["accuracy"]) for row in rows(together[0]) if row["kind"] == "valid")  # type: ignore[arg-type]
    # On a GPU validation is in bfloat16 and may see one of the twenty questions otherwise.
    assert found.scores.accuracy == pytest.approx(best, abs=0.051 if torch.cuda.is_available() else 1e-9)


def test_schedules_averages_and_teachers_are_those_of_a_reader_alone(settings: Config, tmp_path: Path) -> None:
    said = tmp_path / "teacher.jsonl"
    reader = Reader.load(str(loop.train(group(settings, 1)[0], tmp_path / "teacher").folder))
    store = load_store(Path(settings.data.train))
    predictions.write_predictions(said, reader.evaluate(store).predictions)
    recipe = {"warmup": 2, "decay": "linear", "average": 0.8, "teacher": str(said), "teacher_weight": 0.4}
    several = group(settings, 2, **recipe)
    found = train_together(several, folders(tmp_path / "together", 2))
    for own, run, place in zip(several, found, folders(tmp_path / "alone", 2), strict=True):
        assert_same(loop.train(own, place), run)


def test_strange_candidates_are_those_of_a_reader_alone(settings: Config, tmp_path: Path) -> None:
    each = group(replace(settings, data=replace(settings.data, anonymise=0.4)), 2)
    runs = train_together(each, folders(tmp_path, 2))
    for own, run in zip(each, runs, strict=True):
        assert_same(loop.train(own, tmp_path / f"alone-{own.train.seed}"), run)


def test_an_average_goes_on_where_it_stopped(settings: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several, places = group(settings, 2, average=0.7, decay="cosine"), folders(tmp_path / "stopped", 2)
    interrupted(monkeypatch, 2, lambda: train_together(several, places))
    resumed = train_together(several, places, resume=True)
    for one, other in zip(resumed, train_together(several, folders(tmp_path / "whole", 2)), strict=True):
        assert_same(one, other)


def test_dropout_in_company_is_the_same_again(settings: Config, tmp_path: Path) -> None:
    dropping = replace(settings, reader={**settings.reader, "dropout": 0.3})
    one, other = (train_together(group(dropping, 2), folders(tmp_path / name, 2)) for name in "ab")
    for left, right in zip(one, other, strict=True):
        assert_same(left, right)
    assert rows(one[0])[0]["loss"] != rows(one[1])[0]["loss"]
