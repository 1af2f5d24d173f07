"""a file of raw or tokenised text -> Books of sentences: what frames the text of a book goes, the text stays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

from asreader.data.example import Sentence
from asreader.data.source_file import CHUNK, Member, blaming
from asreader.data.text import chinese, tokenizer
from asreader.errors import InputError

Headings = Literal["drop", "keep"]

BOOK_TITLE = "_BOOK_TITLE_"
"""What the line begins with that starts a book in a tokenised file; its name follows."""
MAX_LINE_LENGTH = 1 << 20
"""Characters before the first sentence end of a line: more is no running text."""
MAX_HEADING_WORDS = 12
"""Words of a heading, at most; twice as many in capitals."""
MIN_PROSE_WORDS = 25
"""Words under a heading from which on there is text, and no title page or list."""
BACK_MATTER_DIVISOR = 10
"""Notes and adverts take at most one part in so many of a book."""


@dataclass(frozen=True)
class Book:
    """The sentences of one book, in order."""

    name: str
    sentences: tuple[Sentence, ...]


def read_books(member: Member, headings: Headings = "drop") -> Iterator[Book]:
    """The book of a raw text, or the books of a tokenised one, each read when it is asked for."""
    if not is_tokenised(member.head()):
        text = clean_text(_text(member), member.where, headings)
        yield Book(member.stem, tokenizer.sentences(text))
        return
    found = False
    for name, lines in split_tokenised_books(member.lines()):
        found = True
        yield Book(name or member.stem, tuple(tuple(line.split()) for line in lines))
    if not found:
        raise InputError(f"{member.where}: titles of books and no text; put a sentence on each line under them")


def is_tokenised(head: str) -> bool:
    """Whether a text that starts like this has a sentence on each line, its words and points apart by spaces."""
    if head.startswith(BOOK_TITLE):
        return True
    lines = [line for line in head.split("\n")[:200] if line.strip()]
    lines = lines[:-1] or lines  # the last one may be cut off
    apart = sum(" ".join(tokenizer.words(line)) == line.strip() for line in lines)
    pointed = sum(bool(_POINT_APART.search(line)) for line in lines)
    return bool(lines) and apart >= 0.9 * len(lines) and pointed >= 0.5 * len(lines)


def split_tokenised_books(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The name and the lines of each book of a tokenised text; no name where the text has none."""
    name, book = "", list[str]()
    for line in lines:
        if line.startswith(BOOK_TITLE):
            if book:
                yield name, book
            name, book = line.removeprefix(BOOK_TITLE).strip(" :\t"), []
        elif line.strip():
            book.append(line)
    if book:
        yield name, book


def clean_text(text: str, where: str, headings: Headings = "drop") -> str:
    """The text of a raw book, a paragraph a line; an empty line stands where a heading was.

    Headings are dropped: they are no part of a sentence. `keep` leaves them on lines of their own, so that a heading
    is joined to the sentence below it, as in the Children's Book Test, whose text had lost its lines.
    """
    _check(text, where)
    blocks = _blocks(_unmarked(_body(text.replace("\r\n", "\n").replace("\r", "\n"))))
    lines = ["" if headings == "drop" and _is_heading(block) else block.text for block in _mended(_unframed(blocks))]
    running = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    if not running:
        raise InputError(f"{where}: no running text is left of this book; give a plain text that has sentences")
    return running


def _text(member: Member) -> str:
    with blaming(member.where), member.open() as stream:
        if b"\0" in stream.read(CHUNK):
            raise InputError(f"{member.where}: a binary file, not a text; give the book as plain text in UTF-8")
    return "\n".join(member.lines())


def _check(text: str, where: str) -> None:
    for line in re.split("[\r\n]", text) if len(text) > MAX_LINE_LENGTH else ():
        if len(line) > MAX_LINE_LENGTH and not re.search(r"[.!?。！？]\W", line[:MAX_LINE_LENGTH]):
            raise InputError(f"{where}: a line of over 1 MB without the end of a sentence; give running text")


_POINT_APART = re.compile(r"(?:^|\s)[.,;!?。，！？](?:\s|$)")

# --- Project Gutenberg's header and footer, old and new ---
_BEGIN = re.compile(
    r"^.*(?:\*\*\*\s*START OF (?:THE|THIS) PROJECT GUTENBERG|\*END\W*THE SMALL PRINT).*$", re.IGNORECASE | re.MULTILINE
)
_FINISH = re.compile(
    r"^(?:.*\*\*\*\s*END OF (?:THE|THIS) PROJECT GUTENBERG|[^\w\n]*End of (?:the |this )?Project Gutenberg)",
    re.IGNORECASE | re.MULTILINE,
)


def _body(text: str) -> str:
    *_, start = chain((0,), (found.end() for found in _BEGIN.finditer(text, 0, max(30_000, len(text) // 4))))
    finish = _FINISH.search(text, start)
    return text[start : finish.start() if finish else len(text)]


# --- marks inside the text ---
_EDITOR = (
    "Illustrations?|Frontispiece|Footnotes?|Transcriber|Transcriptions?|Sidenote|Book cover|Decoration|Tailpiece|"
    "Headpiece|Cover|Picture|Map|Blank page|Pg|Page|p\\."
)
_MARKS = (
    # What an editor put in brackets, over several lines and with brackets of its own; one that is never closed stays.
    (re.compile(rf"[\[{{](?:{_EDITOR})(?![^\W\d_])(?:[^\[\]{{}}]|\[[^\[\]]*\]){{0,2000}}[\]}}]", re.IGNORECASE), ""),
    # Signs of footnotes: [1], [A], {12}, days.(1)
    (re.compile(r"\[(?:\d{1,3}|[A-Z*†‡])\]|\{\d{1,3}[a-z]?\}|(?<=[\w.,;:!?\"'])\(\d{1,3}\)"), ""),
    # A name left blank is no gap of a question.
    (re.compile(r"_{2,}"), "--"),
    # _italics_ and =bold=
    (re.compile(r"(?<![^\W_])_|_(?![^\W_])"), ""),
    (re.compile(r"(?<!\w)=(\w[^=\n]*)=(?!\w)"), r"\1"),
    # Lines that hold a row of asterisks or dashes, or the number of a page.
    (re.compile(r"^(?:[^\w\n]+|[^\S\n]*\d{1,4}[^\S\n]*)$", re.MULTILINE), ""),
)


_WRAPPED = re.compile(r"([^\W\d_]+)-\n[^\S\n]*([^\W\d_]+)")


def _unmarked(text: str) -> str:
    for pattern, replacement in _MARKS:
        text = pattern.sub(replacement, text)
    # A hyphen at the end of a line is the word's own, unless the text has the word without it.
    words = frozenset(re.findall(r"[^\W\d_]+", text)) if _WRAPPED.search(text) else frozenset[str]()
    return _WRAPPED.sub(lambda found: found[1] + "-" * (found[1] + found[2] not in words) + found[2], text)


# --- paragraphs ---
_FINAL = tuple(".!?:;,—-…。！？：；，")
_QUOTES = "\"'`“‘「『"
_CLOSERS = "\"'”’)]»」』）_ "


@dataclass(frozen=True)
class _Block:
    """Lines between empty lines, and how many empty lines stand before them."""

    lines: tuple[str, ...]
    gap: int

    @cached_property
    def text(self) -> str:
        return " ".join(chinese.unwrapped("\n".join(self.lines)).split())

    @cached_property
    def size(self) -> int:
        """Words; Chinese has no spaces, and about two characters a word."""
        text = self.text
        return len(text.split()) + (0 if text.isascii() else len(re.findall(f"[{chinese.HAN}]", text)) // 2)


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    lines: list[str] = []
    gap = 2
    for line in chain(text.split("\n"), ("",)):
        if line.strip():
            lines.append(line)
        elif lines:
            blocks.append(_Block(tuple(lines), gap))
            lines, gap = [], 1
        else:
            gap += 1
    return blocks


def _mended(blocks: Iterable[_Block]) -> Iterator[_Block]:
    """A paragraph that an illustration or a page had cut in two is one again."""
    held: _Block | None = None
    for block in blocks:
        if held and block.text[0].islower() and not _is_ended(held.text):
            held = _Block(held.lines + block.lines, held.gap)
            continue
        if held:
            yield held
        held = block
    if held:
        yield held


def _is_ended(text: str) -> bool:
    return text.rstrip(_CLOSERS).endswith(_FINAL)


# --- headings, lists, notes ---
_DIVISION = re.compile(
    r"\W*(?:(?:chapter|book|part|canto|stave|volume|act|scene|section|preface|prologue|epilogue|introduction|"
    r"foreword|contents)\b|第[\d一二三四五六七八九十百零〇两]+[章回节卷部])",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"\s*(?:(?i:chapter|book|part|canto|letter|stave|scene|act|volume|story|lesson|no\.?)\s+(?:[IVXLC]+|\d+)\b|"
    r"(?:[IVXLC]+|\d+)[.):]|[IVXLC]{2,}\s|\d+\s|I\s\s)"
)
_PAGED = re.compile(r"(?:\s\s|\.\s?)(?:\d+|[ivxlc]+|Frontispiece)\s*$")
_SMALL = frozenset("a an and at by de for from in into is la le of on or the to with von".split())


def _is_heading(block: _Block) -> bool:
    """Short, and in capitals, or called a chapter, or titled and without a point, or set off by empty lines."""
    text, words = block.text, block.text.split()
    if block.size > 2 * MAX_HEADING_WORDS or (text[0] in _QUOTES and _is_ended(text)):
        return False
    if not any(map(str.isalpha, text)) or (text.isupper() and (block.gap > 1 or text[-1] not in "!?")):
        return True
    if block.size > MAX_HEADING_WORDS:
        return False
    titled = sum(not word[0].islower() or word.lower() in _SMALL for word in words) / len(words)
    if _is_ended(text):
        return bool(_DIVISION.match(text)) and titled > 0.8
    return titled > 0.8 or block.gap > 1 or bool(_DIVISION.match(text))


def _is_list(block: _Block) -> bool:
    """Three lines or more, most of them in capitals, numbered or with a page behind them: a table of contents."""
    if len(block.lines) < 3:
        return False
    entries = sum(
        bool(line.isupper() or _PAGED.search(line[-20:]) or (_NUMBERED.match(line) and not _is_ended(line)))
        for line in block.lines
    )
    return entries >= 0.7 * len(block.lines)


def _is_prose(block: _Block) -> bool:
    """Ended like a sentence, and neither heading nor entry of a list."""
    text, words = block.text, block.text.split()
    if not _is_ended(text) or _is_heading(block) or _is_list(block) or _NUMBERED.match(text):
        return False
    return text[0] in _QUOTES or sum(word[0].isupper() for word in words) < 0.5 * len(words)


def _is_note(block: _Block) -> bool:
    text = block.text
    return text[0] + text[-1] == "[]" and block.size <= 2 * MAX_HEADING_WORDS


# --- what stands around the text of a book ---
_CREDITS = re.compile(
    r"(?:Produced|Prepared|Transcribed|Scanned|Digiti[sz]ed|Proofed|Credits|HTML version|"
    r"E-?text (?:prepared|produced|scanned)|This (?:e-?text|e-?book|file) was)\b",
    re.IGNORECASE,
)
_LIST_HEAD = re.compile(
    r"(?:Table of )?Contents\W*|(?:List of |Full-page )?(?:Illustrations|Plates|Maps)\W*|Index\W*|目\s*录",
    re.IGNORECASE,
)
_THE_END = re.compile(r"\W*(?:THE END|FINIS|END|The End|全书完|完)\W*")
_BACK = re.compile(
    r"\W*(?:transcriber\W*s? notes?|footnotes?|end-?notes?|notes|by the same author|advertisements?)\b.*|"
    r"\W*(?:(?:other|more|new|popular|famous|latest) )*(?:books|works|stories|novels) (?:by|for)\b.*|"
    r".*\b(?:publishers|booksellers|catalogue|12mo|16mo|8vo)\b.*",
    re.IGNORECASE,
)


def _unframed(blocks: list[_Block]) -> Iterator[_Block]:
    """The blocks without credits, title page and lists in front, without notes and adverts at the end."""
    blocks = [block for block in blocks[:40] if not _CREDITS.match(block.text)] + blocks[40:]
    blocks = blocks[: _finish(blocks)]
    place = _start(blocks, 0)
    while place < len(blocks):
        block = blocks[place]
        if _LIST_HEAD.fullmatch(block.text):
            place = _start(blocks, place + 1)
            continue
        if not _is_list(block) and not _is_note(block):
            yield block
        place += 1


def _start(blocks: list[_Block], place: int) -> int:
    """Where the text begins behind a title page or a list: at the heading above the first prose of some length."""
    start, size = place, 0
    for number in range(place, len(blocks)):
        if _is_prose(blocks[number]):
            size += blocks[number].size
        else:
            start, size = number + (not _is_heading(blocks[number])), 0
        if size >= MIN_PROSE_WORDS:
            return start
    return place


def _finish(blocks: list[_Block]) -> int:
    """The place of the heading, near the end of a book, under which no more of its text stands."""
    rest, limit = 0, sum(len(block.text) for block in blocks) // BACK_MATTER_DIVISOR
    found = len(blocks)
    for place in range(len(blocks) - 1, 0, -1):
        rest += len(blocks[place].text)
        if rest > limit:
            break
        if _THE_END.fullmatch(blocks[place].text):
            # Not where it is the title of the last chapter.
            return found if _DIVISION.match(blocks[place - 1].text) else place
        if _is_heading(blocks[place]) and _BACK.fullmatch(blocks[place].text):
            found = place
    return found
