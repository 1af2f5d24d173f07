from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from asreader.kernels.gru import packed
from torch.nn import functional

from asreader.batches.host import Batch, Batcher
from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl
from asreader.data.store import encode_examples
from asreader.data.vocabulary import build_vocabulary
from asreader.readers.attention_sum import AttentionSum
from asreader.runs.folder import Run
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.training import loop

SHARE = 0.4


@pytest.fixture
def batch() -> Batch:
    store = encode_examples(generate_stories(5, 1))
    return Batcher(store, build_vocabulary(store.count_words(), min_count=2, unknown=5)).batch(range(5))


def reader(batch: Batch, dropout: float) -> AttentionSum:
    torch.manual_seed(3)
    size = int(max(batch.document.rows.max(), batch.question.rows.max())) + 1
    return AttentionSum(size, embedding=6, hidden=5, dropout=dropout).double()


def drawn(network: AttentionSum, batch: Batch, seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    return network.answer(network.read(batch.document), batch).log_probabilities


def test_word_vectors_and_the_questions_vector_are_dropped(batch: Batch) -> None:
    """Against the same in plain steps: masks of the same draws, PyTorch's own GRU, a sum for each candidate."""
    network, states = reader(batch, SHARE), []
    torch.manual_seed(9)
    for words, encoder in ((batch.document, network.document_encoder), (batch.question, network.question_encoder)):
        distinct, place = words.rows.unique(return_inverse=True)  # a word lacks the same numbers wherever it stands
        vectors = functional.dropout(network.embed.weight[distinct], SHARE)[place]
        states.append(packed(encoder.layers[0], vectors, words))  # type: ignore[arg-type]
    question = functional.dropout(states[1][1], SHARE)
    scores = (states[0][0] * question[:, None]).sum(-1).masked_fill(~batch.readable, -torch.inf)
    attention = scores.softmax(-1).flatten()
    expected = torch.zeros(batch.candidates.numel(), dtype=torch.float64)
    for candidate, position in zip(batch.mentions.candidates, batch.mentions.positions, strict=True):
        expected[candidate] += attention[position]
    assert torch.allclose(drawn(network, batch, 9).exp().flatten(), expected)


def test_nothing_is_dropped_when_answering_or_without_the_setting(batch: Batch) -> None:
    plain = drawn(reader(batch, 0.0), batch, 1)
    assert torch.equal(drawn(reader(batch, 0.0), batch, 2), plain)
    assert torch.equal(drawn(reader(batch, SHARE).eval(), batch, 2), drawn(reader(batch, 0.0).eval(), batch, 1))
    assert not torch.allclose(drawn(reader(batch, SHARE), batch, 1), plain)
    assert not torch.equal(drawn(reader(batch, SHARE), batch, 1), drawn(reader(batch, SHARE), batch, 2))


def test_what_is_dropped_depends_on_seed_epoch_and_batch_alone(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(8, 1))))
    settings = Config(
        data=DataSettings(train=str(tmp_path / "train.jsonl")),
        reader={"embedding": 6, "hidden": 5, "dropout": SHARE},
        train=TrainSettings(device="cpu"),
    )
    store = loop.load(settings.data.train, "train", settings)
    words = loop.vocabulary(settings, store, None)

    def loss(seed: int, epoch: int, number: int, draws: int = 0) -> float:
        own = replace(settings, train=replace(settings.train, seed=seed))
        training = loop.Training(Run(tmp_path), own, words, store, None)
        first = loop.Training(Run(tmp_path), settings, words, store, None)
        training.reader.network.load_state_dict(first.reader.network.state_dict())
        training.position = replace(training.position, epoch=epoch)
        torch.rand(draws)  # whatever was drawn before
        return training.step(np.arange(8), number).item()

    assert loss(1, 2, 3) == loss(1, 2, 3, draws=7)
    assert len({loss(1, 2, 3), loss(2, 2, 3), loss(1, 3, 3), loss(1, 2, 4)}) == 4
