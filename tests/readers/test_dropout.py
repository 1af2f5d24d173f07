from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from asreader.batches.batch import NO_CANDIDATE, Batch
from asreader.batches.host import Batcher
from asreader.batches.plan import plan_step
from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl
from asreader.data.store import encode_examples
from asreader.data.vocabulary import build_vocabulary
from asreader.ops.keyed_dropout import drop, dropout_key
from asreader.readers import Forward
from asreader.readers.attention_sum import AttentionSum
from asreader.runs.folder import Run
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.training import loop
from asreader.training.engines import JobSpec, open_engine
from asreader.training.job import Job, TrainingData

PROBABILITY = 0.4


@pytest.fixture
def batch() -> Batch:
    store = encode_examples(generate_stories(5, 1))
    return Batcher(store, build_vocabulary(store.count_words(), min_count=2, unknown=5)).make_batch(range(5))


def make_reader(batch: Batch, dropout: float) -> AttentionSum:
    torch.manual_seed(3)
    size = int(max(batch.document.rows.max(), batch.question.rows.max())) + 1
    return AttentionSum(size, embedding=6, hidden=5, dropout=dropout).double()


def read(network: AttentionSum, batch: Batch, key: int) -> torch.Tensor:
    with dropout_key(torch.tensor(key)):
        found: torch.Tensor = Forward(network)(batch).log_probabilities
    return found


def test_word_vectors_and_the_vector_of_the_question_are_dropped(batch: Batch) -> None:
    """Against the same in plain steps: masks of the same draws, PyTorch's own GRU, a sum for each candidate."""
    network, states, last = make_reader(batch, PROBABILITY), [], []
    with dropout_key(torch.tensor(9)):
        for words, encoder in ((batch.document, network.document_encoder), (batch.question, network.question_encoder)):
            every = torch.arange(len(network.embed.weight))
            vectors = drop(network.embed.weight, PROBABILITY, every)[words.rows]  # a word is dropped alike everywhere
            packed = pack_padded_sequence(vectors, words.lengths, batch_first=True, enforce_sorted=False)
            outputs, final = encoder.layers[0](packed)
            states.append(pad_packed_sequence(outputs, batch_first=True)[0])
            last.append(torch.cat([final[0], final[1]], dim=-1))
        question = drop(last[1], PROBABILITY)
    scores = (states[0] * question[:, None]).sum(-1).masked_fill(~batch.in_document, -torch.inf)
    attention = scores.softmax(-1)
    expected = torch.zeros(batch.candidates.shape, dtype=torch.float64)
    for row, position, depth in (batch.candidate_at != NO_CANDIDATE).nonzero().tolist():
        expected[row, batch.candidate_at[row, position, depth]] += attention[row, position]
    assert torch.allclose(read(network, batch, 9).exp(), expected)


def test_nothing_is_dropped_when_answering_or_without_the_setting(batch: Batch) -> None:
    plain = read(make_reader(batch, 0.0), batch, 1)
    dropping = make_reader(batch, PROBABILITY)
    assert torch.equal(read(make_reader(batch, 0.0), batch, 2), plain)
    assert torch.equal(read(make_reader(batch, PROBABILITY).eval(), batch, 2), plain)
    assert not torch.allclose(read(dropping, batch, 1), plain)
    assert torch.equal(read(dropping, batch, 1), read(dropping, batch, 1))
    assert not torch.equal(read(dropping, batch, 1), read(dropping, batch, 2))


def test_what_is_dropped_depends_on_seed_epoch_and_batch_alone(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(8, 1))))
    settings = Config(
        data=DataSettings(train=str(tmp_path / "train.jsonl")),
        reader={"embedding": 6, "hidden": 5, "dropout": PROBABILITY},
        train=TrainSettings(device="cpu", engine="plain"),
    )
    store = loop.load_split(settings.data.train, "train", settings)
    data = TrainingData(loop.build_vocabulary(settings, store, None), store, None, None, None)
    same_rows = plan_step(np.arange(8), data.vocabulary, seed=0, epoch=0, batch=0).shuffled_rows

    def loss(seed: int, epoch: int, batch: int, draws: int = 0) -> float:
        job = Job(Run(tmp_path), settings, data, torch.device("cpu"))
        plan = plan_step(np.arange(8), data.vocabulary, seed=seed, epoch=epoch, batch=batch)
        torch.rand(draws)  # whatever was drawn before
        with open_engine("plain", JobSpec(settings)) as engine:
            engine.attach([job])
            return engine.run([[replace(plan, shuffled_rows=same_rows)]], lambda: False).wait().item()

    assert loss(1, 2, 3) == loss(1, 2, 3, draws=7)
    assert len({loss(1, 2, 3), loss(2, 2, 3), loss(1, 3, 3), loss(1, 2, 4)}) == 4
