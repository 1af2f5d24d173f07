"""Weighted-average blending: the paper's comparison, attention blends word vectors and the nearest candidate wins."""

from __future__ import annotations

import torch
from torch import nn

from asreader.batches.batch import Batch, Words
from asreader.ops.precision import full_precision
from asreader.readers import Reading
from asreader.readers.layers import BidirectionalGRU, Embedding, EncodedWords, attend


class Blending(nn.Module):
    """r = sum_i s_i e(w_i); P(a') is proportional to exp(r . e(a')), for candidates in the document or not."""

    def __init__(self, vocabulary: int, *, embedding: int = 128, hidden: int = 128, layers: int = 1) -> None:
        super().__init__()
        self.embed = Embedding(vocabulary, embedding)
        self.document_encoder = BidirectionalGRU(embedding, hidden, layers)
        self.question_encoder = BidirectionalGRU(embedding, hidden, layers)

    def read(self, document: Words) -> EncodedWords:
        """Every word in the context of the whole document."""
        encoded: EncodedWords = self.document_encoder(self.embed.embed(document))
        return encoded

    def answer(self, document: EncodedWords, batch: Batch) -> Reading:
        """Attend as the Attention Sum Reader does, then compare the blend of word vectors with each candidate's."""
        question = self.question_encoder(self.embed.embed(batch.question)).last
        log_attention = attend(document, question, batch.in_document)
        with full_precision(log_attention.device.type):
            blend = torch.einsum("bt,bte->be", log_attention.exp(), self.embed(batch.document.rows.long()))
            scores = torch.einsum("be,bce->bc", blend, self.embed(batch.candidates.long()))
        return Reading(log_attention, scores.masked_fill(~batch.eligible, -torch.inf).log_softmax(dim=-1))
