"""prediction files over the training questions -> a Teacher: what the reader should say of every candidate.

A question's loss is the cross entropy -sum_c M(c) log P(c) with M(c) = (1 - w) [c is the answer] + w T(c), where T is
the mean of the files' probabilities and w the teacher's weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from asreader.data.store import NO_ANSWER, Store
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.predictions import PredictionLine, mask_distinct_candidates
from asreader.readers import Reading
from asreader.system.progress import waiting


@dataclass(frozen=True)
class Teacher:
    """Probabilities of the candidates of every training question, end to end, in the data's own order."""

    probabilities: NDArray[np.float32]
    ends: NDArray[np.int64]
    weight: float

    def said(self, numbers: NDArray[np.intp], width: int) -> Float[Tensor, "B C"]:
        """T of these questions, padded with zeros."""
        padded = np.zeros((len(numbers), width), np.float32)
        for row, number in zip(padded, numbers, strict=True):
            own = self.probabilities[self.ends[number - 1] if number else 0 : self.ends[number]]
            row[: len(own)] = own
        return torch.from_numpy(padded)

    def losses(self, reading: Reading, answers: Int[Tensor, " B"], said: Float[Tensor, "B C"]) -> Float[Tensor, " N"]:
        """The loss of each question that counts without a teacher too.

        What the teacher gives to candidates that cannot be pointed at is shared out among those that can; a teacher
        that gives them nothing has nothing to say, and the answer alone counts.
        """
        counted = reading.counted(answers)
        log_probabilities, answers, said = reading.log_probabilities[counted], answers[counted], said[counted]
        possible = log_probabilities.isfinite()
        said = said.masked_fill(~possible, 0.0)
        total = said.sum(dim=-1, keepdim=True)
        weight = self.weight * (total > 0)
        right = torch.nn.functional.one_hot(answers, said.shape[1])
        mixed = (1 - weight) * right + weight * said / total.where(total > 0, 1.0)
        return -(mixed * log_probabilities.masked_fill(~possible, 0.0)).sum(dim=-1)


def paths(files: str) -> list[Path]:
    """The files that train.teacher names."""
    return [Path(name.strip()) for name in files.split(",") if name.strip()]


def teacher(files: str, weight: float, store: Store) -> Teacher:
    """The mean of prediction files in any order; each must have every trainable question, and may have more."""
    named = paths(files)
    if not named:
        raise InputError(f"train.teacher={files!r} names no file")
    numbers = {id: number for number, id in enumerate(store.ids)}
    if len(numbers) < len(store):
        raise InputError("train.teacher: two training questions share an id, so that predictions cannot be told apart")
    ends = _candidate_ends(store)
    total = np.zeros(int(ends[-1]), np.float32)
    for path in named:
        missing = store.answerable.astype(np.bool_)
        with waiting(f"reading {path.name}"):
            for line in predictions.iterate_predictions(path):
                number = numbers.get(line.id)
                if number is not None:
                    own = _matched(line, store, number, path)
                    total[ends[number] - len(own) : ends[number]] += own
                    missing[number] = False
        if missing.any():
            first = store.ids[int(missing.argmax())]
            raise InputError(
                f"{path}: {missing.sum():,} training questions are missing, {first!r} among them; "
                "make the file by `asreader evaluate RUN TRAINING_DATA --predictions FILE`"
            )
    return Teacher(total / np.float32(len(named)), ends, weight)


def _candidate_ends(store: Store) -> NDArray[np.int64]:
    counts = np.diff(store.given_candidates.ends, prepend=0)
    for number in np.flatnonzero(counts == 0):
        counts[number] = len(_candidates(store, int(number)))
    ends: NDArray[np.int64] = counts.cumsum()
    return ends


def _candidates(store: Store, number: int) -> NDArray[np.int32]:
    given = store.given_candidates[number]
    return given if len(given) else store.candidates(number, store.document(number))


def _matched(line: PredictionLine, store: Store, number: int, path: Path) -> NDArray[np.float32]:
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
