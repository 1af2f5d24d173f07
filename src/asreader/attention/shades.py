"""Answer -> what stands out in it: how strongly a word is shaded, which candidate it belongs to, what to leave out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from asreader.data.example import GAP, Sentence, proposed
from asreader.inference.answer import Answer, Choice

LEVELS = 6
"""Steps of shading, from 1; 0 is a word that is not looked at."""
MIN_SHADE = 0.04
"""Attention below this share of the strongest word's is not shaded."""
FULL_SHADE_FACTOR = 5.0
"""A word is fully shaded if it has so many times the attention that each would have if all had the same."""
MAX_RANK = 9
"""Candidates that get a number in the text: the best ones."""
MIN_PROBABILITY = 0.01
"""Where every word is a candidate, those with this share are marked."""

_SURFACES = {"``": "“", "''": "”", "`": "‘", "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", GAP: "_____"}
_CLOSING = frozenset(". , ; : ! ? % ) ] } ” ’ ' n't 's 'S 're 've 'll 'd 'm 。 ， 、 ； ： ！ ？ 」 』 ）".split())
_OPENING = frozenset("“ ‘ ( [ { $ £ € 「 『 （".split())


@dataclass(frozen=True, slots=True)
class ShadedWord:
    """A word as it is shown. `rank` is 1 for the answer, up to NUMBERED; 0 for another candidate, None for none."""

    text: str
    original: str
    position: int
    share: float
    level: int
    rank: int | None
    spaced: bool  # a space stands before it


def choose_level(shade: float) -> int:
    """The step of shading for attention relative to the strongest word."""
    return 0 if shade < MIN_SHADE else min(LEVELS, 1 + int(shade * LEVELS))


def compute_relative_attention(answer: Answer) -> list[float]:
    """Attention from 0 to 1 relative to the strongest word, so that the picture does not fade in a long text.

    Where even that one has little more than its equal share, nothing is strong.
    """
    peak = max((*answer.attention, min(1.0, FULL_SHADE_FACTOR / max(1, len(answer.attention)))))
    return [weight / peak for weight in answer.attention]


def rank_positions(answer: Answer) -> dict[int, int]:
    """Of each position that belongs to a candidate, the candidate's number; of two that share it, the better one's."""
    found: dict[int, int] = {}
    everything = len(answer.candidates) > MAX_RANK and {c.word for c in answer.candidates} == set(
        proposed(answer.document)
    )
    for place, choice in enumerate(answer.candidates, 1):
        if not everything or choice.probability >= MIN_PROBABILITY:
            for position in choice.positions:
                found.setdefault(position, place if place <= MAX_RANK else 0)
    return found


def shade_words(answer: Answer) -> list[ShadedWord]:
    """The document as it is shown."""
    relative, numbers = compute_relative_attention(answer), rank_positions(answer)
    shown = [text for sentence in answer.document for text in space_words(sentence, answer)]
    return [
        ShadedWord(text, original, position, share, choose_level(shade), numbers.get(position), spaced)
        for position, ((text, spaced), original, share, shade) in enumerate(
            zip(shown, answer.tokens, answer.attention, relative, strict=True)
        )
    ]


def find_sentences(answer: Answer) -> list[range]:
    """Where each sentence stands among the words."""
    ends = list(accumulate(map(len, answer.document)))
    return [range(end - len(sentence), end) for sentence, end in zip(answer.document, ends, strict=True)]


def space_words(words: Sentence, answer: Answer) -> list[tuple[str, bool]]:
    """Words as a person writes them, real names for entities, and whether a space stands before each."""
    shown, glued = [], True
    for word in words:
        text = format_word(word, answer)
        shown.append((text, not glued and text not in _CLOSING))
        glued = text in _OPENING
    return shown


def format_word(word: str, answer: Answer) -> str:
    """A word, or a candidate of several, as a person writes it; an anonymous entity under its name if it is known."""
    return " ".join(answer.names.get(part, _SURFACES.get(part, part)) for part in word.split(" "))


def select_excerpt(answer: Answer, longest: int) -> list[range]:
    """The sentences with most attention, in reading order, of at most `longest` words; or the strongest part of one."""
    everything = find_sentences(answer)
    weights = [sum(answer.attention[sentence.start : sentence.stop]) for sentence in everything]
    kept: list[range] = []
    room = longest
    for number in sorted(range(len(weights)), key=lambda number: -weights[number]):
        sentence = everything[number]
        if not kept and len(sentence) > longest:
            return [_around(answer, sentence, longest)]
        if len(sentence) > room:
            break
        kept.append(sentence)
        room -= len(sentence)
    return sorted(kept, key=lambda sentence: sentence.start)


def _around(answer: Answer, sentence: range, longest: int) -> range:
    """So many words of a sentence around the one with most attention."""
    centre = max(sentence, key=answer.attention.__getitem__)
    start = max(sentence.start, min(centre - longest // 2, sentence.stop - longest))
    return range(start, start + longest)


def is_right_answer(answer: Answer, choice: Choice) -> bool:
    """Whether this candidate is known to be the answer."""
    return answer.expected is not None and choice.word == answer.expected
