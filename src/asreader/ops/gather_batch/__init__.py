"""a data set on a device, numbers of examples -> Batches of N readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxtyping import Int
from torch import Tensor

from asreader import ops
from asreader.ops import Workload

if TYPE_CHECKING:
    from asreader.batches.batch import Batch
    from asreader.batches.device import BatchShape, DeviceDataset


def gather_batch(
    data: DeviceDataset,
    numbers: Int[Tensor, "N B"],
    shape: BatchShape,
    shuffled_rows: Int[Tensor, "N anonymous"] | None = None,
    keys: Int[Tensor, " N"] | None = None,
) -> Batch:
    """A batch for each reader; with shuffled rows and keys, as training sees them."""
    implementation = ops.select("gather_batch", Workload(numbers.device))
    batch: Batch = implementation.gather_batch(data, numbers, shape, shuffled_rows, keys)
    return batch
