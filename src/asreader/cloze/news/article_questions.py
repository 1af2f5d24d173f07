"""news article -> cloze questions in the manner of CNN / Daily Mail (Hermann et al., 2015).

Every entity that a highlight shares with the article gives one question: the highlight with that entity's mentions as
the gap. All entities are anonymous, @entityN, numbered anew for every question, so that nothing but the article can
answer it; the names are kept beside. What comes out depends on the seed and the article alone.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from urllib.parse import quote

from asreader.cloze.lexicon import look_up_tag
from asreader.cloze.news.articles import Article
from asreader.cloze.news.mentions import CLASS_LETTERS, find_entities
from asreader.data.example import GAP, Example, Sentence
from asreader.data.formats import jsonl
from asreader.data.formats.cnn_dailymail import PLACEHOLDER
from asreader.data.text import tokenizer

MIN_QUESTION_WORDS = 3
"""Words beside the gap and other entities without which a highlight asks nothing."""

# "OSLO, Norway (CNN) -- The race began": the place stays, as a line of its own.
_AGENCY = re.compile(r"^(?:\([A-Z][\w.&' ]{1,40}\)|([A-Z].{0,60}?)\s*\((?:CNN|AP|AFP|Reuters|HLN)\))\s*(?:--?|—)?\s*")
_TIME = r"(?:\d{1,2}[:.]\d{2}\s*(?:[ap]m|[A-Z]{2,4})?,?\s*(?:on\s+)?)?\d{1,2}(?:st|nd|rd|th)?\s+\w+,?\s+\d{4}"
_STAMP = re.compile(
    rf"(?s)^(?:By\b.{{0,300}}?)?(?:\b(?:PUBLISHED|Published|UPDATED|Updated|Last updated at)\b[\s:.|]*{_TIME}[\s.|]*)+"
)
_BYLINE = re.compile(r"^By\s*\.\s+(?:[^.\s]+\s+){1,8}\.\s+")
_ASIDE = re.compile(
    r"contributed to this (?:report|story|article)|^(?:Scroll down|SCROLL DOWN|Click here|CLICK HERE|Read more|READ)\b"
    r"|^(?:E-?mail|Follow) .{0,40}(?:Twitter|newsletter)|all rights reserved|^Copyright ",
)
_NEW = re.compile(r"^NEW:\s*")
_TIED = re.compile(r"((?i:anti|pro|non|ex|all|trans|un|neo)|[DR])-([A-Z]\w+)|([A-Z][\w.]+)-(\w[\w.]*(?:-\w+)*)")
_MARK = re.compile(r"@(?=entity\d|placeholder)")


@dataclass(frozen=True, slots=True)
class NewsQuestion:
    """A cloze question about anonymous entities, and what they are called."""

    example: Example
    names: dict[str, str]


def make_article_questions(article: Article, seed: int = 0, lowercase: bool = False) -> Iterator[NewsQuestion]:
    """The questions of one article: for each highlight, one for each of its entities that the article names too.

    Words stay as written unless `lowercase`, the look of the official files: with the names hidden capitals betray
    little, any reader can lower its words itself, and nobody can put capitals back.
    """
    text = _text(article)
    written = text.lowered() if lowercase else text
    candidates = text.names(text.told)
    for number, asked in enumerate(text.asked, 1):
        there = list(dict.fromkeys((*candidates, *text.names(asked))))
        answers = [name for name in text.names(asked) if name in candidates] if _says_enough(text, asked) else []
        for count, answer in enumerate(answers, 1):
            labels = _labels(there, random.Random(f"{seed}/{article.id}/{number}/{answer}"))
            example = Example(
                id=f"{article.id}:{number}.{count}",
                document=written.labelled(text.told, labels),
                question=tuple(chain.from_iterable(written.labelled(asked, {**labels, answer: GAP}))),
                candidates=tuple(labels[name] for name in candidates),
                answer=labels[answer],
            )
            yield NewsQuestion(example, {label: name for name, label in labels.items()})


def find_highlight_entities(article: Article) -> dict[str, bool]:
    """The entities of the highlights, and of each whether the article names it: only then can it be asked for."""
    text = _text(article)
    told = text.names(text.told)
    return {name: name in told for asked in text.asked for name in text.names(asked)}


def strip_boilerplate(text: str) -> str:
    """An article without what is no prose: byline, time stamps, the agency's name (its place becomes a line)."""
    for clutter in (_STAMP, _BYLINE):
        text = clutter.sub("", text.lstrip(), count=1)
    return _AGENCY.sub(lambda found: f"{found[1]}\n\n" if found[1] else "", text, count=1)


def restore_names(words: Sentence, names: Mapping[str, str]) -> Sentence:
    """Words with the entities' names put back, each as one word."""
    return tuple(names.get(word, word) for word in words)


def question_file_name(question: NewsQuestion) -> str:
    """Where the official data would keep it: a hash, since an id may hold anything."""
    return hashlib.sha1(question.example.id.encode()).hexdigest() + ".question"


def format_question_file(question: NewsQuestion) -> str:
    """The question as a `.question` file of CNN / Daily Mail; the address keeps the id."""
    example = question.example
    blocks = (
        f"https://news.invalid/{quote(example.id)}",
        " ".join(example.words),
        " ".join(PLACEHOLDER if word == GAP else word for word in example.question),
        example.answer or "",
        "\n".join(f"{label}:{name}" for label, name in question.names.items()),
    )
    return "\n\n".join(blocks) + "\n"


def format_jsonl_line(question: NewsQuestion) -> str:
    """The question as a line of the jsonl format, with the names of its entities."""
    return (
        json.dumps(json.loads(jsonl.line(question.example)) | {"entities": question.names}, ensure_ascii=False) + "\n"
    )


@dataclass(frozen=True, slots=True)
class _Text:
    """The sentences of an article and its highlights; for each the spans of its mentions, with the entity's name."""

    sentences: tuple[Sentence, ...]
    spans: tuple[tuple[tuple[int, int, str], ...], ...]
    told: range
    asked: tuple[range, ...]

    def lowered(self) -> _Text:
        """The same in lower case."""
        return replace(self, sentences=tuple(tuple(map(str.lower, sentence)) for sentence in self.sentences))

    def names(self, places: range) -> dict[str, None]:
        """What the sentences mention, in order of appearance."""
        return dict.fromkeys(name for place in places for _, _, name in self.spans[place])

    def labelled(self, places: range, labels: Mapping[str, str]) -> tuple[Sentence, ...]:
        """The sentences with a label in the place of every mention."""
        return tuple(tuple(self._labelled(place, labels)) for place in places)

    def _labelled(self, place: int, labels: Mapping[str, str]) -> Iterator[str]:
        sentence, start = self.sentences[place], 0
        for first, last, name in self.spans[place]:
            yield from sentence[start:first]
            yield labels[name]
            start = last
        yield from sentence[start:]


def _text(article: Article) -> _Text:
    document = _sentences(strip_boilerplate(article.text))
    highlights = [_sentences(_NEW.sub("", highlight)) for highlight in article.highlights]
    ends = list(accumulate(map(len, (document, *highlights))))
    sentences = _parted((*document, *chain.from_iterable(highlights)))
    spans: list[list[tuple[int, int, str]]] = [[] for _ in sentences]
    for entity in find_entities(sentences):
        for mention in entity.mentions:
            spans[mention.sentence].append((mention.start, mention.end, entity.name))
    asked = tuple(range(first, last) for first, last in pairwise(ends))
    return _Text(sentences, tuple(tuple(sorted(found)) for found in spans), range(ends[0]), asked)


def _sentences(text: str) -> tuple[Sentence, ...]:
    """Words that can stand beside anonymous entities and a gap: none of the text's own looks like one."""
    found = []
    for sentence in tokenizer.sentences(_MARK.sub("", text)):
        words = tuple(word for word in sentence if word != GAP)
        if words and not _ASIDE.search(" ".join(words)):
            found.append(words)
    return tuple(found)


def _parted(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """Names freed of what a hyphen ties to them: Saudi-led is Saudi - led, anti-American anti - American."""
    seen = {word for sentence in sentences for word in sentence}
    return tuple(
        tuple(part for word in sentence for part in (_halves(word, seen) if "-" in word else (word,)))
        for sentence in sentences
    )


def _halves(word: str, seen: set[str]) -> Sentence:
    if not (match := _TIED.fullmatch(word)):
        return (word,)
    prefix, name, first, second = match.groups()
    if prefix:
        apart = name not in CLASS_LETTERS
    elif second[0].isupper():  # Sunni-Shiite is two names, Jean-Claude is one
        apart = {first, second} <= seen and look_up_tag(second.lower()) is None
    else:
        lower = first.lower()
        known = (
            CLASS_LETTERS.get(first) == "A"
            or look_up_tag(lower) in (None, "NNP")
            or (first in seen and lower not in seen)
        )
        apart = (
            known and CLASS_LETTERS.get(first) != "k" and look_up_tag(second.rpartition("-")[2]) is not None
        )  # not Ki-moon
    return (first or prefix, "-", second or name) if apart else (word,)


def _labels(names: list[str], dice: random.Random) -> dict[str, str]:
    """Numbers dealt at random."""
    numbers = dice.sample(range(len(names)), len(names))
    return {name: f"@entity{number}" for name, number in zip(names, numbers, strict=True)}


def _says_enough(text: _Text, asked: range) -> bool:
    """Whether a highlight still says something when its entities are hidden."""
    words = chain.from_iterable(text.labelled(asked, dict.fromkeys(text.names(asked), GAP)))
    return sum(word != GAP and word[0].isalpha() for word in words) >= MIN_QUESTION_WORDS
