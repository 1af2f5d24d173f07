"""N readers and a data set on the device -> an Evaluation of each: all readers read each batch together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from asreader.batches.batch import Batch
from asreader.batches.device import BatchShape, DeviceDataset
from asreader.inference.store_evaluation import EVALUATION_BATCH, Evaluation, PredictionTemplates
from asreader.ops.gather_batch import gather_batch
from asreader.readers import Reading
from asreader.system.progress import track_progress

ReadBatch = Callable[[dict[str, Tensor], Batch, BatchShape], Reading]
"""Weights of N readers and a batch for each -> a Reading whose tensors have a leading axis of readers."""


@dataclass(frozen=True)
class StackedEvaluator:
    """What readers are validated on, and how they read."""

    data: DeviceDataset
    templates: PredictionTemplates
    read_batch: ReadBatch

    @torch.inference_mode()
    def evaluate(self, weights: dict[str, Tensor], readers: int) -> list[Evaluation]:
        """What `Reader.evaluate` finds for each reader, computed for all at once."""
        store, device = self.templates.store, self.data.answers.device
        probabilities = np.zeros((readers, len(store), self.data.candidate_count), np.float32)
        total = torch.zeros(readers, dtype=torch.float64)
        counted = torch.zeros(readers, dtype=torch.int64)
        order = np.argsort(store.lengths, kind="stable")
        starts = range(0, len(order), EVALUATION_BATCH)
        for start in track_progress(iter(starts), "reading", len(starts)):
            numbers = order[start : start + EVALUATION_BATCH]
            whole = np.resize(numbers, EVALUATION_BATCH)  # a short last batch repeats itself: one shape for all
            shape = self.data.choose_shape(whole)
            same = torch.from_numpy(whole).to(device).expand(readers, -1)
            batch = gather_batch(self.data, same, shape)
            reading = self.read_batch(weights, batch, shape)
            flat = Reading(reading.log_attention.flatten(0, 1), reading.log_probabilities.flatten(0, 1))
            losses = flat.compute_losses(batch.answers.flatten())
            found = flat.probabilities.unflatten(0, same.shape)[:, : len(numbers)]
            probabilities[:, numbers] = found.float().cpu().numpy()
            total += losses.values.view(same.shape)[:, : len(numbers)].double().sum(dim=1).cpu()
            counted += losses.is_counted.view(same.shape)[:, : len(numbers)].sum(dim=1).cpu()
        return [
            self.templates.fill(list(probabilities[reader]), float(total[reader]), int(counted[reader]))
            for reader in range(readers)
        ]
