"""seed -> questions of the Children's Book Test's shape: as long, as many candidates, words as unequally common.

Nothing is read from disk, so a benchmark runs anywhere. Lengths follow the official files (a document of the named
entity questions has 433 words on average, from 106 to 1,338; a question 28). Words are drawn by Zipf's law, somewhat
flatter than in English, which is to our disadvantage: a batch of 64 documents holds twice the distinct words of a real
one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asreader.data.example import GAP, Example
from asreader.data.store import Store, encode
from asreader.data.vocabulary import Vocabulary

VOCABULARY_WORDS = 53_000
ZIPF_EXPONENT = 1.1
DOCUMENT_SENTENCES, CANDIDATE_COUNT = 20, 10
DOCUMENT_WORDS, QUESTION_WORDS = 433, 28
SINGLE_DOCUMENT_WORDS = 450
"""Words of the document that single questions are asked about."""
FURTHER_QUESTIONS = 500
"""Questions on it, each other words."""


@dataclass(frozen=True)
class SyntheticData:
    """Questions to read in batches, one to ask alone, and the words of others on its document."""

    store: Store
    vocabulary: Vocabulary
    single_example: Example
    further_questions: tuple[tuple[str, ...], ...]


def make_synthetic_data(questions: int, seed: int = 0, words: int = VOCABULARY_WORDS) -> SyntheticData:
    """So many questions over a vocabulary of so many words, every word known."""
    generator = np.random.default_rng(seed)
    names = tuple(f"w{number}" for number in range(words))
    commonness = 1 / np.arange(1, words + 1) ** ZIPF_EXPONENT
    longest = 1400
    drawn = generator.choice(words, (questions + 1, longest), p=commonness / commonness.sum())
    lengths = _lengths(generator, questions, DOCUMENT_WORDS, 0.29, (106, 1338))
    asked = _lengths(generator, questions, QUESTION_WORDS, 0.55, (5, 60))
    texts = zip(drawn, [SINGLE_DOCUMENT_WORDS, *lengths], [QUESTION_WORDS, *asked], strict=True)
    alone, *rest = _examples(generator, names, texts)
    asked_next = generator.choice(words, (FURTHER_QUESTIONS, QUESTION_WORDS), p=commonness / commonness.sum())
    further = tuple((GAP, *(names[word] for word in question[1:])) for question in asked_next)
    return SyntheticData(encode(rest), Vocabulary(names, unknown=100), alone, further)


def _lengths(
    generator: np.random.Generator, count: int, mean: int, spread: float, bounds: tuple[int, int]
) -> NDArray[np.int64]:
    """Log-normal, as the lengths of documents and questions nearly are."""
    return generator.lognormal(np.log(mean) - spread**2 / 2, spread, count).round().clip(*bounds).astype(np.int64)


def _examples(
    generator: np.random.Generator, names: tuple[str, ...], texts: Iterator[tuple[NDArray[np.int64], int, int]]
) -> Iterator[Example]:
    for number, (drawn, length, asked) in enumerate(texts):
        document = [names[word] for word in drawn[:length]]
        question = [names[word] for word in drawn[-asked:]]
        question[generator.integers(asked)] = GAP
        sentences = tuple(tuple(map(str, part)) for part in np.array_split(np.array(document), DOCUMENT_SENTENCES))
        candidates = tuple(map(str, generator.permutation(list(dict.fromkeys(document)))[:CANDIDATE_COUNT]))
        answer = candidates[int(generator.integers(len(candidates)))]
        yield Example(str(number), sentences, tuple(question), candidates, answer)
