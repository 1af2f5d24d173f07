"""prediction files over the training questions -> a Teacher: what the reader should say of every candidate.

A question's loss is the cross entropy -sum_c M(c) log P(c) with M(c) = (1 - w) [c is the answer] + w T(c), where T is
the mean of the files' probabilities and w the teacher's weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from asreader.data.store import NO_ANSWER, Store
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.predictions import PredictionLine, mask_distinct_candidates
from asreader.system.progress import show_spinner


@dataclass(frozen=True)
class Teacher:
    """Probabilities of the candidates of every training question, end to end, in the data's own order."""

    probabilities: NDArray[np.float32]
    ends: NDArray[np.int64]
    weight: float

    def look_up(self, numbers: NDArray[np.intp], width: int) -> Float[Tensor, "B C"]:
        """T of these questions, padded with zeros."""
        padded = np.zeros((len(numbers), width), np.float32)
        for row, number in zip(padded, numbers, strict=True):
            own = self.probabilities[self.ends[number - 1] if number else 0 : self.ends[number]]
            row[: len(own)] = own
        return torch.from_numpy(padded)


def load_teacher(files: Sequence[Path], weight: float, store: Store) -> Teacher:
    """The mean of prediction files in any order; each must have every trainable question, and may have more."""
    if not files:
        raise InputError("train.teacher names no file")
    numbers = {id: number for number, id in enumerate(store.ids)}
    if len(numbers) < len(store):
        raise InputError("train.teacher: two training questions share an id, so that predictions cannot be told apart")
    ends = _candidate_ends(store)
    total = np.zeros(int(ends[-1]), np.float32)
    for path in files:
        missing = store.answerable.astype(np.bool_)
        with show_spinner(f"reading {path.name}"):
            for line in predictions.iterate_predictions(path):
                number = numbers.get(line.id)
                if number is not None:
                    own = _match_candidates(line, store, number, path)
                    total[ends[number] - len(own) : ends[number]] += own
                    missing[number] = False
        if missing.any():
            first = store.ids[int(missing.argmax())]
            raise InputError(
                f"{path}: {missing.sum():,} training questions are missing, {first!r} among them; "
                "make the file by `asreader evaluate RUN TRAINING_DATA --predictions FILE`"
            )
    return Teacher(total / np.float32(len(files)), ends, weight)


def _candidate_ends(store: Store) -> NDArray[np.int64]:
    counts = np.diff(store.given_candidates.ends, prepend=0)
    for number in np.flatnonzero(counts == 0):
        counts[number] = len(_candidates(store, int(number)))
    ends: NDArray[np.int64] = counts.cumsum()
    return ends


def _candidates(store: Store, number: int) -> NDArray[np.int32]:
    given = store.given_candidates[number]
    return given if len(given) else store.candidates(number, store.document(number))


def _match_candidates(line: PredictionLine, store: Store, number: int, path: Path) -> NDArray[np.float32]:
    """A question's probabilities in the data's order of candidates, summing to one; copies of a candidate have none."""
    candidates = [store.lexicon[name] for name in _candidates(store, number)]
    answer = int(store.answers[number])
    if sorted(line.candidates) != sorted(candidates):
        raise InputError(f"{path}: the question {line.id!r} has other candidates than in the training data")
    if line.answer is not None and answer != NO_ANSWER and line.answer != store.lexicon[answer]:
        raise InputError(f"{path}: the question {line.id!r} has another answer than in the training data")
    # Of copies the first has the probability, in the file as in the data; read backwards, it is the one that stays.
    said = dict(zip(reversed(line.candidates), reversed(line.probabilities), strict=True))
    own = np.array([said[word] for word in candidates], np.float32) * mask_distinct_candidates(candidates)
    shares: NDArray[np.float32] = own / max(own.sum(), np.finfo(np.float32).tiny)
    return shares
