"""Answer -> shaded words: how strongly each word is highlighted, its candidate's rank, which sentences to show."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from asreader.data.example import GAP, Sentence, propose_candidates
from asreader.inference.answer import Answer, Choice

LEVELS = 6
"""Number of shading levels, counted from 1; level 0 is not shaded."""
MIN_SHADE = 0.04
"""Words with less attention than this fraction of the strongest word's attention are not shaded."""
FULL_SHADE_FACTOR = 5.0
"""A word gets the full shade only if its attention is at least this multiple of uniform attention."""
MAX_RANK = 9
"""Number of best candidates whose rank is printed in the text."""
MIN_PROBABILITY = 0.01
"""If every word is a candidate, only candidates with at least this probability are marked."""
NO_ANSWER = "no candidate stands in the document"

_SURFACES = {"``": "“", "''": "”", "`": "‘", "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", GAP: "_____"}
_CLOSING = frozenset(". , ; : ! ? % ) ] } ” ’ ' n't 's 'S 're 've 'll 'd 'm 。 ， 、 ； ： ！ ？ 」 』 ）".split())
_OPENING = frozenset("“ ‘ ( [ { $ £ € 「 『 （".split())


@dataclass(frozen=True, slots=True)
class ShadedWord:
    """A word as displayed. `rank` is 1 to MAX_RANK for the best candidates, 0 for other candidates, else None."""

    text: str
    original: str
    position: int
    attention: float
    level: int
    rank: int | None
    has_space: bool  # a space precedes the word


def choose_level(shade: float) -> int:
    """Shading level for an attention value relative to the strongest word."""
    return 0 if shade < MIN_SHADE else min(LEVELS, 1 + int(shade * LEVELS))


def compute_relative_attention(answer: Answer) -> list[float]:
    """Attention divided by the maximum, from 0 to 1, so that long documents do not fade.

    The divisor is at least FULL_SHADE_FACTOR times uniform attention, so that uniform attention stays faint.
    """
    peak = max((*answer.attention, min(1.0, FULL_SHADE_FACTOR / max(1, len(answer.attention)))))
    return [weight / peak for weight in answer.attention]


def rank_positions(answer: Answer) -> dict[int, int]:
    """Map each position of a candidate to the candidate's rank; the better one where two overlap."""
    ranks: dict[int, int] = {}
    every_word_is_candidate = len(answer.candidates) > MAX_RANK and {c.word for c in answer.candidates} == set(
        propose_candidates(answer.document)
    )
    for rank, choice in enumerate(answer.candidates, 1):
        if not every_word_is_candidate or choice.probability >= MIN_PROBABILITY:
            for position in choice.positions:
                ranks.setdefault(position, rank if rank <= MAX_RANK else 0)
    return ranks


def shade_words(answer: Answer) -> list[ShadedWord]:
    """The words of the document as displayed."""
    ranks = rank_positions(answer)
    displayed = [text for sentence in answer.document for text in space_words(sentence, answer)]
    return [
        ShadedWord(text, original, position, weight, choose_level(shade), ranks.get(position), has_space)
        for position, ((text, has_space), original, weight, shade) in enumerate(
            zip(displayed, answer.tokens, answer.attention, compute_relative_attention(answer), strict=True)
        )
    ]


def find_sentences(answer: Answer) -> list[range]:
    """The positions of each sentence of the document."""
    ends = list(accumulate(map(len, answer.document)))
    return [range(end - len(sentence), end) for sentence, end in zip(answer.document, ends, strict=True)]


def find_strongest_sentence(answer: Answer) -> int:
    """Index of the sentence with most attention on the answer's words, or on all words if there is no answer."""
    positions = set(answer.candidates[0].positions) if answer.answer is not None else set(range(len(answer.tokens)))
    weights = [
        sum(answer.attention[position] for position in sentence if position in positions)
        for sentence in find_sentences(answer)
    ]
    return max(range(len(weights)), key=weights.__getitem__)


def space_words(words: Sentence, answer: Answer) -> list[tuple[str, bool]]:
    """Each word in its written form, and whether a space precedes it."""
    spaced = []
    follows_opening = True
    for word in words:
        text = format_word(word, answer)
        spaced.append((text, not follows_opening and text not in _CLOSING))
        follows_opening = text in _OPENING
    return spaced


def format_word(word: str, answer: Answer) -> str:
    """The written form of a word or phrase: plain quotes and brackets, and names for anonymous entities if known."""
    return " ".join(answer.names.get(part, _SURFACES.get(part, part)) for part in word.split(" "))


def format_confidence(answer: Answer) -> str:
    """The confidence in per cent, with a note if the reader is not sure."""
    return f"{answer.confidence:.0%}{'' if answer.sure else ', not sure'}"


def select_excerpt(answer: Answer, max_words: int) -> list[range]:
    """The sentences with most attention, in reading order, at most `max_words` words; part of one if it is longer."""
    sentences = find_sentences(answer)
    weights = [sum(answer.attention[sentence.start : sentence.stop]) for sentence in sentences]
    selected: list[range] = []
    remaining = max_words
    for index in sorted(range(len(weights)), key=lambda index: -weights[index]):
        sentence = sentences[index]
        if not selected and len(sentence) > max_words:
            return [_select_window(answer, sentence, max_words)]
        if len(sentence) > remaining:
            break
        selected.append(sentence)
        remaining -= len(sentence)
    return sorted(selected, key=lambda sentence: sentence.start)


def _select_window(answer: Answer, sentence: range, max_words: int) -> range:
    """`max_words` words of a sentence around the word with most attention."""
    centre = max(sentence, key=answer.attention.__getitem__)
    start = max(sentence.start, min(centre - max_words // 2, sentence.stop - max_words))
    return range(start, start + max_words)


def is_right_answer(answer: Answer, choice: Choice) -> bool:
    """Whether the candidate is the expected answer; False if that is not known."""
    return answer.expected is not None and choice.word == answer.expected
