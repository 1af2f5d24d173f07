"""What every reader must do, whatever its network."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asreader import plugins, readers
from asreader.batches.host import Batch, Batcher
from asreader.data.example import GAP, Example
from asreader.data.store import encode_examples
from asreader.data.vocabulary import Vocabulary
from asreader.readers import Reading

VOCABULARY = Vocabulary(("the", "gave", "to", "apple", "."), unknown=5, entities=6)
PLAIN = ["the", "gave", "to", "apple", "."]
ENTITIES = [f"@entity{n}" for n in range(12)]
NAMES = pytest.mark.parametrize("name", plugins.list_plugins("readers"))


@st.composite
def examples(draw: st.DrawFn) -> Example:
    word = st.sampled_from([*PLAIN, "Ana", "Bo", "Cy", *ENTITIES[:4]])
    document = draw(st.lists(st.lists(word, min_size=1, max_size=8).map(tuple), min_size=1, max_size=3).map(tuple))
    words = [w for sentence in document for w in sentence]
    candidates = tuple(draw(st.lists(st.sampled_from(words), min_size=1, max_size=5, unique=True)))
    question = (*draw(st.lists(word, max_size=5)), GAP)
    return Example("x", document, question, candidates, draw(st.sampled_from(candidates)))


def network(name: str, dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    torch.manual_seed(0)
    built = readers.build(name, VOCABULARY.size, {"embedding": 5, "hidden": 4})
    for parameter in built.parameters():  # larger than at the start of training, so that nothing is near uniform
        parameter.data = parameter.data.to(dtype) * 3
    return built


def reading(name: str, questions: list[Example], vocabulary: Vocabulary = VOCABULARY) -> Reading:
    batch = Batcher(encode_examples(questions), vocabulary).batch(range(len(questions)))
    return read(network(name), batch)


def read(built: torch.nn.Module, batch: Batch) -> Reading:
    return built.answer(built.read(batch.document), batch)  # type: ignore[operator, no-any-return]


def close(left: torch.Tensor, right: torch.Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-6, atol=1e-7)


@NAMES
@given(questions=st.lists(examples(), min_size=2, max_size=4))
def test_batched_is_one_by_one_and_padding_changes_nothing(name: str, questions: list[Example]) -> None:
    together = reading(name, questions)
    for row, example in enumerate(questions):
        alone = reading(name, [example])
        width, choices = len(example.words), len(example.candidates)
        close(together.attention[row, :width], alone.attention[0])
        close(together.probabilities[row, :choices], alone.probabilities[0])
        assert not together.attention[row, width:].any()
        assert not together.probabilities[row, choices:].any()


@NAMES
@given(example=examples(), order=st.randoms(use_true_random=False))
def test_permuting_candidates_permutes_probabilities(name: str, example: Example, order: object) -> None:
    places = list(range(len(example.candidates)))
    order.shuffle(places)  # type: ignore[attr-defined]
    shuffled = replace(example, candidates=tuple(example.candidates[place] for place in places))
    close(reading(name, [shuffled]).probabilities[0], reading(name, [example]).probabilities[0, places])


def renamed(example: Example, new: dict[str, str]) -> Example:
    def words(old: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new.get(word, word) for word in old)

    return Example("x", tuple(map(words, example.document)), words(example.question), words(example.candidates))


@NAMES
@given(example=examples(), names=st.permutations(ENTITIES))
def test_renaming_entities_consistently_changes_nothing(name: str, example: Example, names: list[str]) -> None:
    new = dict(zip(ENTITIES, names, strict=True))
    close(reading(name, [renamed(example, new)]).probabilities, reading(name, [example]).probabilities)


@NAMES
@given(example=examples())
def test_renaming_unknown_words_changes_nothing(name: str, example: Example) -> None:
    new = {"Ana": "Zed", "Bo": "Yan", "Cy": "Xu"}
    close(reading(name, [renamed(example, new)]).probabilities, reading(name, [example]).probabilities)


@NAMES
@given(example=examples())
def test_attention_and_probabilities_are_distributions(name: str, example: Example) -> None:
    found = reading(name, [example])
    close(found.attention.sum(-1), torch.ones(1, dtype=found.attention.dtype))
    close(found.probabilities.sum(-1), torch.ones(1, dtype=found.probabilities.dtype))


@NAMES
def test_empty_and_repeated_candidates_get_nothing(name: str) -> None:
    example = Example("x", (("Ana", "gave", "Bo", "the", "apple"),), ("who", GAP), ("Ana", "", "Bo", "Ana"), "Ana")
    once = Example("x", example.document, example.question, ("Ana", "Bo"), "Ana")
    probabilities = reading(name, [example]).probabilities[0]
    assert probabilities[1] == 0
    assert probabilities[3] == 0
    close(probabilities[[0, 2]], reading(name, [once]).probabilities[0])


@NAMES
def test_gradients_agree_with_finite_differences(name: str) -> None:
    questions = [
        Example(
            "x", (("Ana", "gave", "Bo", "the", "apple", "."), ("Bo", "gave", "it")), ("who", GAP), ("Ana", "Bo"), "Bo"
        ),
        Example("y", (("the", "apple"),), (GAP, "."), ("apple", "the", "Cy"), "the"),
    ]
    batch = Batcher(encode_examples(questions), VOCABULARY).batch([0, 1])
    built = network(name)
    names, values = zip(*built.named_parameters(), strict=True)

    def loss(*parameters: torch.Tensor) -> torch.Tensor:
        parametrised = _Forward(built)
        given = {f"built.{key}": value for key, value in zip(names, parameters, strict=True)}
        return torch.func.functional_call(parametrised, given, (batch,))

    assert torch.autograd.gradcheck(loss, values, fast_mode=True)


class _Forward(torch.nn.Module):
    def __init__(self, built: torch.nn.Module) -> None:
        super().__init__()
        self.built = built

    def forward(self, batch: Batch) -> torch.Tensor:
        return read(self.built, batch).losses(batch.answers).sum()


@NAMES
def test_same_seed_same_weights(name: str) -> None:
    first, second = (network(name).state_dict() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)
