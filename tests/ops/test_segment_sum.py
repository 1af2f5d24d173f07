"""Sums over the positions of each row, against loops."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from asreader import ops
from asreader.ops.segment_sum import Positions, start_sum, sum_by_row
from asreader.ops.unique_rows import NO_WORD, find_unique_rows

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WIDEST = 1288 if DEVICE.type == "cuda" else 264  # Triton's interpreter is slow
SIZES = [(1, 1, 3), (32, 2, 16), (33, 33, 5), (150, 7, 130), (64, 1, 16), (200, 90, 8), (300, 4, WIDEST)]


def test_positions_sorted_by_row() -> None:
    torch.manual_seed(1)
    document = torch.randint(0, 30, (2, 5, 40))
    positions = find_unique_rows(document, document[..., :1], 30, bound=40, tokens=6).document
    found = positions.by_row
    for n in range(2):
        rows = positions.index[n].flatten().tolist()
        assert found.rows[n].tolist() == sorted(rows)
        for row in range(40):
            own = [position for position, number in enumerate(rows) if number == row]
            end = found.ends[n, row]
            assert found.order[n, end - len(own) : end].tolist() == own


def draw_values(
    positions: int, rows: int, columns: int, empty: float, dtype: torch.dtype
) -> tuple[Tensor, Positions, Tensor]:
    """Values at positions, of which some hold no word; the sum for each row."""
    torch.manual_seed(positions)
    document = torch.randint(1, rows + 1, (2, positions, 1), device=DEVICE)
    document[:, positions // 2 :] = 1
    document[torch.rand(document.shape, device=DEVICE) < empty] = NO_WORD
    where = find_unique_rows(document, document[..., :1], rows + 1, bound=rows + 3, tokens=positions + 1).document
    # Part of something wider, as the recurrence hands it over.
    values = torch.randn(4, positions, columns + 8, device=DEVICE, dtype=dtype)[..., 8:]
    values *= (document.flatten(1) != NO_WORD).repeat_interleave(2, dim=0)[..., None]
    expected = torch.zeros(2, rows + 3, 2, columns, dtype=torch.float64, device=DEVICE)
    for r in range(4):
        expected[r // 2, :, r % 2].index_add_(0, where.index[r // 2].flatten(), values[r].double())
    return values, where, expected.float()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16] if DEVICE.type == "cuda" else [torch.float32])
@pytest.mark.parametrize(("positions", "rows", "columns"), SIZES)
@pytest.mark.parametrize("empty", [0.0, 0.1, 0.5, 1.0])
def test_kernels_sum_by_row(
    positions: int, rows: int, columns: int, empty: float, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows within a chunk, over its edge, over several chunks, rows that stand nowhere, positions without a word."""
    triton = pytest.importorskip("asreader.ops.segment_sum.triton")
    monkeypatch.setattr(torch, "empty_like", lambda like: torch.full_like(like, torch.nan))
    values, where, expected = draw_values(positions, rows, columns, empty, dtype)
    found = triton.start_sum(where, expected.to(dtype))(values)()
    near = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 8e-3, "atol": 1e-5}
    torch.testing.assert_close(found.float(), expected, **near)


@pytest.mark.parametrize("implementation", ["reference", "cpu"])
@pytest.mark.parametrize(("positions", "rows", "columns"), SIZES)
@pytest.mark.parametrize("empty", [0.0, 0.5, 1.0])
def test_every_implementation_sums_by_row(
    implementation: str, positions: int, rows: int, columns: int, empty: float
) -> None:
    values, where, expected = draw_values(positions, rows, columns, empty, torch.float32)
    with ops.using(implementation, "segment_sum"):
        found = sum_by_row(values, where, expected.shape)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_half_precision_is_summed_in_float32() -> None:
    values, where, expected = draw_values(300, 4, 8, 0.0, torch.bfloat16)
    with ops.using("reference", "segment_sum"):
        found = sum_by_row(values, where, expected.shape)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=8e-3, atol=1e-5)


def test_where_every_position_has_a_row_of_its_own_nothing_is_added() -> None:
    values = torch.randn(4, 6, 5, device=DEVICE)
    identity = Positions.identity((2, 3, 2), DEVICE)
    found = sum_by_row(values, identity, (2, 6, 2, 5))
    assert torch.equal(found, start_sum(Positions(identity.index, 6), found.contiguous())(values)())
