"""Attention Sum Reader (Kadlec et al., ACL 2016): attention over the document, summed for each candidate."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from asreader.batches.host import Batch, Words
from asreader.kernels.dropout import of_words
from asreader.kernels.gru import BidirectionalGRU
from asreader.kernels.pointer_sum import pointer_sum
from asreader.kernels.precision import full_precision
from asreader.readers import Reading


class AttentionSum(nn.Module):
    """e, f and g of section 3: one look-up table, a document encoder and a question encoder."""

    def __init__(
        self, vocabulary: int, *, embedding: int = 128, hidden: int = 128, layers: int = 1,
        normalise: str = "document", dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        if normalise not in ("document", "candidates"):
            raise ValueError(f"normalise is 'document' or 'candidates', not {normalise!r}")
        self.normalise, self.dropout = normalise, nn.Dropout(dropout)
        self.embed = nn.Embedding(vocabulary, embedding)
        self.document_encoder = BidirectionalGRU(embedding, hidden, layers)
        self.question_encoder = BidirectionalGRU(embedding, hidden, layers)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)

    def read(self, document: Words) -> Float[Tensor, "B T states"]:
        """f_i(d): every word in the context of the whole document."""
        return self.document_encoder(self._vectors(document), document)[0]  # type: ignore[no-any-return]

    def answer(self, document: Float[Tensor, "B T states"], batch: Batch) -> Reading:
        """Equations 1 and 2, with P over the whole document or over the candidates alone."""
        question = self.question_encoder.last(self._vectors(batch.question), batch.question)
        # What is dropped here is missing from the products with all positions: one draw for a question, not for a word.
        log_attention = attention(document, self.dropout(question), batch)
        support = pointer_sum(log_attention, batch.mentions, batch.candidates.shape[1])
        if self.normalise == "candidates":
            # A question none of whose candidates stands in the document has no distribution: all stay at -inf.
            support = torch.where(support.isfinite(), support - support.logsumexp(-1, keepdim=True), -torch.inf)
        return Reading(log_attention.exp(), support)

    def _vectors(self, words: Words) -> Float[Tensor, "B T E"] | nn.Embedding:
        """e: the words' vectors, or, when nothing of them is dropped, the table to look them up in."""
        return of_words(self.embed, words.rows, self.dropout) if self.training and self.dropout.p else self.embed


def attention(
    document: Float[Tensor, "B T states"], question: Float[Tensor, "B states"], batch: Batch
) -> Float[Tensor, "B T"]:
    """Equation 1: log s_i, a softmax over the document's positions, padding excluded."""
    full = torch.promote_types(document.dtype, torch.float32)  # bfloat16 scores would blur the softmax
    with full_precision(document.device.type):
        scores = torch.bmm(question.to(full)[:, None], document.to(full).mT)[:, 0]  # a third to a half of einsum's time
    return scores.masked_fill(~batch.readable, -torch.inf).log_softmax(dim=-1)
