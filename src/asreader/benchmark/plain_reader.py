"""store -> the Attention Sum Reader in plain PyTorch, as an engineer writes it in an afternoon: the speed baseline.

nn.Embedding, nn.GRU over packed sequences, a dense mask of candidates by positions, Adam, gradient clipping. It shares
only the encoded store with the package and computes the same indices: tests/test_benchmark.py compares probabilities
and gradients. It assumes what holds for the synthetic data: no unknown words, candidates of one word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from asreader.data.store import Store
from asreader.data.vocabulary import Vocabulary


@dataclass(frozen=True)
class PlainBatch:
    """Padded questions. Lengths stay on the CPU, as packing requires."""

    document: Tensor
    document_lengths: Tensor
    question: Tensor
    question_lengths: Tensor
    mention_mask: Tensor  # B x C x T: True where candidate c is at position t
    answers: Tensor


class PlainDataset:
    """A store as lists of tensors."""

    def __init__(self, store: Store, vocabulary: Vocabulary, device: torch.device) -> None:
        rows = torch.from_numpy(vocabulary.rows(store.lexicon)).long()
        self.device = device
        self.documents = [rows[torch.from_numpy(store.document(n)).long()] for n in range(len(store))]
        self.questions = [rows[torch.from_numpy(store.questions[n]).long()] for n in range(len(store))]
        self.candidates = [rows[torch.from_numpy(store.given_candidates[n]).long()] for n in range(len(store))]
        answers = rows[torch.from_numpy(store.answers).long()]
        self.answers = [int((row == answer).nonzero()[0]) for row, answer in zip(self.candidates, answers, strict=True)]

    def __len__(self) -> int:
        return len(self.documents)

    def make_batch(self, indices: Sequence[int] | NDArray[np.intp]) -> PlainBatch:
        """These questions, padded."""
        document = pad_sequence([self.documents[n] for n in indices], batch_first=True)
        candidates = pad_sequence([self.candidates[n] for n in indices], batch_first=True, padding_value=-1)
        question = pad_sequence([self.questions[n] for n in indices], batch_first=True)
        return PlainBatch(
            document=document.to(self.device),
            document_lengths=torch.tensor([len(self.documents[n]) for n in indices]),
            question=question.to(self.device),
            question_lengths=torch.tensor([len(self.questions[n]) for n in indices]),
            mention_mask=(candidates[:, :, None] == document[:, None, :]).to(self.device),
            answers=torch.tensor([self.answers[n] for n in indices]).to(self.device),
        )


class PlainReader(nn.Module):
    """The Attention Sum Reader."""

    def __init__(self, vocabulary: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, embedding)
        self.document = nn.GRU(embedding, hidden, batch_first=True, bidirectional=True)
        self.question = nn.GRU(embedding, hidden, batch_first=True, bidirectional=True)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)

    def forward(self, batch: PlainBatch) -> Tensor:
        """Log of the attention summed over the mentions of each candidate, B x C."""
        sequences = pack_padded_sequence(
            self.embed(batch.document), batch.document_lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.document(sequences)[0], batch_first=True)
        sequences = pack_padded_sequence(
            self.embed(batch.question), batch.question_lengths, batch_first=True, enforce_sorted=False
        )
        last = self.question(sequences)[1]
        question = torch.cat([last[0], last[1]], dim=-1)
        scores = torch.bmm(states, question[:, :, None])[:, :, 0].float()
        attention = scores.masked_fill(batch.document == 0, -torch.inf).log_softmax(dim=-1)
        return attention[:, None, :].masked_fill(~batch.mention_mask, -torch.inf).logsumexp(dim=-1)


class PlainTraining:
    """The paper's training: Adam, gradients clipped at 10."""

    def __init__(self, network: PlainReader, data: PlainDataset, precision: torch.dtype) -> None:
        self.network, self.data, self.precision = network, data, precision
        self.optimizer = torch.optim.Adam(network.parameters(), lr=0.001)

    def take_step(self, indices: Sequence[int] | NDArray[np.intp]) -> Tensor:
        """Take one training step on these questions; returns the loss."""
        batch = self.data.make_batch(indices)
        with torch.autocast(self.data.device.type, self.precision, enabled=self.precision != torch.float32):
            log_probabilities = self.network(batch)
        loss = nn.functional.nll_loss(log_probabilities, batch.answers)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 10.0)
        self.optimizer.step()
        return loss.detach()


@torch.inference_mode()
def answer_all(network: PlainReader, data: PlainDataset, size: int) -> list[int]:
    """The index of the best candidate of every question, in the order of the data."""
    best: list[int] = []
    for start in range(0, len(data), size):
        batch = data.make_batch(range(start, min(start + size, len(data))))
        best += network(batch).softmax(dim=-1).argmax(dim=-1).tolist()
    return best
