"""Unique rows of batches against sets, and kernels against the reference."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asreader import ops
from asreader.ops.unique_rows import NO_WORD, UniqueRows, find_unique_rows

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@given(
    seed=st.integers(0, 10**6),
    readers=st.integers(1, 3),
    batch=st.integers(1, 4),
    steps=st.integers(1, 6),
    asked=st.integers(1, 3),
)
def test_every_position_finds_its_row(seed: int, readers: int, batch: int, steps: int, asked: int) -> None:
    torch.manual_seed(seed)
    table = 9
    document, question = (torch.randint(0, table, (readers, batch, columns)) for columns in (steps, asked))
    found = find_unique_rows(document, question, table, bound=12, tokens=batch * asked + 3)
    for n in range(readers):
        unique = sorted({*document[n].flatten().tolist(), *question[n].flatten().tolist()})
        assert found.rows[n].tolist() == unique + [0] * (12 - len(unique))
        assert found.counts[n] == len(unique)
        assert found.numbers[n][found.rows[n, : len(unique)].long()].tolist() == list(range(len(unique)))
        assert torch.equal(found.rows[n][found.document.index[n].long()], document[n].T.int())
        token, rows = found.question.index[n].long(), question[n].T.int()
        assert torch.equal(found.rows[n][found.tokens.index[n, 0].long()][token] * (token > 0), rows)
        assert sorted(token[token > 0].tolist()) == list(range(1, int((rows > 0).sum()) + 1))


def assert_equal(found: UniqueRows, expected: UniqueRows) -> None:
    pairs = [(found.rows, expected.rows), (found.counts, expected.counts)]
    for name in ("document", "question", "tokens"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.rows == other.rows
        pairs.append((one.index, other.index))
        if name != "tokens":
            pairs.append((one.empty, other.empty))
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    for n, count in enumerate(found.counts.tolist()):  # numbers of rows that do not occur mean nothing
        occurring = found.rows[n, :count].long()
        assert torch.equal(found.numbers[n, occurring], expected.numbers[n, occurring])


@pytest.mark.parametrize(
    ("readers", "batch", "steps", "asked", "table", "scanned"),
    [(1, 1, 1, 1, 3, 8192), (3, 4, 9, 5, 40, 16), (2, 32, 41, 11, 300, 64), (2, 3, 700, 2, 5000, 8192)],
)
def test_kernels_find_what_the_reference_finds(
    monkeypatch: pytest.MonkeyPatch, readers: int, batch: int, steps: int, asked: int, table: int, scanned: int
) -> None:
    triton = pytest.importorskip("asreader.ops.unique_rows.triton")
    monkeypatch.setattr(triton, "SCANNED", scanned)
    torch.manual_seed(table)
    rows = torch.randint(0, table, (readers, batch, steps + asked), dtype=torch.int32, device=DEVICE)
    rows[torch.rand(rows.shape, device=DEVICE) < 0.3] = NO_WORD
    document, question = rows[..., :steps], rows[..., steps:]
    sizes = table, min(table, batch * (steps + asked)) + 2, batch * asked + 3
    found = []
    for implementation in ("triton", "reference"):
        with ops.using(implementation, "unique_rows"):
            found.append(find_unique_rows(document, question, *sizes))
    assert_equal(*found)
