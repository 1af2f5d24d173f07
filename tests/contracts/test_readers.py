"""What every reader must do, whatever its network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from asreader import ops, plugins, readers
from asreader.batches.batch import NO_ANSWER_INDEX, Batch
from asreader.batches.device import load_on_device
from asreader.batches.host import Batcher
from asreader.data.example import GAP, Example
from asreader.data.store import encode_examples
from asreader.data.vocabulary import Vocabulary
from asreader.ops.keyed_dropout import dropout_key
from asreader.readers import Forward, Reading

VOCABULARY = Vocabulary(("the", "gave", "to", "apple", "."), unknown=5, entities=6)
PLAIN = ["the", "gave", "to", "apple", "."]
ENTITIES = [f"@entity{n}" for n in range(12)]
NAMES = pytest.mark.parametrize("name", plugins.list_plugins("readers"))


def test_every_file_of_the_folder_is_a_reader() -> None:
    for name in plugins.list_plugins("readers"):
        assert readers.settings(name)


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
    batch = Batcher(encode_examples(questions), vocabulary).make_batch(range(len(questions)))
    found: Reading = Forward(network(name))(batch)
    return found


def close(left: Tensor, right: Tensor) -> None:
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


QUESTIONS = [
    Example("x", (("Ana", "gave", "Bo", "the", "apple", "."), ("Bo", "gave", "it")), ("who", GAP), ("Ana", "Bo"), "Bo"),
    Example("y", (("the", "apple"),), (GAP, "."), ("apple", "the", "Cy"), "the"),
    Example("z", (("@entity4", "gave", "Cy", "to", "@entity2"),), ("@entity2", GAP), ("@entity4", "Cy"), "@entity4"),
]


@NAMES
def test_gradients_agree_with_finite_differences(name: str) -> None:
    batch = Batcher(encode_examples(QUESTIONS), VOCABULARY).make_batch(range(3))
    forward = Forward(network(name))
    names, values = zip(*forward.named_parameters(), strict=True)

    def loss(*parameters: Tensor) -> Tensor:
        found: Reading = functional_call(forward, dict(zip(names, parameters, strict=True)), (batch,))
        return found.compute_losses(batch.answers).values.sum()

    assert torch.autograd.gradcheck(loss, values, fast_mode=True)


@NAMES
def test_questions_without_an_answer_or_without_support_do_not_count(name: str) -> None:
    """Their loss is 0, their gradient too, and the mean is that of the others."""
    found = reading(name, QUESTIONS)
    answers = Batcher(encode_examples(QUESTIONS), VOCABULARY).make_batch(range(3)).answers
    whole = found.compute_losses(answers)
    assert whole.is_counted.all()
    close(whole.values, -found.log_probabilities[range(3), answers])
    close(whole.mean, whole.values.mean())
    answers[1] = NO_ANSWER_INDEX
    losses = found.compute_losses(answers)
    assert losses.is_counted.tolist() == [True, False, True]
    assert losses.values[1] == 0
    close(losses.mean, whole.values[[0, 2]].mean())
    (gradient,) = torch.autograd.grad(losses.mean, found.log_probabilities)
    assert gradient.isfinite().all()
    assert not gradient[1].any()
    unsupported = replace(found, log_probabilities=torch.full_like(found.log_probabilities, -torch.inf))
    assert not unsupported.compute_losses(answers).is_counted.any()
    assert unsupported.compute_losses(answers).mean == 0
    assert not unsupported.probabilities.any()
    diverged = replace(found, log_probabilities=torch.full_like(found.log_probabilities, torch.nan))
    assert diverged.compute_losses(answers).mean.isnan()  # a reader that diverges must be noticed


@NAMES
def test_a_teacher_is_mixed_with_the_answer(name: str) -> None:
    found, answers = reading(name, QUESTIONS), torch.tensor([1, 1, 0])
    width = found.log_probabilities.shape[1]
    teacher = torch.rand(3, width, dtype=torch.float64).where(found.log_probabilities.isfinite(), 0.0)
    teacher /= teacher.sum(dim=1, keepdim=True)
    mixture = 0.3 * teacher + 0.7 * torch.nn.functional.one_hot(answers, width)
    expected = -(mixture * found.log_probabilities.where(mixture > 0, 0.0)).sum(dim=1)
    close(found.compute_losses(answers, teacher, 0.3).values, expected)
    plain = found.compute_losses(answers).values
    close(found.compute_losses(answers, torch.zeros_like(teacher), 0.3).values, plain)
    close(found.compute_losses(answers, teacher, 0.0).values, plain)


def make_networks(name: str, vocabulary: Vocabulary, options: dict[str, object]) -> list[torch.nn.Module]:
    built = []
    for seed in range(2):
        torch.manual_seed(seed)
        own = readers.build(name, vocabulary.size, {"embedding": 5, "hidden": 4, **options}).double()
        for parameter in own.parameters():
            parameter.data = parameter.data * 3 + 0.05 * torch.randn_like(parameter)
        built.append(own)
    return built


def draw_batches(vocabulary: Vocabulary) -> tuple[list[Batch], Batch]:
    """A batch for each of two readers as the host makes them, and both as tensors of a device."""
    store, numbers = encode_examples(QUESTIONS), np.array([[0, 1], [2, 0]])
    data = load_on_device(store, vocabulary, device=torch.device("cpu"))
    alone = [Batcher(store, vocabulary).make_batch(row) for row in numbers]
    return alone, data.make_batch(torch.from_numpy(numbers), data.choose_shape(numbers))


# In a small table vectors are looked up by `Positions`; where there are more rows than words, by word.
SIZES = pytest.mark.parametrize("extra", [0, 300])


@NAMES
@SIZES
@pytest.mark.parametrize("implementation", ["cpu", "reference"])
@pytest.mark.parametrize("layers", [1, 2])
def test_readers_together_are_each_alone(name: str, extra: int, implementation: str, layers: int) -> None:
    """N readers with stacked weights under vmap have the losses and gradients that each has alone."""
    vocabulary = replace(VOCABULARY, words=(*PLAIN, *(f"word{n}" for n in range(extra))))
    networks = list(map(Forward, make_networks(name, vocabulary, {"layers": layers})))
    alone, together = draw_batches(vocabulary)
    weights, buffers = stack_module_state(networks)
    rows = torch.arange(vocabulary.size).expand(2, -1)

    def losses_of(weights: dict[str, Tensor], buffers: dict[str, Tensor], tensors: dict[str, Tensor]) -> Tensor:
        batch = Batch.from_tensors(tensors, is_compact=True)
        found: Reading = functional_call(networks[0], (weights, buffers), (batch,))
        return found.compute_losses(batch.answers).values

    with ops.using(implementation):
        losses = vmap(losses_of)(weights, buffers, together.tensors() | {"table_rows": rows})
        gradients = dict(zip(weights, torch.autograd.grad(losses.sum(), list(weights.values())), strict=True))
        for number, (own, batch) in enumerate(zip(networks, alone, strict=True)):
            expected = own(batch).compute_losses(batch.answers).values
            torch.testing.assert_close(losses[number], expected, rtol=0, atol=1e-9)
            own.zero_grad()
            expected.sum().backward()
            for key, parameter in own.named_parameters():
                torch.testing.assert_close(gradients[key][number], parameter.grad, rtol=0, atol=1e-9)


@SIZES
def test_readers_together_drop_what_each_drops_alone(extra: int) -> None:
    """Dropout is a function of each reader's key, whatever the layout of the batch."""
    vocabulary = replace(VOCABULARY, words=(*PLAIN, *(f"word{n}" for n in range(extra))))
    networks = list(map(Forward, make_networks("attention_sum", vocabulary, {"dropout": 0.4})))
    alone, together = draw_batches(vocabulary)
    weights, buffers = stack_module_state(networks)
    keys = torch.tensor([11, 1 << 30])
    rows = torch.arange(vocabulary.size).expand(2, -1)

    def losses_of(weights: dict[str, Tensor], tensors: dict[str, Tensor], key: Tensor) -> Tensor:
        batch = Batch.from_tensors(tensors, is_compact=True)
        with dropout_key(key):
            found: Reading = functional_call(networks[0], (weights, buffers), (batch,))
        return found.compute_losses(batch.answers).values

    losses = vmap(losses_of)(weights, together.tensors() | {"table_rows": rows}, keys)
    for number, (own, batch) in enumerate(zip(networks, alone, strict=True)):
        with dropout_key(keys[number]):
            expected = own(batch).compute_losses(batch.answers).values
        torch.testing.assert_close(losses[number], expected, rtol=0, atol=1e-9)
        assert not torch.allclose(losses[number], own.eval()(batch).compute_losses(batch.answers).values)
        own.train()


@NAMES
def test_same_seed_same_weights(name: str) -> None:
    first, second = (network(name).state_dict() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)
