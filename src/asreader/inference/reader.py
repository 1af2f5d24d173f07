"""Examples -> Predictions, text -> Answer: the one inference path of validation, command line, server and notebooks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import asreader
from asreader import readers
from asreader.batches.document import Document
from asreader.batches.host import Batch, Batcher
from asreader.data.example import Example, Sentence, problem
from asreader.data.store import NO_ANSWER, Store
from asreader.data.text import tokenizer
from asreader.data.vocabulary import UNKNOWN, Vocabulary
from asreader.errors import InputError
from asreader.evaluation import metrics
from asreader.evaluation.metrics import Scores
from asreader.evaluation.predictions import Prediction
from asreader.inference.answer import Answer, Choice
from asreader.kernels.gru import SHARED
from asreader.readers import Reading
from asreader.runs.folder import ConfidenceCalibration, Run
from asreader.system.progress import watched
from asreader.system.threads import at_most, on_all_cores

BUNDLED = "bundled"
EVALUATION_BATCH = 64
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
        sizes = (module.hidden_size for module in network.modules() if isinstance(module, nn.GRU))
        self._largest = max(sizes, default=0)

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
        answer = ReadDocument(self, example.document, self._numbered(example.document), None)._answered(example, {})
        return replace(answer, names=example.names, expected=example.answer)

    def read(self, document: Text) -> ReadDocument:
        """Read a document once, to ask about it many times."""
        sentences = tokenizer.sentences(document) if isinstance(document, str) else (tuple(document),)
        if not any(sentences):
            raise InputError("the document is empty")
        numbered = self._numbered(sentences)
        # With the question put beside it, a document cannot be read without one.
        states = self._states(numbered) if self.question_at == "apart" else None
        return ReadDocument(self, sentences, numbered, states)

    def _numbered(self, sentences: tuple[Sentence, ...]) -> Document:
        return Document(sentences, self.vocabulary, self.question_at)

    def _states(self, document: Document) -> Tensor:
        with torch.inference_mode(), self.alone():
            return self._network.read(document.words.to(self.device))

    def alone(self) -> AbstractContextManager[object]:
        """Where a single question is answered: on a CPU small steps are no work for two threads, and none for more."""
        if self.device.type != "cpu":
            return nullcontext()
        return at_most(2 if self._largest >= SHARED else 1)

    @property
    def _network(self) -> readers.ReaderNetwork:
        return self.network  # type: ignore[return-value]

    def readings(self, store: Store, size: int = EVALUATION_BATCH) -> Iterator[tuple[NDArray[np.intp], Batch, Reading]]:
        """Read a whole store in batches of like length, on a CPU one on each core."""
        batcher = Batcher(store, self.vocabulary, question_at=self.question_at)
        self.network.eval()

        def read(numbers: NDArray[np.intp]) -> tuple[NDArray[np.intp], Batch, Reading]:
            batch = batcher.batch(numbers).to(self.device)
            with torch.inference_mode(), self.autocast():
                return numbers, batch, self._network.answer(self._network.read(batch.document), batch)

        yield from (on_all_cores if self.device.type == "cpu" else map)(read, batcher.by_length(size))

    def autocast(self) -> torch.autocast:
        """The precision this reader computes in."""
        return torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32)

    def evaluate(self, store: Store) -> Evaluation:
        """Read every Example of a store and score the answers; ties are decided by the data's own candidate order."""
        found: dict[int, Prediction] = {}
        total, pointed = 0.0, 0
        batches = -(-len(store) // EVALUATION_BATCH)
        for numbers, batch, reading in watched(self.readings(store), "reading", batches):
            losses = reading.losses(batch.answers)
            total, pointed = total + float(losses.sum()), pointed + len(losses)
            shares = reading.at(self.calibration.temperature).probabilities.cpu().numpy()
            for number, probabilities in zip(numbers, shares, strict=True):
                found[int(number)] = _prediction(store, int(number), probabilities)
        return Evaluation(
            predictions=[found[number] for number in range(len(store))],
            loss=total / max(1, pointed),
            answer_not_in_document=int((store.answers != NO_ANSWER).sum() - store.answerable.sum()),
            unknown_words=self.unknown_words(store),
        )

    def unknown_words(self, store: Store) -> float:
        """Share of the documents' words that are not in the vocabulary."""
        unknown = self.vocabulary.rows(store.lexicon) == UNKNOWN
        per_sentence = np.add.reduceat(unknown[store.columns["sentences"]], np.r_[0, store.sentences.ends[:-1]])
        return float(per_sentence[store.columns["documents"]].sum() / max(1, store.lengths.sum()))


@dataclass(frozen=True)
class Evaluation:
    """A store read by a reader: a Prediction for each Example, in its order, and what they are worth."""

    predictions: list[Prediction]
    loss: float
    answer_not_in_document: int
    unknown_words: float

    def answerable(self, store: Store) -> Evaluation:
        """The same of those questions alone whose answer stands in the document; the loss never counted others."""
        pairs = zip(self.predictions, store.answerable.tolist(), strict=True)
        return replace(self, predictions=[prediction for prediction, there in pairs if there], answer_not_in_document=0)

    @property
    def scores(self) -> Scores:
        """Accuracy and its company."""
        return metrics.scores(
            self.predictions,
            answer_not_in_document=self.answer_not_in_document,
            unknown_words=self.unknown_words,
        )


@dataclass(frozen=True)
class ReadDocument:
    """A document that a reader has read."""

    reader: Reader
    sentences: tuple[Sentence, ...]
    numbered: Document
    states: Tensor | None

    def answer(self, question: Text, candidates: Sequence[str] | None = None) -> Answer:
        """Answer one question about it."""
        words = tokenizer.question(question) if isinstance(question, str) else tuple(question)
        surfaces = {" ".join(tokenizer.words(candidate)): candidate for candidate in candidates or ()}
        example = Example("", self.sentences, words, tuple(surfaces))
        if wrong := problem(example):
            raise InputError(wrong)
        return self._answered(example, surfaces)

    def _answered(self, example: Example, surfaces: dict[str, str]) -> Answer:
        reader = self.reader
        asked = self.numbered.asked(example.question, example.candidates)
        with torch.inference_mode(), reader.alone():
            batch = asked.batch.to(reader.device)
            states = self.states if self.states is not None else reader._network.read(batch.document)
            reading = reader._network.answer(states, batch)
            shares = reading.at(reader.calibration.temperature).probabilities[0].tolist()
        choices = tuple(
            Choice(surfaces.get(word, word), probability, places)
            for word, probability, places in zip(asked.choices.words, shares, asked.choices.places, strict=True)
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
    """Let PyTorch ask for memory in pieces that can grow, unless the user has settings of his own: batches are of many
    widths, and what was reserved for one would not fit the next. PyTorch looks here once, when a GPU is first used."""
    if not any(name in os.environ for name in ALLOCATOR):
        os.environ[ALLOCATOR[0]] = "expandable_segments:True"


def _prediction(store: Store, number: int, probabilities: NDArray[np.float32]) -> Prediction:
    candidates = store.candidates(number, store.document(number))
    answer = int(store.answers[number])
    return Prediction(
        id=store.ids[number],
        answer=None if answer == NO_ANSWER else store.lexicon[answer],
        candidates=tuple(store.lexicon[name] for name in candidates),
        probabilities=probabilities[: len(candidates)].astype(np.float32),
    )
