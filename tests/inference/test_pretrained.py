"""The bundled reader: small, quick, made by the settings it shows, calibrated."""

from __future__ import annotations

import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import safetensors
import torch

import asreader
from asreader import ops
from asreader.cloze.stories.generator import generate_stories
from asreader.data.store import encode_examples
from asreader.inference.reader import Reader

FOLDER = Path(asreader.__file__).parent / "pretrained"


def test_the_weights_carry_the_hash_of_their_settings() -> None:
    with safetensors.safe_open(FOLDER / "weights.safetensors", framework="pt") as file:
        about = file.metadata()["about"]
    assert sha256((FOLDER / "config.toml").read_bytes()).hexdigest() in about


def test_it_is_small_and_says_what_it_is() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < 12e6
    card = (FOLDER / "card.md").read_text(encoding="utf-8")
    assert all(word in card for word in ("Trained on", "calibrated", "not sure", "95% interval"))
    assert Reader.load().calibration.threshold > 0


def test_it_loads_in_a_second_and_answers_in_a_tenth() -> None:
    words = [word for story in generate_stories(20, 5) for word in story.words][:450]
    begin = time.perf_counter()
    reader = Reader.load(device="cpu")
    loaded = time.perf_counter() - begin
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        reader.answer(words, ["XXXXX", "took", "the", "key"])
        times.append(time.perf_counter() - begin)
    # Both with room for another test worker on the same cores; the shortest time is what the machine can do.
    assert loaded < 2
    assert min(times) < 0.2


@pytest.mark.parametrize("weight", ["embed.weight", "document_encoder.layers.0.weight_ih_l0"])
def test_half_precision_is_in_the_file_alone(weight: str) -> None:
    assert str(Reader.load(device="cpu").network.get_parameter(weight).dtype) == "torch.float32"
    with safetensors.safe_open(FOLDER / "weights.safetensors", framework="pt") as file:
        assert str(file.get_tensor(weight).dtype) == "torch.float16"


# In float32 two orders of the same additions differ by up to 1.8e-6 (100 stories), and each differs from float64
# by up to 2.8e-6. In float64 they differ by 4e-15.
ROUNDING = {torch.float32: 5e-6, torch.float64: 1e-9}


@pytest.mark.parametrize("dtype", ROUNDING)
def test_answers_are_the_same_with_every_implementation(dtype: torch.dtype) -> None:
    reader, examples, rounding = Reader.load(device="cpu"), list(generate_stories(30, seed=8)), ROUNDING[dtype]
    reader.network.to(dtype)
    for example in examples[:6]:
        fast = reader.explain(example)
        with ops.using("reference"):
            slow = reader.explain(example)
        assert fast.answer == slow.answer
        assert fast.sure == slow.sure
        assert fast.confidence == pytest.approx(slow.confidence, abs=rounding, rel=0)
        np.testing.assert_allclose(fast.attention, slow.attention, rtol=0, atol=rounding)
        expected = {choice.word: choice.probability for choice in slow.candidates}
        found = {choice.word: choice.probability for choice in fast.candidates}
        assert found == pytest.approx(expected, abs=rounding, rel=0)
    store = encode_examples(examples)
    evaluation = reader.evaluate(store)
    with ops.using("reference"):
        reference = reader.evaluate(store)
    assert evaluation.loss == pytest.approx(reference.loss, abs=rounding, rel=0)
    for one, other in zip(evaluation.predictions, reference.predictions, strict=True):
        assert one.best == other.best
        np.testing.assert_allclose(one.probabilities, other.probabilities, rtol=0, atol=rounding)


STORY = "Ana gave the apple to Bo. Bo thanked Ana and went to New York. In New York it rained."
OLD_ANSWERS = [
    ("XXXXX thanked Ana.", None, {"Bo": 0.96674067, "Ana": 0.01942344, "rained": 0.00884221, "York": 0.00191821}),
    ("XXXXX lives there.", ["Ana", "New York", "Bo", "Paris"], {"Bo": 0.75768763, "Ana": 0.23831634, "Paris": 0.0}),
    ("It rained in XXXXX.", ["New York", "York", "Bo"], {"Bo": 0.51328486, "New York": 0.24443370, "York": 0.24228148}),
]


@pytest.mark.parametrize(("question", "candidates", "probabilities"), OLD_ANSWERS)
def test_answers_are_those_of_the_code_before_the_rewrite(
    question: str, candidates: list[str] | None, probabilities: dict[str, float]
) -> None:
    """Computed from the same weights by commit ef0d3e2, which had other batches, layers and kernels."""
    reader = Reader.load(device="cpu")
    assert reader.calibration.temperature == pytest.approx(1.3379789118249308)  # other weights need other numbers
    answer = reader.answer(STORY, question, candidates)
    found = {choice.word: choice.probability for choice in answer.candidates}
    assert answer.answer == next(iter(probabilities))
    assert {word: found[word] for word in probabilities} == pytest.approx(probabilities, abs=1e-5, rel=0)


def test_answers_are_right() -> None:
    """An error in rows, weights or the pointer sum would lower the accuracy; it is 0.96."""
    evaluation = Reader.load(device="cpu").evaluate(encode_examples(generate_stories(100, seed=8)))
    assert evaluation.scores.accuracy > 0.9
