"""Weighted-average blending: the paper's comparison, attention blends word vectors and the nearest candidate wins."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from asreader.batches.host import Batch, Words
from asreader.kernels.gru import BidirectionalGRU
from asreader.readers import Reading
from asreader.readers.attention_sum import attention


class Blending(nn.Module):
    """r = sum_i s_i e(w_i); P(a') is proportional to exp(r . e(a')), for candidates in the document or not."""

    def __init__(self, vocabulary: int, *, embedding: int = 128, hidden: int = 128, layers: int = 1) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, embedding)
        self.document_encoder = BidirectionalGRU(embedding, hidden, layers)
        self.question_encoder = BidirectionalGRU(embedding, hidden, layers)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)

    def read(self, document: Words) -> Float[Tensor, "B T states"]:
        """Every word in the context of the whole document."""
        states: Tensor = self.document_encoder(self.embed, document)[0]
        return states

    def answer(self, document: Float[Tensor, "B T states"], batch: Batch) -> Reading:
        """Attend as the Attention Sum Reader does, then compare the blend of word vectors with each candidate's."""
        question = self.question_encoder.last(self.embed, batch.question)
        weights = attention(document, question, batch).exp()
        with torch.autocast(document.device.type, enabled=False):
            blend = torch.einsum("bt,bte->be", weights, self.embed(batch.document.rows))
            scores = torch.einsum("be,bce->bc", blend, self.embed(batch.candidates))
        return Reading(weights, scores.masked_fill(~batch.eligible, -torch.inf).log_softmax(dim=-1))
