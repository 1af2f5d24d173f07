"""Batches of a data set on a GPU in one launch (Triton); the reference takes some thirty.

Grid: (B, N); a program owns one example of one reader's batch. Layouts: data end to end as in FlatRows, batches padded.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from jaxtyping import Int
from torch import Tensor

from asreader.batches.batch import NO_CANDIDATE, Batch, Words
from asreader.batches.device import BatchShape, DeviceDataset
from asreader.data.vocabulary import FIRST_ANONYMOUS_ROW, PADDING_ROW
from asreader.ops.triton_support import supports_triton

BLOCK = 512


supports = supports_triton


def gather_batch(
    data: DeviceDataset,
    numbers: Int[Tensor, "N B"],
    shape: BatchShape,
    shuffled_rows: Int[Tensor, "N anonymous"] | None = None,
    keys: Int[Tensor, " N"] | None = None,
) -> Batch:
    """The contract of `ops/gather_batch`; anonymized candidates and placed questions are left to the reference."""
    if data.placement is not None or (keys is not None and data.anonymizer is not None):
        return data.make_batch(numbers, shape, shuffled_rows, keys)
    documents, questions, candidates = data.documents, data.questions, data.candidates

    def allocate(like: Tensor, *columns: int) -> Tensor:
        return torch.empty(*numbers.shape, *columns, dtype=like.dtype, device=numbers.device)

    batch = Batch(
        document=Words(allocate(documents.rows, shape.document), allocate(documents.lengths)),
        question=Words(allocate(questions.rows, shape.question), allocate(questions.lengths)),
        in_document=allocate(data.eligible, shape.document),
        candidates=allocate(candidates.rows, data.candidate_count),
        eligible=allocate(data.eligible, data.candidate_count),
        candidate_at=allocate(data.candidate_at, shape.document, 1),
        answers=allocate(data.answers),
    )
    readers, examples = numbers.shape
    _gather[(examples, readers)](
        documents.rows, documents.starts, documents.lengths, questions.rows, questions.starts, questions.lengths,
        candidates.rows, candidates.starts, candidates.lengths, data.eligible.view(torch.uint8), data.candidate_at,
        data.answers, numbers.contiguous(), numbers if shuffled_rows is None else shuffled_rows.contiguous(),
        batch.document.rows, batch.document.lengths, batch.question.rows, batch.question.lengths, batch.candidates,
        batch.eligible.view(torch.uint8), batch.candidate_at, batch.in_document.view(torch.uint8), batch.answers,
        shape.document, shape.question, data.candidate_count, 0 if shuffled_rows is None else shuffled_rows.shape[1],
        BLOCK=BLOCK,
    )  # fmt: skip
    return batch


@triton.jit
def _shuffle(row, shuffled, n, anonymous):
    number = row - FIRST
    return tl.load(shuffled + n * anonymous + number, mask=(number >= 0) & (number < anonymous), other=row)


@triton.jit
def _gather(
    documents, starts, lengths, questions, asked_starts, asked_lengths, heads, head_starts, head_counts, is_eligible,
    mentions, answers, numbers, shuffled, document, document_lengths, question, question_lengths, candidates, eligible,
    candidate_at, in_document, answer, T, Q, C, anonymous, BLOCK: tl.constexpr,
):  # fmt: skip
    b, n, batch = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.num_programs(0)
    here = n * batch + b
    example = tl.load(numbers + here).to(tl.int64)
    start, length = tl.load(starts + example), tl.load(lengths + example)
    asked_start, asked_length = tl.load(asked_starts + example), tl.load(asked_lengths + example)
    head_start, head_count = tl.load(head_starts + example), tl.load(head_counts + example)
    for first in range(0, T, BLOCK):
        t = first + tl.arange(0, BLOCK)
        is_word, target = (t < length) & (t < T), here * T + t
        row = tl.load(documents + start + t, mask=is_word, other=PADDING)
        tl.store(document + target, _shuffle(row, shuffled, n, anonymous), mask=t < T)
        tl.store(candidate_at + target, tl.load(mentions + start + t, mask=is_word, other=NONE), mask=t < T)
        tl.store(in_document + target, is_word.to(tl.uint8), mask=t < T)
    for first in range(0, Q, BLOCK):
        t = first + tl.arange(0, BLOCK)
        row = tl.load(questions + asked_start + t, mask=(t < asked_length) & (t < Q), other=PADDING)
        tl.store(question + here * Q + t, _shuffle(row, shuffled, n, anonymous), mask=t < Q)
    for first in range(0, C, BLOCK):
        c = first + tl.arange(0, BLOCK)
        is_candidate = (c < head_count) & (c < C)
        row = tl.load(heads + head_start + c, mask=is_candidate, other=PADDING)
        tl.store(candidates + here * C + c, _shuffle(row, shuffled, n, anonymous), mask=c < C)
        tl.store(eligible + here * C + c, tl.load(is_eligible + head_start + c, mask=is_candidate, other=0), mask=c < C)
    tl.store(document_lengths + here, length)
    tl.store(question_lengths + here, asked_length)
    tl.store(answer + here, tl.load(answers + example))


FIRST, PADDING, NONE = (tl.constexpr(row) for row in (FIRST_ANONYMOUS_ROW, PADDING_ROW, NO_CANDIDATE))
