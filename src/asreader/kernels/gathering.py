"""a data set on a device, numbers of examples -> batches of N readers, in one launch (Triton).

`data/resident` defines what a batch is. There it is some thirty launches, which run beside the step before it and are
in its way.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from jaxtyping import Int
from torch import Tensor

from asreader.batches.device import NOBODY, ReadersBatch, Resident, Widths
from asreader.data.vocabulary import FIRST_ANONYMOUS_ROW, PADDING_ROW

BLOCK = 512


def batch(
    data: Resident,
    numbers: Int[Tensor, "N B"],
    sizes: Int[Tensor, " N"],
    widths: Widths,
    dealt: Int[Tensor, "N anonymous"] | None = None,
) -> ReadersBatch:
    """What `Resident.batch` gathers of data in which nothing is strange and questions stand apart."""
    (readers, examples), device, documents, questions = numbers.shape, numbers.device, data.documents, data.questions
    width, asked = widths.document, widths.question

    def room(like: torch.dtype, *columns: int) -> Tensor:
        return torch.empty(readers, examples, *columns, dtype=like, device=device)

    made = ReadersBatch(
        document=room(documents.rows.dtype, width),
        document_lengths=room(documents.lengths.dtype),
        question=room(questions.rows.dtype, asked),
        question_lengths=room(questions.lengths.dtype),
        candidate_at=room(data.candidate_at.dtype, width),
        answers=room(data.answers.dtype),
        counted=room(torch.bool),
        proper=room(torch.bool, width),
    )
    _gather[(examples, readers)](
        documents.rows, documents.starts, documents.lengths, questions.rows, questions.starts, questions.lengths,
        data.candidate_at, data.answers, data.supported.view(torch.uint8), numbers.contiguous(), sizes.contiguous(),
        numbers if dealt is None else dealt.contiguous(), made.document, made.question, made.candidate_at,
        made.readable.view(torch.uint8), made.document_lengths, made.question_lengths, made.answers,
        made.counted.view(torch.uint8), width, asked, 0 if dealt is None else dealt.shape[1], BLOCK=BLOCK,
    )  # fmt: skip
    return made


@triton.jit
def _dealt_anew(row, dealt, n, anonymous):
    number = row - FIRST
    return tl.load(dealt + n * anonymous + number, mask=(number >= 0) & (number < anonymous), other=row)


@triton.jit
def _gather(
    documents, starts, lengths, questions, asked_starts, asked_lengths, candidates, answers, supported, numbers, sizes,
    dealt, document, question, candidate_at, readable, document_lengths, question_lengths, answer, counted, T, Q,
    anonymous, BLOCK: tl.constexpr,
):  # fmt: skip
    b, n, batch = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.num_programs(0)
    here = n * batch + b
    example = tl.load(numbers + here).to(tl.int64)
    start, length = tl.load(starts + example), tl.load(lengths + example)
    asked_start, asked_length = tl.load(asked_starts + example), tl.load(asked_lengths + example)
    for first in range(0, T, BLOCK):
        t = first + tl.arange(0, BLOCK)
        real, to = t < length, here * T + t
        row = tl.load(documents + start + t, mask=real & (t < T), other=PADDING)
        tl.store(document + to, _dealt_anew(row, dealt, n, anonymous), mask=t < T)
        tl.store(
            candidate_at + to, tl.load(candidates + start + t, mask=real & (t < T), other=NO_CANDIDATE), mask=t < T
        )
        tl.store(readable + to, real.to(tl.uint8), mask=t < T)
    for first in range(0, Q, BLOCK):
        t = first + tl.arange(0, BLOCK)
        row = tl.load(questions + asked_start + t, mask=(t < asked_length) & (t < Q), other=PADDING)
        tl.store(question + here * Q + t, _dealt_anew(row, dealt, n, anonymous), mask=t < Q)
    tl.store(document_lengths + here, length)
    tl.store(question_lengths + here, asked_length)
    tl.store(answer + here, tl.load(answers + example))
    present = b < tl.load(sizes + n)
    tl.store(counted + here, tl.where(present, tl.load(supported + example), 0).to(tl.uint8))


FIRST, PADDING, NO_CANDIDATE = (tl.constexpr(row) for row in (FIRST_ANONYMOUS_ROW, PADDING_ROW, NOBODY))
