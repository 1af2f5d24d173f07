"""Predictions <-> JSONL file: the probability of every candidate of each question, keyed by the question's id."""

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
from asreader.system.atomic_files import atomic_write

MAX_PROBABILITY = float(np.float32(1.001))
"""Upper limit of a probability; a little above 1 because float32 sums are not exact."""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The probability of each candidate, in the order of the data, and the correct answer (None if unknown).

    Repeated and empty candidates are never chosen (see `mask_distinct_candidates`).
    """

    id: str
    answer: str | None
    candidates: tuple[str, ...]
    probabilities: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Convert the probabilities to a read-only float32 array; ValueError if they are not probabilities."""
        probabilities = np.array(self.probabilities, dtype=np.float32)
        if probabilities.shape != (len(self.candidates),):
            raise ValueError(f"{len(self.candidates)} candidates but probabilities of shape {probabilities.shape}")
        if len(probabilities) and not (probabilities.min() >= 0 and probabilities.max() <= MAX_PROBABILITY):
            raise ValueError("a probability does not lie between 0 and 1")
        probabilities.setflags(write=False)
        object.__setattr__(self, "probabilities", probabilities)

    @property
    def ranking(self) -> NDArray[np.intp]:
        """Indices of the distinct candidates, most probable first; ties keep the order of the data."""
        order = np.argsort(-self.probabilities, kind="stable")
        return order[mask_distinct_candidates(self.candidates)[order]]

    @property
    def best(self) -> int:
        """Index of the chosen candidate: the first of `ranking`."""
        ranking = self.ranking
        if not len(ranking):
            raise ValueError(f"question {self.id!r} has no candidate to choose from")
        return int(ranking[0])


def mask_distinct_candidates(candidates: Sequence[str]) -> NDArray[np.bool_]:
    """True for candidates that can be chosen: the first copy of each one that is not empty."""
    first_index = {word: index for index, word in reversed(tuple(enumerate(candidates))) if word.strip()}
    mask = np.zeros(len(candidates), dtype=np.bool_)
    mask[list(first_index.values())] = True
    return mask


def write_predictions(path: str | os.PathLike[str], predictions: Iterable[Prediction]) -> None:
    """Write a JSONL file atomically; .gz and .xz files are compressed."""
    path = Path(path)
    with atomic_write(path) as scratch, _open_file(scratch, path.suffix, "wb") as file:
        file.writelines(map(_format_line, _check_ids(predictions)))


def read_predictions(path: str | os.PathLike[str]) -> list[Prediction]:
    """Read a JSONL file (plain, .gz or .xz), in the order of the file."""
    return [
        Prediction(line.id, line.answer, tuple(line.candidates), np.array(line.probabilities, dtype=np.float32))
        for line in iterate_predictions(path)
    ]


@dataclass(frozen=True, slots=True)
class PredictionLine:
    """A validated line of a prediction file; plain lists, because building arrays is slow for many files."""

    id: str
    answer: str | None
    candidates: list[str]
    probabilities: list[float]


def iterate_predictions(path: str | os.PathLike[str]) -> Iterator[PredictionLine]:
    """Iterate over the lines of a JSONL file (plain, .gz or .xz); an InputError names the file and the bad line."""
    seen: set[str] = set()
    for number, text in enumerate(_iterate_lines(Path(path)), start=1):
        if text.strip():
            try:
                line = _parse_line(text)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}:{number}: not a line of a prediction file: {error}") from error
            if line.id in seen:
                raise InputError(f"{path}:{number}: the id {line.id!r} occurs twice; each question has one line")
            seen.add(line.id)
            yield line


def _iterate_lines(path: Path) -> Iterator[bytes]:
    """The raw lines of a file; every error of reading or decompression becomes an InputError."""
    try:
        with _open_file(path, path.suffix, "rb") as file:
            yield from file
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{path}: cannot be read: {reason}") from error


def _open_file(path: Path, suffix: str, mode: Literal["rb", "wb"]) -> BinaryIO | gzip.GzipFile | lzma.LZMAFile:
    """The suffix is a separate argument because a file has a temporary name while it is written."""
    if suffix == ".gz":
        return gzip.open(path, mode)
    if suffix == ".xz":
        return lzma.open(path, mode)
    return path.open(mode)


def _check_ids(predictions: Iterable[Prediction]) -> Iterator[Prediction]:
    """Pass predictions through; a repeated id, which `read_predictions` would reject, is an InputError."""
    seen: set[str] = set()
    for prediction in predictions:
        if prediction.id in seen:
            raise InputError(f"two questions have the id {prediction.id!r}; ids must differ within a prediction file")
        seen.add(prediction.id)
        yield prediction


def _format_line(prediction: Prediction) -> bytes:
    """Prediction -> one line of JSON; a lone surrogate, which JSON data may hold, is kept."""
    record = {
        "id": prediction.id,
        "answer": prediction.answer,
        "candidates": prediction.candidates,
        "probabilities": _shorten_floats(prediction.probabilities),
    }
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n".encode("utf-8", "surrogatepass")


def _shorten_floats(values: NDArray[np.float32]) -> list[float]:
    """float32 -> the doubles with the fewest digits that round to the same float32 (0.1, not 0.10000000149)."""
    short = values.astype(str).astype(np.float64)
    # Double rounding (decimal to double to float32) can be off by one unit: such values keep every digit.
    exact: list[float] = np.where(short.astype(np.float32) == values, short, values).tolist()
    return exact


def _parse_line(text: bytes) -> PredictionLine:
    """One line of JSON -> PredictionLine; ValueError gives the reason if it is not valid."""
    record = json.loads(text)
    fields = record if isinstance(record, dict) else {}
    id, answer = fields.get("id"), fields.get("answer")
    candidates, probabilities = fields.get("candidates"), fields.get("probabilities")
    if not (isinstance(id, str) and isinstance(candidates, list) and isinstance(probabilities, list)):
        raise ValueError('expected an object with "id" (text), "candidates" and "probabilities" (lists)')
    if not set(map(type, candidates)) <= {str}:
        raise ValueError('"candidates" holds something that is not text')
    if not set(map(type, probabilities)) <= {int, float} or not _are_probabilities(probabilities):
        raise ValueError('"probabilities" holds something that is not a number between 0 and 1')
    if len(candidates) != len(probabilities):
        raise ValueError(f"{len(candidates)} candidates but {len(probabilities)} probabilities")
    if answer is not None and not isinstance(answer, str):
        raise ValueError('"answer" is neither text nor null')
    return PredictionLine(id, answer, candidates, probabilities)


def _are_probabilities(values: list[float]) -> bool:
    """Whether all values lie between 0 and 1; the sum detects a NaN at any position, min and max do not."""
    return not values or (min(values) >= 0 and max(values) <= MAX_PROBABILITY and sum(values) >= 0)
