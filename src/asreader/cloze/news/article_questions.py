"""news article -> cloze questions in the manner of CNN / Daily Mail (Hermann et al., 2015).

Every entity that a highlight shares with the article gives one question: the highlight with that entity's mentions
replaced by the gap. All entities are anonymized as @entityN and renumbered for every question, so that only the article
can answer it; their names are stored with the question. The output depends only on the seed and the article.
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
from asreader.cloze.news.mentions import find_entities
from asreader.cloze.news.name_words import CLASS_LETTERS
from asreader.data.example import GAP, Example, Sentence
from asreader.data.formats import jsonl
from asreader.data.formats.cnn_dailymail import PLACEHOLDER
from asreader.data.text import tokenizer

MIN_QUESTION_WORDS = 3
"""A highlight needs this many words other than entities to be a question."""

# The agency at the start of an article, with an optional place before it: "(CNN)The race began",
# "OSLO, Norway (CNN) -- The race began". Group 1 is the place, which stays as a line of its own.
_AGENCY = re.compile(r"^(?:\([A-Z][\w.&' ]{1,40}\)|([A-Z].{0,60}?)\s*\((?:CNN|AP|AFP|Reuters|HLN)\))\s*(?:--?|—)?\s*")
# A date with an optional time before it: "3 June 2013", "12:00 EST, 3 June 2013", "11:24 AM on 12th December 2011".
_TIME = r"(?:\d{1,2}[:.]\d{2}\s*(?:[ap]m|[A-Z]{2,4})?,?\s*(?:on\s+)?)?\d{1,2}(?:st|nd|rd|th)?\s+\w+,?\s+\d{4}"
# Time stamps at the start of an article, with an optional byline before them:
# "By . Ann Lee . PUBLISHED: . 07:27 EST, 3 June 2013 . | . UPDATED: . 12:10 EST, 4 June 2013 . "
_TIME_STAMPS = re.compile(
    rf"(?s)^(?:By\b.{{0,300}}?)?(?:\b(?:PUBLISHED|Published|UPDATED|Updated|Last updated at)\b[\s:.|]*{_TIME}[\s.|]*)+"
)
# A byline without time stamps: "By . Ann Lee . " (but not "By noon the race had begun.")
_BYLINE = re.compile(r"^By\s*\.\s+(?:[^.\s]+\s+){1,8}\.\s+")
# Sentences about the page, not about the news: "Ann Lee contributed to this report.", "Scroll down for video".
_PAGE_NOTE = re.compile(
    r"contributed to this (?:report|story|article)|^(?:Scroll down|SCROLL DOWN|Click here|CLICK HERE|Read more|READ)\b"
    r"|^(?:E-?mail|Follow) .{0,40}(?:Twitter|newsletter)|all rights reserved|^Copyright ",
)
# The mark of an updated highlight: "NEW: Brankov wins".
_NEW_MARK = re.compile(r"^NEW:\s*")
# A hyphenated word with a name in it. Groups 1 and 2: a prefix and a name (anti-American, R-Ohio);
# groups 3 and 4: a name and the rest (Saudi-led, Sunni-Shiite).
_HYPHENATED = re.compile(r"((?i:anti|pro|non|ex|all|trans|un|neo)|[DR])-([A-Z]\w+)|([A-Z][\w.]+)-(\w[\w.]*(?:-\w+)*)")
# The @ of a text's own @entity3 or @placeholder, which would look like one of ours.
_ENTITY_MARK = re.compile(r"@(?=entity\d|placeholder)")


@dataclass(frozen=True, slots=True)
class NewsQuestion:
    """A cloze question about anonymous entities, and the name of each entity."""

    example: Example
    names: dict[str, str]


def make_article_questions(article: Article, seed: int = 0, lowercase: bool = False) -> Iterator[NewsQuestion]:
    """The questions of one article: for each highlight, one for each of its entities that the article names too.

    Words keep their case unless `lowercase`, as in the official files. With the names hidden, capitals reveal little; a
    reader can lower-case its words itself, but the case could not be restored.
    """
    text = _mark_entities(article)
    output_text = text.to_lowercase() if lowercase else text
    candidates = text.list_names(text.document)
    for number, highlight in enumerate(text.highlights, 1):
        names = list(dict.fromkeys((*candidates, *text.list_names(highlight))))
        answers = [name for name in text.list_names(highlight) if name in candidates]
        if not _has_enough_words(text, highlight):
            continue
        for count, answer in enumerate(answers, 1):
            labels = _draw_labels(names, random.Random(f"{seed}/{article.id}/{number}/{answer}"))
            example = Example(
                id=f"{article.id}:{number}.{count}",
                document=output_text.replace_mentions(text.document, labels),
                question=tuple(chain.from_iterable(output_text.replace_mentions(highlight, {**labels, answer: GAP}))),
                candidates=tuple(labels[name] for name in candidates),
                answer=labels[answer],
            )
            yield NewsQuestion(example, {label: name for name, label in labels.items()})


def find_highlight_entities(article: Article) -> dict[str, bool]:
    """The entities of the highlights, and whether the article names each: only then it can be an answer."""
    text = _mark_entities(article)
    document_names = text.list_names(text.document)
    return {name: name in document_names for highlight in text.highlights for name in text.list_names(highlight)}


def strip_boilerplate(text: str) -> str:
    """An article without byline, time stamps and agency; the agency's place becomes a line of its own."""
    for pattern in (_TIME_STAMPS, _BYLINE):
        text = pattern.sub("", text.lstrip(), count=1)
    return _AGENCY.sub(lambda match: f"{match[1]}\n\n" if match[1] else "", text, count=1)


def restore_names(words: Sentence, names: Mapping[str, str]) -> Sentence:
    """Words with the names of the entities put back, each as one word."""
    return tuple(names.get(word, word) for word in words)


def question_file_name(question: NewsQuestion) -> str:
    """The file name in the style of the official data: a hash, since an id may hold any character."""
    return hashlib.sha1(question.example.id.encode()).hexdigest() + ".question"


def format_question_file(question: NewsQuestion) -> str:
    """The question as a `.question` file of CNN / Daily Mail; its URL holds the id."""
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
    row = json.loads(jsonl.format_example(question.example)) | {"entities": question.names}
    return json.dumps(row, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True)
class _EntitySpan:
    """A mention in a sentence: words `start` to `end`, and the name of its entity."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class _MarkedText:
    """The sentences of an article and its highlights, with the entity spans of each sentence.

    `document` and each of `highlights` are ranges of sentence indices.
    """

    sentences: tuple[Sentence, ...]
    spans: tuple[tuple[_EntitySpan, ...], ...]
    document: range
    highlights: tuple[range, ...]

    def to_lowercase(self) -> _MarkedText:
        """The same text in lower case."""
        return replace(self, sentences=tuple(tuple(map(str.lower, sentence)) for sentence in self.sentences))

    def list_names(self, indices: range) -> dict[str, None]:
        """The entities of some sentences, in order of appearance."""
        return dict.fromkeys(span.name for index in indices for span in self.spans[index])

    def replace_mentions(self, indices: range, labels: Mapping[str, str]) -> tuple[Sentence, ...]:
        """Some sentences with every mention replaced by a label."""
        return tuple(tuple(self._replace_in_sentence(index, labels)) for index in indices)

    def _replace_in_sentence(self, index: int, labels: Mapping[str, str]) -> Iterator[str]:
        sentence = self.sentences[index]
        position = 0
        for span in self.spans[index]:
            yield from sentence[position : span.start]
            yield labels[span.name]
            position = span.end
        yield from sentence[position:]


def _mark_entities(article: Article) -> _MarkedText:
    document = _split_sentences(strip_boilerplate(article.text))
    highlights = [_split_sentences(_NEW_MARK.sub("", highlight)) for highlight in article.highlights]
    ends = list(accumulate(map(len, (document, *highlights))))
    sentences = _split_hyphenated((*document, *chain.from_iterable(highlights)))
    spans: list[list[_EntitySpan]] = [[] for _ in sentences]
    for entity in find_entities(sentences):
        for mention in entity.mentions:
            spans[mention.sentence].append(_EntitySpan(mention.start, mention.end, entity.name))
    in_order = tuple(tuple(sorted(found, key=lambda span: span.start)) for found in spans)
    return _MarkedText(sentences, in_order, range(ends[0]), tuple(range(*pair) for pair in pairwise(ends)))


def _split_sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text, without page notes and without words that look like an anonymous entity or a gap."""
    sentences = []
    for sentence in tokenizer.tokenize_sentences(_ENTITY_MARK.sub("", text)):
        words = tuple(word for word in sentence if word != GAP)
        if words and not _PAGE_NOTE.search(" ".join(words)):
            sentences.append(words)
    return tuple(sentences)


def _split_hyphenated(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """Split names from what a hyphen joins to them: Saudi-led -> Saudi - led, anti-American -> anti - American."""
    vocabulary = {word for sentence in sentences for word in sentence}
    return tuple(
        tuple(part for word in sentence for part in (_split_word(word, vocabulary) if "-" in word else (word,)))
        for sentence in sentences
    )


def _split_word(word: str, vocabulary: set[str]) -> Sentence:
    if not (match := _HYPHENATED.fullmatch(word)):
        return (word,)
    prefix, name, first, second = match.groups()
    if prefix:
        is_split = name not in CLASS_LETTERS
    elif second[0].isupper():  # Sunni-Shiite is two names, Jean-Claude is one
        is_split = {first, second} <= vocabulary and look_up_tag(second.lower()) is None
    else:
        is_split = _is_known_name(first, vocabulary) and look_up_tag(second.rpartition("-")[2]) is not None
    return (first or prefix, "-", second or name) if is_split else (word,)


def _is_known_name(word: str, vocabulary: set[str]) -> bool:
    """Whether the first part of a hyphenated word is a name by itself: Saudi in Saudi-led, but not TV in TV-style."""
    lower = word.lower()
    is_only_capital = word in vocabulary and lower not in vocabulary
    is_known = CLASS_LETTERS.get(word) == "A" or look_up_tag(lower) in (None, "NNP") or is_only_capital
    return is_known and CLASS_LETTERS.get(word) != "k"


def _draw_labels(names: list[str], generator: random.Random) -> dict[str, str]:
    """Name -> @entityN, the numbers in random order."""
    numbers = generator.sample(range(len(names)), len(names))
    return {name: f"@entity{number}" for name, number in zip(names, numbers, strict=True)}


def _has_enough_words(text: _MarkedText, highlight: range) -> bool:
    """Whether a highlight has enough words left when its entities are hidden."""
    words = chain.from_iterable(text.replace_mentions(highlight, dict.fromkeys(text.list_names(highlight), GAP)))
    return sum(word != GAP and word[0].isalpha() for word in words) >= MIN_QUESTION_WORDS
