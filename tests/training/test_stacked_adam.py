"""Adam that owes a part of its step until the weights are asked for, against Adam that does not."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton")
from asreader.kernels.words import DistinctWords, distinct
from asreader.training.stacked import Encoders, Stack
from asreader.training.stacked_adam import Moments, OwingAdam, Recipe, StackedAdam

from asreader.ops.grad_norm import triton
from asreader.ops.gru.kernel_weights import Ready
from asreader.readers.attention_sum import AttentionSum

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
VOCABULARY, READERS = 9, 2


def begun(recipe: Recipe) -> tuple[Stack, Moments, Stack | None]:
    """Weights, moments and perhaps averages."""
    torch.manual_seed(2)
    network = AttentionSum(VOCABULARY, embedding=6, hidden=5)
    weights, first, second = (Stack.zeros(READERS, network, DEVICE) for _ in range(3))
    for tensor in weights.tensors():
        tensor.normal_()
    moments = Moments(first, second, torch.zeros(READERS, 9, device=DEVICE))
    return weights, moments, Stack.of([tensor.clone() for tensor in weights.tensors()]) if recipe.average else None


def met(step: int) -> tuple[DistinctWords, list[torch.Tensor]]:
    """Words of a batch, and gradients of their vectors and of all other weights."""
    torch.manual_seed(step)
    rows = torch.randint(1, VOCABULARY, (READERS, 1, 4), device=DEVICE)
    words = distinct(rows, rows, VOCABULARY, room=6, lines=5)
    like = Stack.zeros(READERS, AttentionSum(VOCABULARY, embedding=6, hidden=5), DEVICE)
    to_vectors = torch.randn(READERS, 6, 6, device=DEVICE)
    to_vectors[torch.arange(6, device=DEVICE) >= words.counts[:, None]] = 0
    return words, [to_vectors, *(torch.randn_like(tensor) for tensor in like.tensors()[1:])]


def as_it_is(encoders: Encoders) -> Ready:
    return Ready.of(encoders.inputs, encoders.recurrent, *encoders.biases(), torch.float32)


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_what_is_owed_is_paid_when_weights_are_asked_for(average: float) -> None:
    recipe = Recipe([0.01, 0.002], 3.0, torch.float32, factors=(0.5, 1.0, 0.7), average=average)
    expected, remembered, mean = begun(recipe)
    plain = StackedAdam(expected, remembered, recipe, mean)
    weights, moments, averages = begun(recipe)
    owing = OwingAdam(weights, moments, recipe, averages)
    for step in range(8):
        words, gradients = met(step)
        for number, own in enumerate((expected.document, expected.question)):
            found, wanted = owing.ready(number), as_it_is(own)
            torch.testing.assert_close(vars(found), vars(wanted), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(owing.vectors(words)[..., :6], plain.vectors(words), rtol=1e-5, atol=1e-6)
        if step % 3 == 2:  # all at once, as where the network has no kernels
            owing.step([tensor.clone() for tensor in gradients], words)
        else:
            owed = [tensor for part in owing.owed for tensor in part.tensors()]
            for to, gradient in zip(owed, gradients[1:], strict=True):
                to.copy_(gradient)
            owing.owe(gradients[0], [triton.squares(gradients[:3]), triton.squares(gradients[3:])], words)
        plain.step(gradients, words)
        if step in (3, 4, 6):  # also twice in a row, and again before anything is owed
            owing.settle()
            owing.settle()
            _compare(weights, expected)
    owing.settle()
    for ours, theirs in ((weights, expected), (moments.first, remembered.first), (moments.second, remembered.second)):
        _compare(ours, theirs)
    if averages is not None and mean is not None:
        _compare(averages, mean)


def _compare(ours: Stack, theirs: Stack) -> None:
    for one, other in zip(ours.tensors(), theirs.tensors(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
