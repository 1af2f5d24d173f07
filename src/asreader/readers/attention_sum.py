"""Attention Sum Reader (Kadlec et al., ACL 2016): attention over the document, summed for each candidate."""

from __future__ import annotations

import torch
from torch import nn

from asreader.batches.batch import Batch, Words
from asreader.ops.pointer_sum import pointer_sum
from asreader.readers import Reading
from asreader.readers.layers import BidirectionalGRU, Dropout, Embedding, EncodedWords, attend


class AttentionSum(nn.Module):
    """e, f and g of section 3: a look-up table, a document encoder and a question encoder."""

    def __init__(
        self,
        vocabulary: int,
        *,
        embedding: int = 128,
        hidden: int = 128,
        layers: int = 1,
        normalise: str = "document",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if normalise not in ("document", "candidates"):
            raise ValueError(f"normalise is 'document' or 'candidates', not {normalise!r}")
        self.normalise = normalise
        self.dropout = Dropout(dropout)
        self.embed = Embedding(vocabulary, embedding)
        self.document_encoder = BidirectionalGRU(embedding, hidden, layers)
        self.question_encoder = BidirectionalGRU(embedding, hidden, layers)

    def read(self, document: Words) -> EncodedWords:
        """f_i(d): every word in the context of the whole document."""
        encoded: EncodedWords = self.document_encoder(self.dropout.drop_words(self.embed.embed(document)))
        return encoded

    def answer(self, document: EncodedWords, batch: Batch) -> Reading:
        """Equations 1 and 2, with P over the whole document or over the candidates alone."""
        question = self.question_encoder(self.dropout.drop_words(self.embed.embed(batch.question))).last
        # The dropout mask of the question is shared by all positions of the document.
        log_attention = attend(document, self.dropout(question), batch.in_document)
        support = pointer_sum(log_attention, batch.candidate_at, batch.candidate_count)
        if self.normalise == "candidates":
            # A question none of whose candidates is mentioned has no distribution: all stay at -inf.
            total = support.logsumexp(-1, keepdim=True)
            support = torch.where(
                support.isneginf(), -torch.inf, support - total.clamp(min=torch.finfo(total.dtype).min)
            )
        return Reading(log_attention, support)
