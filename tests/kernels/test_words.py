"""Distinct words of batches, and sums over the places of each, against sets and loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asreader.kernels.words import distinct, summed_plainly

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 4), st.integers(1, 6), st.integers(1, 3))
def test_every_place_finds_its_word(seed: int, readers: int, batch: int, width: int, asked: int) -> None:
    torch.manual_seed(seed)
    table = 9
    document, question = (torch.randint(0, table, (readers, batch, columns)) for columns in (width, asked))
    words = distinct(document, question, table, room=12)
    for n in range(readers):
        met = sorted({*document[n].flatten().tolist(), *question[n].flatten().tolist()})
        assert words.rows[n].tolist() == met + [0] * (12 - len(met))
        assert words.counts[n] == len(met)
        for places, rows in ((words.document, document), (words.question, question)):
            assert torch.equal(words.rows[n][places.index[n].long()], rows[n].T.int())


def test_places_sorted_by_word() -> None:
    torch.manual_seed(1)
    document = torch.randint(0, 30, (2, 5, 40))
    places = distinct(document, document[..., :1], 30, room=40).document
    found = places.by_word
    for n in range(2):
        numbers = places.index[n].flatten().tolist()
        assert found.numbers[n].tolist() == sorted(numbers)
        for word in range(40):
            mine = [place for place, number in enumerate(numbers) if number == word]
            end = found.ends[n, word]
            assert found.order[n, end - len(mine) : end].tolist() == mine


@pytest.mark.parametrize(
    ("places", "words", "columns"), [(1, 1, 3), (32, 2, 16), (33, 33, 5), (150, 7, 130), (64, 1, 16), (200, 90, 8)]
)
def test_sums_of_places(places: int, words: int, columns: int) -> None:
    """Words within a chunk, over its edge, over several chunks, and words that stand nowhere."""
    segments = pytest.importorskip("asreader.kernels.segments")
    torch.manual_seed(places)
    document = torch.randint(0, words, (2, places, 1), device=DEVICE)
    document[:, places // 2 :] = 0
    where = distinct(document, document[..., :1], words, room=words + 3).document
    # Part of something wider, as the recurrence hands it over.
    values = torch.randn(4, places, columns + 5, device=DEVICE)[..., 5:]
    expected = torch.zeros(2, words + 3, 2, columns, device=DEVICE)
    for r in range(4):
        for place, word in enumerate(where.index[r // 2].flatten().tolist()):
            expected[r // 2, word, r % 2] += values[r, place]
    found = segments.summed(values, where.by_word, torch.zeros_like(expected))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(summed_plainly(values, where.index.flatten(1), words + 3), expected)
