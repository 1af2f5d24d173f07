"""stacked readers and a data set on the device -> an Evaluation of each: all readers read each batch together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from asreader.batches.device import NOBODY, ReadersBatch, Resident, Widths
from asreader.batches.host import Mentions
from asreader.data.store import NO_ANSWER, Store
from asreader.evaluation.predictions import Prediction
from asreader.inference.reader import EVALUATION_BATCH, Evaluation, _prediction
from asreader.kernels.pointer_sum import pointer_sum
from asreader.readers import Reading
from asreader.system.progress import track_progress
from asreader.training import stacked
from asreader.training.stacked import Stack


@dataclass(frozen=True)
class Examiner:
    """What readers are validated on. `unknown_words` is the data's share of them: the same for all readers."""

    store: Store
    data: Resident
    unknown_words: float
    precision: torch.dtype

    @cached_property
    def _blanks(self) -> list[Prediction]:
        """All of the predictions that no reader has a say in: made once, because making them takes the longest."""
        nothing = np.zeros(self.data.choices, np.float32)
        return [_prediction(self.store, number, nothing) for number in range(len(self.store))]

    def evaluations(self, weights: Stack) -> list[Evaluation]:
        """What `Reader.evaluate` finds for each reader, computed for all at once."""
        readers = weights.readers
        probabilities = np.zeros((readers, len(self.store), self.data.choices), np.float32)
        total = torch.zeros(readers, dtype=torch.float64)
        pointed = torch.zeros(readers, dtype=torch.int64)
        batches = -(-len(self.store) // EVALUATION_BATCH)
        for numbers, found, losses in track_progress(self._readings(weights), "reading", batches):
            probabilities[:, numbers] = found
            total += losses.nansum(dim=1).cpu()
            pointed += losses.isfinite().sum(dim=1).cpu()
        return [
            Evaluation(
                predictions=[
                    replace(blank, probabilities=found[: len(blank.candidates)])
                    for blank, found in zip(self._blanks, probabilities[reader], strict=True)
                ],
                loss=float(total[reader]) / max(1, int(pointed[reader])),
                answer_not_in_document=int((self.store.answers != NO_ANSWER).sum() - self.store.answerable.sum()),
                unknown_words=self.unknown_words,
            )
            for reader in range(readers)
        ]

    @torch.inference_mode()
    def _readings(self, weights: Stack) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float32], Float[Tensor, "N B"]]]:
        """Examples of like length: their numbers, the candidates' probabilities, losses (NaN: no support)."""
        order = np.argsort(self.store.lengths, kind="stable")
        for start in range(0, len(order), EVALUATION_BATCH):
            numbers = order[start : start + EVALUATION_BATCH]
            whole = np.resize(numbers, EVALUATION_BATCH)  # a short last batch repeats itself: one shape for all
            device = weights.embed.device
            same = torch.from_numpy(whole).to(device).expand(weights.readers, -1)
            sizes = torch.full((weights.readers,), len(numbers), device=device)
            widths = self.data.widths(whole)
            batch = stacked.gathered(self.data, same, sizes, widths)
            reading = self._reading(weights, batch, widths)
            found = reading.probabilities.unflatten(0, same.shape)[:, : len(numbers)]
            own = reading.log_probabilities.gather(1, batch.answers.flatten().long().clamp(min=0)[:, None])
            losses = torch.where(batch.counted, -own.view(same.shape), torch.nan)[:, : len(numbers)]
            yield numbers, found.cpu().numpy(), losses.double()

    def _reading(self, weights: Stack, batch: ReadersBatch, widths: Widths) -> Reading:
        """What all readers return, one after the other as if they were one batch."""
        attention = stacked.log_attention(weights, batch, widths, self.precision).flatten(0, 1)
        candidates, choices = batch.candidate_at.flatten(0, 1).long(), self.data.choices
        row, column = (candidates != NOBODY).nonzero(as_tuple=True)
        mentions = Mentions(row * choices + candidates[row, column], row * attention.shape[1] + column)
        return Reading(attention.exp(), pointer_sum(attention, mentions, choices))
