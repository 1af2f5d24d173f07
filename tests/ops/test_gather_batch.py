"""Batches gathered in one launch, against those of many."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asreader import ops
from asreader.batches.anonymous_rows import shuffle_anonymous_rows
from asreader.batches.batch import NO_CANDIDATE
from asreader.batches.device import load_on_device
from asreader.cloze.stories.generator import generate_stories
from asreader.data.store import encode_examples
from asreader.data.vocabulary import build_vocabulary
from asreader.ops.gather_batch import gather_batch

CPU = torch.device("cpu")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NUMBERS = np.array([[0, 1, 8, 3], [6, 5, 6, 6]])


@pytest.mark.parametrize("setting", ["plain", "shuffled", "anonymised", "question before"])
def test_one_launch_gathers_what_many_do(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    """Settings that the kernel does not know are left to the reference."""
    triton = pytest.importorskip("asreader.ops.gather_batch.triton")
    monkeypatch.setattr(triton, "BLOCK", 16)  # so that documents are several blocks
    store = encode_examples([*generate_stories(9, 5)])
    vocabulary = build_vocabulary(store.count_words(), min_count=3, unknown=6)
    anonymise = 0.5 if setting == "anonymised" else 0.0
    question_at = "before" if setting == "question before" else "apart"
    here, there = (
        load_on_device(store, vocabulary, device=device, question_at=question_at, anonymise=anonymise)
        for device in (CPU, DEVICE)
    )
    tables = np.stack([shuffle_anonymous_rows(vocabulary, np.random.default_rng(seed)) for seed in (1, 2)])
    table, keys = (None, None) if setting == "plain" else (torch.from_numpy(tables), torch.tensor([3, 4]))
    shape = here.choose_shape(NUMBERS)
    numbers = torch.from_numpy(NUMBERS)
    expected = here.make_batch(numbers, shape, table, keys)
    # Every other number of something wider, as they come in an order.
    apart = numbers.repeat_interleave(2, dim=1)[:, ::2].to(DEVICE)
    with ops.using("triton", "gather_batch"):
        found = gather_batch(
            there, apart, shape, *(each if each is None else each.to(DEVICE) for each in (table, keys))
        )
    for name, tensor in expected.tensors().items():
        torch.testing.assert_close(found.tensors()[name].cpu(), tensor, rtol=0, atol=0)
    assert found.document.rows.unique().numel() > vocabulary.unknown  # not all the same
    assert (found.candidate_at == NO_CANDIDATE).any() and (found.candidate_at >= 0).any()
