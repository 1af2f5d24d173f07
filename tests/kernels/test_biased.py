"""A product of vectors with ones and weights with biases is a product and a sum."""

from __future__ import annotations

import pytest
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize(("readers", "words", "rows", "width"), [(2, 5, 6, 16), (1, 1, 1, 3), (3, 7, 13, 40)])
def test_one_product_for_both(readers: int, words: int, rows: int, width: int) -> None:
    biased = pytest.importorskip("asreader.ops.gru.kernel_weights")
    torch.manual_seed(rows)
    vectors, weights = (torch.randn(readers, count, width, device=DEVICE) for count in (words, rows))
    biases = torch.randn(readers, rows, device=DEVICE)
    wide = biased.with_biases(weights, biases, torch.float32)
    found = torch.bmm(biased.with_ones(vectors), wide.transpose(1, 2))
    torch.testing.assert_close(found, torch.einsum("nwe,nre->nwr", vectors, weights) + biases[:, None])
    assert torch.equal(wide[..., :width], weights)
