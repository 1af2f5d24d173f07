"""seed -> synthetic questions with the lengths, candidates and word frequencies of the Children's Book Test.

Nothing is read from disk, so a benchmark runs anywhere. Lengths follow the official files (a document of the named
entity questions has 433 words on average, from 106 to 1,338; a question 28). Words follow Zipf's law with a flatter
curve than English, which favours the plain implementation: a batch of 64 documents has twice as many distinct words as
a real one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asreader.data.example import GAP, Example
from asreader.data.store import Store, encode_examples
from asreader.data.vocabulary import Vocabulary

VOCABULARY_WORDS = 53_000
ZIPF_EXPONENT = 1.1
DOCUMENT_SENTENCES = 20
CANDIDATE_COUNT = 10
DOCUMENT_WORDS = 433
QUESTION_WORDS = 28
SINGLE_DOCUMENT_WORDS = 450
"""Words in the document of the single question."""
FURTHER_QUESTIONS = 500
"""Further questions about that document."""


@dataclass(frozen=True)
class SyntheticData:
    """A store of questions, a single example, and the words of further questions about its document."""

    store: Store
    vocabulary: Vocabulary
    single_example: Example
    further_questions: tuple[tuple[str, ...], ...]


def make_synthetic_data(questions: int, seed: int = 0, words: int = VOCABULARY_WORDS) -> SyntheticData:
    """Questions over a vocabulary of `words` words, without unknown words."""
    generator = np.random.default_rng(seed)
    names = tuple(f"w{number}" for number in range(words))
    frequency = 1 / np.arange(1, words + 1) ** ZIPF_EXPONENT
    longest = 1400
    drawn = generator.choice(words, (questions + 1, longest), p=frequency / frequency.sum())
    document_lengths = _sample_lengths(generator, questions, DOCUMENT_WORDS, 0.29, (106, 1338))
    question_lengths = _sample_lengths(generator, questions, QUESTION_WORDS, 0.55, (5, 60))
    texts = zip(drawn, [SINGLE_DOCUMENT_WORDS, *document_lengths], [QUESTION_WORDS, *question_lengths], strict=True)
    single_example, *rest = _make_examples(generator, names, texts)
    further = generator.choice(words, (FURTHER_QUESTIONS, QUESTION_WORDS), p=frequency / frequency.sum())
    further_questions = tuple((GAP, *(names[word] for word in question[1:])) for question in further)
    return SyntheticData(encode_examples(rest), Vocabulary(names, unknown=100), single_example, further_questions)


def _sample_lengths(
    generator: np.random.Generator, count: int, mean: int, spread: float, bounds: tuple[int, int]
) -> NDArray[np.int64]:
    """Log-normal lengths, which fit documents and questions well."""
    return generator.lognormal(np.log(mean) - spread**2 / 2, spread, count).round().clip(*bounds).astype(np.int64)


def _make_examples(
    generator: np.random.Generator, names: tuple[str, ...], texts: Iterator[tuple[NDArray[np.int64], int, int]]
) -> Iterator[Example]:
    for number, (drawn, length, question_length) in enumerate(texts):
        document = [names[word] for word in drawn[:length]]
        question = [names[word] for word in drawn[-question_length:]]
        question[generator.integers(question_length)] = GAP
        sentences = tuple(tuple(map(str, part)) for part in np.array_split(np.array(document), DOCUMENT_SENTENCES))
        candidates = tuple(map(str, generator.permutation(list(dict.fromkeys(document)))[:CANDIDATE_COUNT]))
        answer = candidates[int(generator.integers(len(candidates)))]
        yield Example(str(number), sentences, tuple(question), candidates, answer)
