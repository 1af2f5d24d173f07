"""Predictions <-> file: what a reader said of each question, in words, keyed by the question's id."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from asreader.errors import InputError
from asreader.system.atomic_files import replacing

MAX_PROBABILITY = float(np.float32(1.001))
"""How far above 1 a probability may lie: float32 sums are not exact."""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The probability of each candidate, in the data's own order, beside the data's answer (None when unknown).

    A candidate that is listed twice counts once: later copies, and empty candidates, are never chosen (see `real`).
    """

    id: str
    answer: str | None
    candidates: tuple[str, ...]
    probabilities: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Any numbers -> float32 that nobody can change any more; ValueError if they are not probabilities."""
        probabilities = np.array(self.probabilities, dtype=np.float32)
        if probabilities.shape != (len(self.candidates),):
            raise ValueError(f"{len(self.candidates)} candidates but probabilities of shape {probabilities.shape}")
        if len(probabilities) and not (probabilities.min() >= 0 and probabilities.max() <= MAX_PROBABILITY):
            raise ValueError("a probability does not lie between 0 and 1")
        probabilities.setflags(write=False)
        object.__setattr__(self, "probabilities", probabilities)

    @property
    def ranking(self) -> NDArray[np.intp]:
        """Indices of the real candidates, most probable first; a tie is decided by the data's own order."""
        order = np.argsort(-self.probabilities, kind="stable")
        return order[mask_distinct_candidates(self.candidates)[order]]

    @property
    def best(self) -> int:
        """Index of the chosen candidate: the first of `ranking`, whatever the answer is."""
        ranking = self.ranking
        if not len(ranking):
            raise ValueError(f"question {self.id!r} has no candidate to choose from")
        return int(ranking[0])


def mask_distinct_candidates(candidates: Sequence[str]) -> NDArray[np.bool_]:
    """True for the candidates that count: the first copy of each one that is not empty."""
    first = {candidate: index for index, candidate in reversed(tuple(enumerate(candidates))) if candidate.strip()}
    mask = np.zeros(len(candidates), dtype=np.bool_)
    mask[list(first.values())] = True
    return mask


def write_predictions(path: str | os.PathLike[str], predictions: Iterable[Prediction]) -> None:
    """Predictions -> JSONL file (.gz and .xz are compressed), all or nothing: an interrupted write leaves no trace."""
    path = Path(path)
    with replacing(path) as scratch, _opened(scratch, path.suffix, "wb") as file:
        file.writelines(map(_line, _distinct(predictions)))


def read_predictions(path: str | os.PathLike[str]) -> list[Prediction]:
    """JSONL file (plain, .gz or .xz) -> Predictions, in the file's order."""
    return [
        Prediction(line.id, line.answer, tuple(line.candidates), np.array(line.probabilities, dtype=np.float32))
        for line in iterate_predictions(path)
    ]


@dataclass(frozen=True, slots=True)
class PredictionLine:
    """A checked line of a prediction file; plain lists, since many files are read in a row."""

    id: str
    answer: str | None
    candidates: list[str]
    probabilities: list[float]


def iterate_predictions(path: str | os.PathLike[str]) -> Iterator[PredictionLine]:
    """JSONL file (plain, .gz or .xz) -> its lines; an InputError names the file, and the line that is none."""
    seen: set[str] = set()
    for number, text in enumerate(_read(Path(path)), start=1):
        if text.strip():
            try:
                line = _parsed(text)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}:{number}: not a line of a prediction file: {error}") from error
            if line.id in seen:
                raise InputError(f"{path}:{number}: the id {line.id!r} occurs twice; each question has one line")
            seen.add(line.id)
            yield line


def _read(path: Path) -> Iterator[bytes]:
    """File -> lines; whatever keeps it from being read to its end is the user's to mend."""
    try:
        with _opened(path, path.suffix, "rb") as file:
            yield from file
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{path}: cannot be read: {reason}") from error


def _opened(path: Path, suffix: str, mode: Literal["rb", "wb"]) -> BinaryIO | gzip.GzipFile | lzma.LZMAFile:
    """The suffix is given apart from the path, because a file being written has a passing name."""
    if suffix == ".gz":
        return gzip.open(path, mode)
    if suffix == ".xz":
        return lzma.open(path, mode)
    return path.open(mode)


def _distinct(predictions: Iterable[Prediction]) -> Iterator[Prediction]:
    """Predictions as they come; one that `read` would refuse is refused before it is written."""
    seen = set()
    for prediction in predictions:
        if prediction.id in seen:
            raise InputError(f"two questions have the id {prediction.id!r}; ids must differ within a prediction file")
        seen.add(prediction.id)
        yield prediction


def _line(prediction: Prediction) -> bytes:
    """Prediction -> one line of JSON; a lone surrogate, which JSON data may hold, passes through."""
    record = {
        "id": prediction.id,
        "answer": prediction.answer,
        "candidates": prediction.candidates,
        "probabilities": _shortest(prediction.probabilities),
    }
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n".encode("utf-8", "surrogatepass")


def _shortest(values: NDArray[np.float32]) -> list[float]:
    """float32 -> the doubles with the fewest digits that read back as the same float32 (0.1, not 0.10000000149)."""
    short = values.astype(str).astype(np.float64)
    # Rounding twice, decimal to double to float32, may in theory miss by one: then every digit is written.
    exact: list[float] = np.where(short.astype(np.float32) == values, short, values).tolist()
    return exact


def _parsed(text: bytes) -> PredictionLine:
    """One line of JSON -> Line; ValueError says why it is none."""
    record = json.loads(text)
    told = record if isinstance(record, dict) else {}
    id, answer = told.get("id"), told.get("answer")
    candidates, probabilities = told.get("candidates"), told.get("probabilities")
    if not (isinstance(id, str) and isinstance(candidates, list) and isinstance(probabilities, list)):
        raise ValueError('expected an object with "id" (text), "candidates" and "probabilities" (lists)')
    if not set(map(type, candidates)) <= {str}:
        raise ValueError('"candidates" holds something that is not text')
    if not set(map(type, probabilities)) <= {int, float} or not _between(probabilities):
        raise ValueError('"probabilities" holds something that is not a number between 0 and 1')
    if len(candidates) != len(probabilities):
        raise ValueError(f"{len(candidates)} candidates but {len(probabilities)} probabilities")
    if answer is not None and not isinstance(answer, str):
        raise ValueError('"answer" is neither text nor null')
    return PredictionLine(id, answer, candidates, probabilities)


def _between(values: list[float]) -> bool:
    """Whether all lie between 0 and 1; only in a sum is a NaN sure to be noticed, wherever it stands."""
    return not values or (min(values) >= 0 and max(values) <= MAX_PROBABILITY and sum(values) >= 0)
