"""The network of stacked readers by kernels, every gradient by hand, against its definition in plain PyTorch.

On a CPU by Triton's interpreter and in float32; on a GPU by the kernels themselves, in bfloat16 too.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import torch
from asreader.kernels import recurrence
from asreader.kernels.words import distinct
from asreader.training.stacked import Encoders, Lesson, Stack
from torch import Tensor

from asreader.batches.device import resident
from asreader.cloze.stories.generator import generate_stories
from asreader.data.store import encode_examples
from asreader.data.vocabulary import build_vocabulary
from asreader.readers.attention_sum import AttentionSum
from asreader.training import stacked

pytest.importorskip("triton")
from asreader.training import stacked_kernels

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")


def found(way: ModuleType | None, lesson: Lesson, monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, ...]:
    """Losses, gradients of the words' vectors and of all weights but the table."""
    torch.manual_seed(3)
    store = encode_examples([*generate_stories(7, 3)])
    words = build_vocabulary(store.count_words(), min_count=2, unknown=5)
    data = resident(store, words, device=DEVICE)
    numbers, sizes = np.array([[0, 1, 2, 3], [6, 5, 6, 6]]), torch.tensor([4, 2], device=DEVICE)
    networks = [AttentionSum(words.size, embedding=16, hidden=64) for _ in numbers]
    weights = Stack.zeros(2, networks[0], DEVICE)
    for reader, network in enumerate(networks):
        for name, view in weights.views(reader).items():
            if "bias" in name:
                torch.nn.init.normal_(network.get_parameter(name), std=0.5)
            view.copy_(network.get_parameter(name).detach())
    widths = data.widths(numbers)
    batch = data.batch(torch.from_numpy(numbers).to(DEVICE), sizes, widths)
    met = distinct(batch.document, batch.question, words.size, widths.words, widths.lines)
    if way is not None:
        task = stacked_kernels.task(way, weights, stacked.vectors(weights, met), met, batch, lesson)
        into = [Encoders(*map(torch.zeros_like, own.tensors())) for own in (weights.document, weights.question)]
        learnt = stacked_kernels.learnt(task, *into)
        every = [learnt.to_vectors, *into[0].tensors(), *into[1].tensors()]
        squared = torch.stack([tensor.float().square().flatten(1).sum(dim=1) for tensor in every]).sum(dim=0)
        torch.testing.assert_close(torch.cat([*learnt.squares], dim=1).sum(dim=1), squared, rtol=1e-3, atol=0.0)
        return learnt.losses, *every
    monkeypatch.setattr(recurrence, "fastest", lambda *_: None)
    weights = weights.learnable()
    vectors = stacked.vectors(weights, met).detach().requires_grad_()
    losses = stacked.losses(weights, vectors, met, batch, lesson)
    return losses, *torch.autograd.grad(losses.sum(), (vectors, *weights.tensors()[1:]))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("taught", [False, True])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16] if GPU else [torch.float32])
def test_losses_and_gradients(
    precision: torch.dtype, taught: bool, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = ["persistent"] if precision == torch.float32 else ["persistent", "cluster"]
    torch.manual_seed(1)
    keys = torch.tensor([5, 9], device=DEVICE)
    said = torch.rand(2, 4, 10, device=DEVICE) if taught else None
    lesson = Lesson(precision, dropout, keys, said, 0.4)
    expected = found(None, lesson, monkeypatch)
    near = 1e-4 if precision == torch.float32 else 0.05
    for name in ways:
        way = pytest.importorskip(f"asreader.kernels.{name}")
        for one, other in zip(expected, found(way, lesson, monkeypatch), strict=True):
            assert one.shape == other.shape
            assert (one.float() - other.float()).abs().max() <= near * max(one.abs().max().item(), 1e-3)
