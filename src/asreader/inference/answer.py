"""What a person gets for a question: the answer, its rivals and where in the text they stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from asreader.data.example import Sentence


@dataclass(frozen=True)
class Choice:
    """A candidate with its share of the support and its positions among the document's words."""

    word: str
    probability: float
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Answer:
    """The best-supported candidate, or None where no candidate stands in the document. Best candidates come first.

    `sure` is False below the confidence from which on the reader was found to be right often enough (`calibrate`).
    `names` are real names of anonymous words, for showing; `expected` is the right answer where the data know it.
    """

    answer: str | None
    confidence: float
    candidates: tuple[Choice, ...]
    question: Sentence
    document: tuple[Sentence, ...]
    attention: tuple[float, ...]
    sure: bool = True
    names: Mapping[str, str] = field(default_factory=dict)
    expected: str | None = None

    @property
    def tokens(self) -> Sentence:
        """The words of the document, one for each number of `attention`."""
        return tuple(word for sentence in self.document for word in sentence)

    def as_json(self, top: int | None = None) -> dict[str, object]:
        """The document that `asreader answer --json` and the server give."""
        return {
            "answer": self.answer,
            "confidence": self.confidence,
            "sure": self.sure,
            "candidates": [
                {"word": choice.word, "probability": choice.probability, "positions": list(choice.positions)}
                for choice in self.candidates[:top]
            ],
            "tokens": list(self.tokens),
            "attention": list(self.attention),
        }

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from asreader.attention import html_view

        return html_view.render_fragment(self)
