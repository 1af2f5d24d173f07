"""text -> Answer, Examples -> Evaluation: a trained reader for the command line, notebooks and validation."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import asreader
from asreader import readers
from asreader.batches.batch import Batch
from asreader.batches.document import EncodedDocument
from asreader.batches.host import Batcher
from asreader.data.example import Example, Sentence, find_problem
from asreader.data.store import Store
from asreader.data.text import tokenizer
from asreader.data.vocabulary import Vocabulary
from asreader.errors import InputError
from asreader.inference.answer import Answer, Choice
from asreader.inference.store_evaluation import EVALUATION_BATCH, Evaluation, PredictionTemplates
from asreader.readers import Reading
from asreader.readers.layers import EncodedWords
from asreader.runs.folder import ConfidenceCalibration, Run
from asreader.system.progress import track_progress
from asreader.system.threads import limit_threads, map_on_all_cores

BUNDLED = "bundled"
Text = str | Sequence[str]
"""A text, or its words."""
ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""Where a user may have told PyTorch how to manage a GPU's memory."""


class Reader:
    """A trained reader: `Reader.load(run)`, then `answer(document, question)`, or `read(document)` to ask often."""

    def __init__(
        self,
        network: torch.nn.Module,
        vocabulary: Vocabulary,
        *,
        question_at: str = "apart",
        device: torch.device | None = None,
        precision: torch.dtype = torch.float32,
        calibration: ConfidenceCalibration = ConfidenceCalibration(),  # noqa: B008 - frozen
    ) -> None:
        self.network = network
        self.vocabulary = vocabulary
        self.question_at = question_at
        self.device = device or torch.device("cpu")
        self.precision = precision
        self.calibration = calibration

    @classmethod
    def load(cls, run: str | Path = BUNDLED, device: str = "auto") -> Reader:
        """The reader of a run folder, or the bundled one."""
        folder = Path(asreader.__file__).parent / "pretrained" if str(run) == BUNDLED else Path(run)
        place = Run(folder)
        settings, vocabulary = place.load_config(), place.load_vocabulary()
        network = readers.build(settings.reader_name, vocabulary.size, settings.reader_options)
        try:
            network.load_state_dict(place.load_weights())
        except RuntimeError as error:
            raise InputError(f"{folder}: the weights do not fit config.toml and vocabulary.txt: {error}") from None
        where = pick_device(device)
        return cls(
            network.to(where).eval(),
            vocabulary,
            question_at=settings.data.question_at,
            device=where,
            calibration=place.load_calibration(),
        )

    def answer(self, document: Text, question: Text, candidates: Sequence[str] | None = None) -> Answer:
        """Answer one question. Without candidates every word of the document is one."""
        return self.read(document).answer(question, candidates)

    def explain(self, example: Example) -> Answer:
        """Answer an Example, word for word as it is, beside the answer and the names that its data know."""
        answer = ReadDocument(self, example.document, self._encode(example.document), None)._answer_example(example, {})
        return replace(answer, names=example.names, expected=example.answer)

    def read(self, document: Text) -> ReadDocument:
        """Read a document once, to ask about it many times."""
        sentences = tokenizer.tokenize_sentences(document) if isinstance(document, str) else (tuple(document),)
        if not any(sentences):
            raise InputError("the document is empty")
        encoded = self._encode(sentences)
        # With the question placed next to it, a document cannot be read without one.
        states = self._read_states(encoded) if self.question_at == "apart" else None
        return ReadDocument(self, sentences, encoded, states)

    def _encode(self, sentences: tuple[Sentence, ...]) -> EncodedDocument:
        return EncodedDocument(sentences, self.vocabulary, self.question_at)

    def _read_states(self, document: EncodedDocument) -> EncodedWords:
        with torch.inference_mode(), self.limit_threads():
            return self._network.read(document.words.to(self.device))

    def limit_threads(self) -> AbstractContextManager[object]:
        """One thread for a single question on a CPU: the work of a step is too small to be shared."""
        return limit_threads(1) if self.device.type == "cpu" else nullcontext()

    @property
    def _network(self) -> readers.ReaderNetwork:
        return self.network  # type: ignore[return-value]

    def read_store(
        self, store: Store, size: int = EVALUATION_BATCH
    ) -> Iterator[tuple[NDArray[np.intp], Batch, Reading]]:
        """Read a whole store in batches of like length, on a CPU one on each core."""
        batcher = Batcher(store, self.vocabulary, question_at=self.question_at)
        self.network.eval()

        def read_batch(numbers: NDArray[np.intp]) -> tuple[NDArray[np.intp], Batch, Reading]:
            batch = batcher.make_batch(numbers).to(self.device)
            with torch.inference_mode(), self.autocast():
                return numbers, batch, self._network.answer(self._network.read(batch.document), batch)

        yield from (map_on_all_cores if self.device.type == "cpu" else map)(read_batch, batcher.group_by_length(size))

    def autocast(self) -> torch.autocast:
        """The precision this reader computes in."""
        return torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32)

    def evaluate(self, store: Store) -> Evaluation:
        """Read every Example of a store and score the answers; ties are decided by the data's own candidate order."""
        probabilities = [np.zeros(0, np.float32)] * len(store)
        total, counted = 0.0, 0
        batches = -(-len(store) // EVALUATION_BATCH)
        for numbers, batch, reading in track_progress(self.read_store(store), "reading", batches):
            losses = reading.compute_losses(batch.answers)
            total, counted = total + float(losses.values.sum()), counted + int(losses.is_counted.sum())
            rows = reading.scale(self.calibration.temperature).probabilities.cpu().numpy()
            for number, row in zip(numbers, rows, strict=True):
                probabilities[int(number)] = row
        return PredictionTemplates(store, self.vocabulary).fill(probabilities, total, counted)


@dataclass(frozen=True)
class ReadDocument:
    """A document that a reader has read."""

    reader: Reader
    sentences: tuple[Sentence, ...]
    encoded: EncodedDocument
    states: EncodedWords | None

    def answer(self, question: Text, candidates: Sequence[str] | None = None) -> Answer:
        """Answer one question about it."""
        words = tokenizer.tokenize_question(question) if isinstance(question, str) else tuple(question)
        surfaces = {" ".join(tokenizer.tokenize(candidate)): candidate for candidate in candidates or ()}
        example = Example("", self.sentences, words, tuple(surfaces))
        if wrong := find_problem(example):
            raise InputError(wrong)
        return self._answer_example(example, surfaces)

    def _answer_example(self, example: Example, surfaces: dict[str, str]) -> Answer:
        reader = self.reader
        asked = self.encoded.make_batch(example.question, example.candidates)
        with torch.inference_mode(), reader.limit_threads():
            batch = asked.batch.to(reader.device)
            states = self.states if self.states is not None else reader._network.read(batch.document)
            reading = reader._network.answer(states, batch)
            probabilities = reading.scale(reader.calibration.temperature).probabilities[0].tolist()
        choices = tuple(
            Choice(surfaces.get(word, word), probability, positions)
            for word, probability, positions in zip(
                asked.candidates.words, probabilities, asked.candidates.positions, strict=True
            )
        )
        ranked = tuple(sorted(choices, key=lambda choice: -choice.probability))
        best = ranked[0] if ranked and ranked[0].probability > 0 else None
        return Answer(
            answer=best.word if best else None,
            confidence=best.probability if best else 0.0,
            sure=best is not None and best.probability >= reader.calibration.threshold,
            candidates=ranked,
            question=example.question,
            document=example.document,
            attention=tuple(reading.attention[0, asked.start : asked.stop].tolist()),
        )


def pick_device(name: str) -> torch.device:
    """The device of this name; auto takes a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    if name.startswith("cuda"):
        _let_memory_grow()
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {name!r} cannot be used here: {str(error).splitlines()[0]}") from None
    return device


def _let_memory_grow() -> None:
    """Use growing memory segments unless the user has chosen otherwise: batches are of many widths, and memory reserved
    for one would not fit the next. PyTorch reads this once, when a GPU is first used."""
    if not any(name in os.environ for name in ALLOCATOR):
        os.environ[ALLOCATOR[0]] = "expandable_segments:True"
