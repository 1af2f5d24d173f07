"""Batches gathered in one launch, against those of many."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asreader.batches.device import dealt, resident
from asreader.cloze.stories.generator import generate_stories
from asreader.data.store import encode_examples
from asreader.data.vocabulary import build_vocabulary

CPU = torch.device("cpu")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("redrawn", [True, False])
def test_one_launch_gathers_what_many_do(monkeypatch: pytest.MonkeyPatch, redrawn: bool) -> None:
    gathering = pytest.importorskip("asreader.ops.gather_batch.triton")
    monkeypatch.setattr(gathering, "BLOCK", 16)  # so that documents are several blocks
    store = encode_examples([*generate_stories(9, 5)])
    words = build_vocabulary(store.count_words(), min_count=3, unknown=6)
    here, there = (resident(store, words, device=device) for device in (CPU, DEVICE))
    numbers, sizes = np.array([[0, 1, 8, 3], [6, 5, 6, 6]]), torch.tensor([4, 2])
    tables = np.stack([dealt(words, np.random.default_rng(seed)) for seed in (1, 2)])
    table = torch.from_numpy(tables) if redrawn else None
    widths = here.widths(numbers)
    expected = here.batch(torch.from_numpy(numbers), sizes, widths, table)
    # Every other number of something wider, as they come in an order.
    apart = torch.from_numpy(numbers).repeat_interleave(2, dim=1)[:, ::2].to(DEVICE)
    found = gathering.batch(there, apart, sizes.to(DEVICE), widths, None if table is None else table.to(DEVICE))
    for name in (
        "document",
        "question",
        "candidate_at",
        "document_lengths",
        "question_lengths",
        "answers",
        "counted",
        "readable",
        "answer_at",
    ):
        torch.testing.assert_close(getattr(found, name).cpu(), getattr(expected, name), rtol=0, atol=0)
    assert found.document.unique().numel() > words.unknown  # not all the same
    assert found.counted.any() and not found.counted.all()
