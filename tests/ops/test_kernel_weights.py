"""A product of vectors with ones and weights with biases is a product and a sum."""

from __future__ import annotations

import pytest
import torch

from asreader.ops.gru import combine_biases, reference, run_forward
from asreader.ops.segment_sum import Positions

kernel_weights = pytest.importorskip("asreader.ops.gru.kernel_weights")

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize(("readers", "words", "rows", "width"), [(2, 5, 6, 16), (1, 1, 1, 3), (3, 7, 13, 40)])
def test_one_product_for_both(readers: int, words: int, rows: int, width: int) -> None:
    torch.manual_seed(rows)
    vectors, weights = (torch.randn(readers, count, width, device=DEVICE) for count in (words, rows))
    biases = torch.randn(readers, rows, device=DEVICE)
    wide = kernel_weights.append_biases(weights, biases, torch.float32)
    found = torch.bmm(kernel_weights.append_ones(vectors), wide.transpose(1, 2))
    torch.testing.assert_close(found, torch.einsum("nwe,nre->nwr", vectors, weights) + biases[:, None])
    assert torch.equal(wide[..., :width], weights)


def test_packed_weights_read_what_the_layers_weights_read() -> None:
    """Of two readers, with a table made of weights that hold their biases."""
    gru = pytest.importorskip("asreader.ops.gru.triton")
    torch.manual_seed(0)
    readers, hidden, width, rows, steps, batch = 2, 64, 12, 7, 3, 2
    inputs = torch.randn(readers, 2, 3 * hidden, width, device=DEVICE)
    recurrent = torch.randn(readers, 2, 3 * hidden, hidden, device=DEVICE) / 8
    of_inputs, of_products = combine_biases(*torch.randn(2, readers, 2, 3 * hidden, device=DEVICE))
    packed = kernel_weights.KernelWeights.pack(inputs, recurrent, of_inputs, of_products.flatten(0, 1), torch.float32)
    vectors = torch.randn(readers, rows, width, device=DEVICE)
    index = torch.randint(0, rows, (readers, steps, batch), dtype=torch.int32, device=DEVICE)
    lengths = torch.tensor([[3, 1], [2, 3]], device=DEVICE)
    given = packed.recurrence_inputs(kernel_weights.append_ones(vectors), Positions(index, rows), lengths)
    found = run_forward(gru, given, keep=False).states
    table = torch.einsum("nue,ndge->nudg", vectors, inputs) + of_inputs[:, None]
    looked_up = reference.look_up_inputs(table, index)
    expected = reference.step_through(
        looked_up, recurrent.flatten(0, 1), of_products.flatten(0, 1), lengths.repeat_interleave(2, dim=0)
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    room = kernel_weights.KernelWeights.allocate(inputs, recurrent, torch.float32)
    for one, other in zip(vars(room).values(), vars(packed).values(), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype and not one.any()
