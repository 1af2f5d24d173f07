"""Distinct words of batches, and sums over the places of each, against sets and loops."""

from __future__ import annotations

import pytest
import torch
from asreader.kernels.words import NOTHING, Places, distinct, distinct_plainly, summed_plainly
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 4), st.integers(1, 6), st.integers(1, 3))
def test_every_place_finds_its_word(seed: int, readers: int, batch: int, width: int, asked: int) -> None:
    torch.manual_seed(seed)
    table = 9
    document, question = (torch.randint(0, table, (readers, batch, columns)) for columns in (width, asked))
    words = distinct(document, question, table, room=12, lines=batch * asked + 3)
    for n in range(readers):
        met = sorted({*document[n].flatten().tolist(), *question[n].flatten().tolist()})
        assert words.rows[n].tolist() == met + [0] * (12 - len(met))
        assert words.counts[n] == len(met)
        assert torch.equal(words.rows[n][words.document.index[n].long()], document[n].T.int())
        line, rows = words.question.index[n].long(), question[n].T.int()
        assert torch.equal((words.rows[n][words.lines.index[n, 0].long()])[line] * (line > 0), rows)
        assert sorted(line[line > 0].tolist()) == list(range(1, int((rows > 0).sum()) + 1))


@pytest.mark.parametrize(
    ("readers", "batch", "width", "asked", "table", "scanned"),
    [(1, 1, 1, 1, 3, 8192), (3, 4, 9, 5, 40, 16), (2, 32, 41, 11, 300, 64), (2, 3, 700, 2, 5000, 8192)],
)
def test_kernels_find_what_the_definition_finds(
    monkeypatch: pytest.MonkeyPatch, readers: int, batch: int, width: int, asked: int, table: int, scanned: int
) -> None:
    numbering = pytest.importorskip("asreader.ops.unique_rows.triton")
    monkeypatch.setattr(numbering, "SCANNED", scanned)
    torch.manual_seed(table)
    rows = torch.randint(0, table, (readers, batch, width + asked), dtype=torch.int32, device=DEVICE)
    rows[torch.rand(rows.shape, device=DEVICE) < 0.3] = NOTHING
    document, question = rows[..., :width], rows[..., width:]
    sizes = table, min(table, batch * (width + asked)) + 2, batch * asked + 3
    expected, found = (way(document, question, *sizes) for way in (distinct_plainly, numbering.distinct))
    for one, other in [
        (expected.rows, found.rows),
        (expected.counts, found.counts),
        *((getattr(expected, name).index, getattr(found, name).index) for name in ("document", "question", "lines")),
        *((getattr(expected, name).empty, getattr(found, name).empty) for name in ("document", "question")),
    ]:
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert all(getattr(expected, name).room == getattr(found, name).room for name in ("document", "question", "lines"))


def test_places_sorted_by_word() -> None:
    torch.manual_seed(1)
    document = torch.randint(0, 30, (2, 5, 40))
    places = distinct(document, document[..., :1], 30, room=40, lines=6).document
    found = places.by_word
    for n in range(2):
        numbers = places.index[n].flatten().tolist()
        assert found.numbers[n].tolist() == sorted(numbers)
        for word in range(40):
            mine = [place for place, number in enumerate(numbers) if number == word]
            end = found.ends[n, word]
            assert found.order[n, end - len(mine) : end].tolist() == mine


def places_with_values(
    places: int, words: int, columns: int, empty: float, precision: torch.dtype
) -> tuple[Tensor, Places, Tensor]:
    """Values at places, of which some have no word; the sum for each word."""
    torch.manual_seed(places)
    document = torch.randint(1, words + 1, (2, places, 1), device=DEVICE)
    document[:, places // 2 :] = 1
    document[torch.rand(document.shape, device=DEVICE) < empty] = NOTHING
    where = distinct(document, document[..., :1], words + 1, room=words + 3, lines=places + 1).document
    # Part of something wider, as the recurrence hands it over.
    values = torch.randn(4, places, columns + 8, device=DEVICE, dtype=precision)[..., 8:]
    values *= (document.flatten(1) != NOTHING).repeat_interleave(2, dim=0)[..., None]
    expected = torch.zeros(2, words + 3, 2, columns, dtype=torch.float64, device=DEVICE)
    for r in range(4):
        expected[r // 2, :, r % 2].index_add_(0, where.index[r // 2].flatten(), values[r].double())
    return values, where, expected.float()


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16] if DEVICE.type == "cuda" else [torch.float32])
@pytest.mark.parametrize(
    ("places", "words", "columns"),
    [(1, 1, 3), (32, 2, 16), (33, 33, 5), (150, 7, 130), (64, 1, 16), (200, 90, 8), (300, 4, 1288)],
)
@pytest.mark.parametrize("empty", [0.0, 0.1, 0.5, 1.0])
def test_sums_of_places(
    places: int, words: int, columns: int, empty: float, precision: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words within a chunk, over its edge, over several chunks, words that stand nowhere, places without a word."""
    segments = pytest.importorskip("asreader.ops.segment_sum.triton")
    monkeypatch.setattr(torch, "empty_like", lambda like: torch.full_like(like, torch.nan))
    values, where, expected = places_with_values(places, words, columns, empty, precision)
    found = segments.summing(values, where.by_word, segments.begun(where.by_word, expected.to(precision)))()
    near = {"rtol": 1e-5, "atol": 1e-5} if precision == torch.float32 else {"rtol": 8e-3, "atol": 1e-5}
    torch.testing.assert_close(found.float(), expected, **near)
    plain = summed_plainly(values, where.index.flatten(1), words + 3)
    torch.testing.assert_close(plain.float(), expected, **near)
