"""sentences of words -> the entities they name, each with all its mentions.

Every word gets a class letter (name_classes.py); a mention is what a regular expression finds in the letters of a
sentence: `Bank of England` is GoN, `President Barack Obama` is tNN. Mentions of one entity are grouped by
coreference.py. Months, days and numbers are not entities, titles are not part of one; peoples are entities, as in the
data of Hermann et al. (2015).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from asreader.cloze.news.coreference import Key, Mention, Name, NameGroups
from asreader.cloze.news.name_classes import TextUsage, classify_name_words, count_usage
from asreader.cloze.news.name_words import LOCATION_PREPOSITIONS
from asreader.data.example import Sentence

# One word of a name; a modifier counts only if no title follows it (State Department, not Prime Minister).
_WORD = r"(?:[NADCGi]|M(?!M*t))"
# A mention in class letters; the alternatives are tried in this order.
_MENTION = re.compile(
    # a title with "of", which is skipped: Secretary of State
    r"(?P<title>t+od?M+)"
    # a title in quotes: "The Silence of the Geese"
    r"|Q+"
    # a noble title: Duke of Cambridge
    r"|Bod?[NDCA]"
    # an organization with "of", "for" or "on", perhaps followed by "and": Bank of England, Department of Health and
    # Human Services; also common words with "of": Knights of Malta
    rf"|(?:[NADCiM]*G[of]d?|[CD]*Cod?){_WORD}+(?:[of]d?{_WORD}+)*(?:a[CGM]+(?![NADio]))?"
    # any other run of name words, perhaps with particles, "&", function words, 's, a suffix or a number inside or at
    # the end: Jan van Dorp, Marks & Spencer, Valentine's Day, Robert Dubrov Jr., Flight 370
    rf"|(?:p+(?=N))?{_WORD}(?:&?p*{_WORD}|x+{_WORD}|sH)*(?:r|(?<=C)0)?"
)


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that one or more mentions name; `name` is the fullest of their spellings."""

    name: str
    mentions: tuple[Mention, ...]


def find_entities(sentences: Sequence[Sentence]) -> tuple[Entity, ...]:
    """The entities of one text in order of appearance. Every mention belongs to exactly one; mentions never overlap."""
    usage = count_usage(sentences)
    found = [name for index, sentence in enumerate(sentences) for name in _find_names(index, sentence, usage)]
    names = list(_split_names(found))
    groups = NameGroups(names)
    mentions: defaultdict[Key, list[Mention]] = defaultdict(list)
    for name in names:
        mentions[groups.find_fullest(name.key)].append(name.mention)
    return tuple(Entity(_choose_spelling(group, sentences), tuple(group)) for group in mentions.values())


def _find_names(index: int, sentence: Sentence, usage: TextUsage) -> Iterator[Name]:
    for match in _MENTION.finditer(classify_name_words(sentence, usage)):
        start, end = match.span()
        word = sentence[start]
        key = _make_key(sentence[start:end])
        # A single common word that the text mostly writes in lower case is not a name.
        is_common = re.fullmatch("[CGM]", match[0]) and usage.lower[word.lower()] and not usage.prefers_capital(word)
        if not match["title"] and not is_common and len("".join(key)) > 1:
            yield Name(Mention(index, start, end), match[0], key, sentence[start - 1] if start else "")


def _make_key(words: Iterable[str]) -> Key:
    text = unicodedata.normalize("NFKD", " ".join(words).lower())
    plain = "".join(char for char in text if char != "." and not unicodedata.combining(char))
    key = plain.replace("-", " ").split()
    return tuple(key[1:] if key[0] == "the" and len(key) > 1 else key)


def _split_names(names: list[Name]) -> Iterator[Name]:
    """Split adjacent names (Russian Vladimir Putin, Ohio GOP) where the text also has one of the two alone."""
    alone = {name.key for name in names if len(name.key) > 1 or re.fullmatch("[NAD]", name.letters)}
    places = {name.key for name in names if name.before in LOCATION_PREPOSITIONS}
    for name in names:
        mention, key, letters = name.mention, name.key, name.letters
        cut = _find_cut(name, alone, places)
        if cut:
            first = Mention(mention.sentence, mention.start, mention.start + cut)
            yield Name(first, letters[:cut], key[:cut], name.before)
        before = key[cut - 1] if cut else name.before
        yield Name(Mention(mention.sentence, mention.start + cut, mention.end), letters[cut:], key[cut:], before)


def _find_cut(name: Name, alone: set[Key], places: set[Key]) -> int:
    """After how many words a name is split; 0 if it stays whole."""
    key, letters = name.key, name.letters
    has_word_per_letter = name.mention.end - name.mention.start == len(key)
    if not has_word_per_letter or len(key) < 2:
        return 0
    # A people, an acronym or a place before a name: Russian | Vladimir Putin, London | Boris Johnson
    opens_with_other = letters[0] in "DA" or (key[:1] in places and len(key) > 2)
    if key[1:] in alone and letters[1:] != "D" and opens_with_other:
        return 1
    # A name before an acronym: Ohio | GOP
    ends_with_other = re.search("N[AD]$", letters) and key[-1:] in alone
    if ends_with_other and (letters[-1] == "A" or key[-1] == "republican"):
        return len(key) - 1
    return 0


def _choose_spelling(mentions: list[Mention], sentences: Sequence[Sentence]) -> str:
    """The spelling with the most words; of these rather one not in capitals, then the most frequent."""
    spellings = Counter(" ".join(sentences[at.sentence][at.start : at.end]) for at in mentions)
    return max(spellings, key=lambda name: (name.count(" "), not name.isupper(), spellings[name]))
