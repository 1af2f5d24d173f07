"""a file of raw or tokenised text -> Books of sentences, without headers, title pages, contents, notes and adverts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

from asreader.data.example import Sentence
from asreader.data.source_file import CHUNK_BYTES, SourceFile, report_errors
from asreader.data.text import chinese, tokenizer
from asreader.errors import InputError

Headings = Literal["drop", "keep"]

BOOK_TITLE = "_BOOK_TITLE_"
"""Prefix of the line that starts a book in a tokenised file; the name of the book follows."""
MAX_LINE_LENGTH = 1 << 20
"""Characters of a line without the end of a sentence; a longer line is not running text."""
MAX_HEADING_WORDS = 12
"""Words of a heading at most; twice as many if it is in capitals."""
MIN_PROSE_WORDS = 25
"""Words of prose under a heading that distinguish text from a title page or a list."""
BACK_MATTER_DIVISOR = 10
"""Notes and adverts are at most 1/10 of a book."""


@dataclass(frozen=True)
class Book:
    """The sentences of one book, in order."""

    name: str
    sentences: tuple[Sentence, ...]


def read_books(member: SourceFile, headings: Headings = "drop") -> Iterator[Book]:
    """The book of a raw text, or the books of a tokenised one, one at a time."""
    if not is_tokenised(member.read_head()):
        text = clean_text(_read_text(member), member.where, headings)
        yield Book(member.stem, tokenizer.tokenize_sentences(text))
        return
    has_books = False
    for name, lines in split_tokenised_books(member.read_lines()):
        has_books = True
        yield Book(name or member.stem, tuple(tuple(line.split()) for line in lines))
    if not has_books:
        raise InputError(f"{member.where}: titles of books and no text; put a sentence on each line under them")


def is_tokenised(head: str) -> bool:
    """Whether a text with this start has one sentence per line, with spaces between words and punctuation."""
    if head.startswith(BOOK_TITLE):
        return True
    lines = [line for line in head.split("\n")[:200] if line.strip()]
    lines = lines[:-1] or lines  # the last line may be incomplete
    tokenised = sum(" ".join(tokenizer.tokenize(line)) == line.strip() for line in lines)
    punctuated = sum(bool(_SEPARATE_PUNCTUATION.search(line)) for line in lines)
    return bool(lines) and tokenised >= 0.9 * len(lines) and punctuated >= 0.5 * len(lines)


def split_tokenised_books(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The name and the lines of each book of a tokenised text; the name is empty if there is no title line."""
    name = ""
    book: list[str] = []
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
    """The text of a raw book, one paragraph per line; a dropped heading leaves an empty line.

    Headings are dropped because they are not part of a sentence. `keep` leaves them on lines of their own; then a
    heading is joined to the sentence below it, as in the Children's Book Test.
    """
    _check_lines(text, where)
    body = _cut_gutenberg_frame(text.replace("\r\n", "\n").replace("\r", "\n"))
    blocks = _join_broken_paragraphs(_cut_front_and_back(_split_blocks(_remove_markup(body))))
    lines = ["" if headings == "drop" and _is_heading(block) else block.text for block in blocks]
    running = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    if not running:
        raise InputError(f"{where}: no running text is left of this book; give a plain text with sentences")
    return running


def _read_text(member: SourceFile) -> str:
    with report_errors(member.where), member.open() as stream:
        if b"\0" in stream.read(CHUNK_BYTES):
            raise InputError(f"{member.where}: a binary file, not a text; give the book as plain text in UTF-8")
    return "\n".join(member.read_lines())


def _check_lines(text: str, where: str) -> None:
    for line in re.split("[\r\n]", text) if len(text) > MAX_LINE_LENGTH else ():
        if len(line) > MAX_LINE_LENGTH and not re.search(r"[.!?。！？]\W", line[:MAX_LINE_LENGTH]):
            raise InputError(f"{where}: a line of over 1 MB without the end of a sentence; give running text")


# Punctuation between spaces, as in tokenised text: "He slept , she said ."
_SEPARATE_PUNCTUATION = re.compile(r"(?:^|\s)[.,;!?。，！？](?:\s|$)")

# --- Project Gutenberg's header and footer, old and new ---
# The last line of the header: "*** START OF THE PROJECT GUTENBERG EBOOK X ***", "*END*THE SMALL PRINT! ...*END*".
_HEADER_END = re.compile(
    r"^.*(?:\*\*\*\s*START OF (?:THE|THIS) PROJECT GUTENBERG|\*END\W*THE SMALL PRINT).*$", re.IGNORECASE | re.MULTILINE
)
# The first line of the footer: "*** END OF THE PROJECT GUTENBERG EBOOK X ***", "End of Project Gutenberg's X, by Y".
_FOOTER = re.compile(
    r"^(?:.*\*\*\*\s*END OF (?:THE|THIS) PROJECT GUTENBERG|[^\w\n]*End of (?:the |this )?Project Gutenberg)",
    re.IGNORECASE | re.MULTILINE,
)


def _cut_gutenberg_frame(text: str) -> str:
    *_, start = chain((0,), (match.end() for match in _HEADER_END.finditer(text, 0, max(30_000, len(text) // 4))))
    footer = _FOOTER.search(text, start)
    return text[start : footer.start() if footer else len(text)]


# --- markup inside the text ---
# The first words of an editor's note in brackets.
_EDITOR_WORDS = (
    "Illustrations?|Frontispiece|Footnotes?|Transcriber|Transcriptions?|Sidenote|Book cover|Decoration|Tailpiece|"
    "Headpiece|Cover|Picture|Map|Blank page|Pg|Page|p\\."
)
_MARKUP = (
    # An editor's note in brackets, over several lines and with inner brackets: [Illustration: The [tall] reeds.],
    # {Pg 12}. A note without a closing bracket stays.
    (
        re.compile(
            rf"[\[{{](?:{_EDITOR_WORDS})(?![^\W\d_])(?:[^\[\]{{}}]|\[[^\[\]]*\]){{0,2000}}[\]}}]", re.IGNORECASE
        ),
        "",
    ),
    # References to footnotes: [1], [A], {12}, days.(1)
    (re.compile(r"\[(?:\d{1,3}|[A-Z*†‡])\]|\{\d{1,3}[a-z]?\}|(?<=[\w.,;:!?\"'])\(\d{1,3}\)"), ""),
    # A blank name (Mr. ____) must not look like the gap of a question.
    (re.compile(r"_{2,}"), "--"),
    # _italics_ (but not snake_land) and =bold=
    (re.compile(r"(?<![^\W_])_|_(?![^\W_])"), ""),
    (re.compile(r"(?<!\w)=(\w[^=\n]*)=(?!\w)"), r"\1"),
    # Lines without words ("* * *", "-----"), and page numbers on a line of their own.
    (re.compile(r"^(?:[^\w\n]+|[^\S\n]*\d{1,4}[^\S\n]*)$", re.MULTILINE), ""),
)


# A word divided by a hyphen at the end of a line: "af-\nternoon" (also "elm-\ntree").
_LINE_BREAK_HYPHEN = re.compile(r"([^\W\d_]+)-\n[^\S\n]*([^\W\d_]+)")


def _remove_markup(text: str) -> str:
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    # The hyphen at the end of a line stays (elm-tree), unless the text also has the word without it (afternoon).
    words = frozenset(re.findall(r"[^\W\d_]+", text)) if _LINE_BREAK_HYPHEN.search(text) else frozenset[str]()
    return _LINE_BREAK_HYPHEN.sub(lambda match: match[1] + "-" * (match[1] + match[2] not in words) + match[2], text)


# --- paragraphs ---
_FINAL_PUNCTUATION = tuple(".!?:;,—-…。！？：；，")
_OPENING_QUOTES = "\"'`“‘「『"
_CLOSING_MARKS = "\"'”’)]»」』）_ "


@dataclass(frozen=True)
class _Block:
    """The lines of a paragraph, and the number of empty lines before them."""

    lines: tuple[str, ...]
    empty_before: int

    @cached_property
    def text(self) -> str:
        return " ".join(chinese.join_wrapped_lines("\n".join(self.lines)).split())

    @cached_property
    def size(self) -> int:
        """The number of words; Chinese has no spaces and about two characters per word."""
        text = self.text
        return len(text.split()) + (0 if text.isascii() else len(re.findall(f"[{chinese.HAN}]", text)) // 2)


def _split_blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    lines: list[str] = []
    empty = 2
    for line in chain(text.split("\n"), ("",)):
        if line.strip():
            lines.append(line)
        elif lines:
            blocks.append(_Block(tuple(lines), empty))
            lines, empty = [], 1
        else:
            empty += 1
    return blocks


def _join_broken_paragraphs(blocks: Iterable[_Block]) -> Iterator[_Block]:
    """Join a paragraph that an illustration or a page number had broken in two."""
    pending: _Block | None = None
    for block in blocks:
        if pending and block.text[0].islower() and not _is_ended(pending.text):
            pending = _Block(pending.lines + block.lines, pending.empty_before)
            continue
        if pending:
            yield pending
        pending = block
    if pending:
        yield pending


def _is_ended(text: str) -> bool:
    return text.rstrip(_CLOSING_MARKS).endswith(_FINAL_PUNCTUATION)


# --- headings, lists, notes ---
# The start of a chapter heading: "Chapter the Second", "PREFACE", "第一章".
_CHAPTER_WORD = re.compile(
    r"\W*(?:(?:chapter|book|part|canto|stave|volume|act|scene|section|preface|prologue|epilogue|introduction|"
    r"foreword|contents)\b|第[\d一二三四五六七八九十百零〇两]+[章回节卷部])",
    re.IGNORECASE,
)
# The start of a numbered heading or list entry: "Chapter IV", "Letter 3", "II. The Mill", "12 The Mill", "I  The Mill".
_NUMBERED_START = re.compile(
    r"\s*(?:(?i:chapter|book|part|canto|letter|stave|scene|act|volume|story|lesson|no\.?)\s+(?:[IVXLC]+|\d+)\b|"
    r"(?:[IVXLC]+|\d+)[.):]|[IVXLC]{2,}\s|\d+\s|I\s\s)"
)
# The end of a list entry, a page number after dots or spaces: "The Pond . . . 17", "The Mill   xii".
_PAGE_NUMBER_END = re.compile(r"(?:\s\s|\.\s?)(?:\d+|[ivxlc]+|Frontispiece)\s*$")
# Words that may be in lower case in a title.
_SMALL_TITLE_WORDS = frozenset("a an and at by de for from in into is la le of on or the to with von".split())


def _is_heading(block: _Block) -> bool:
    """Whether a block is short and in capitals, a chapter title, or in title case or set off without a full stop."""
    text, words = block.text, block.text.split()
    if block.size > 2 * MAX_HEADING_WORDS or (text[0] in _OPENING_QUOTES and _is_ended(text)):
        return False
    if not any(map(str.isalpha, text)) or (text.isupper() and (block.empty_before > 1 or text[-1] not in "!?")):
        return True
    if block.size > MAX_HEADING_WORDS:
        return False
    title_fraction = sum(not word[0].islower() or word.lower() in _SMALL_TITLE_WORDS for word in words) / len(words)
    if _is_ended(text):
        return bool(_CHAPTER_WORD.match(text)) and title_fraction > 0.8
    return title_fraction > 0.8 or block.empty_before > 1 or bool(_CHAPTER_WORD.match(text))


def _is_list(block: _Block) -> bool:
    """Whether a block is a table of contents: three lines or more, most in capitals, numbered or with a page number."""
    if len(block.lines) < 3:
        return False
    entries = sum(
        bool(
            line.isupper()
            or _PAGE_NUMBER_END.search(line[-20:])
            or (_NUMBERED_START.match(line) and not _is_ended(line))
        )
        for line in block.lines
    )
    return entries >= 0.7 * len(block.lines)


def _is_prose(block: _Block) -> bool:
    """Whether a block ends like a sentence and is neither a heading nor an entry of a list."""
    text, words = block.text, block.text.split()
    if not _is_ended(text) or _is_heading(block) or _is_list(block) or _NUMBERED_START.match(text):
        return False
    return text[0] in _OPENING_QUOTES or sum(word[0].isupper() for word in words) < 0.5 * len(words)


def _is_note(block: _Block) -> bool:
    text = block.text
    return text[0] + text[-1] == "[]" and block.size <= 2 * MAX_HEADING_WORDS


# --- front matter and back matter ---
# The start of a credit line: "Produced by ...", "E-text prepared by ...", "This eBook was ...".
_CREDITS = re.compile(
    r"(?:Produced|Prepared|Transcribed|Scanned|Digiti[sz]ed|Proofed|Credits|HTML version|"
    r"E-?text (?:prepared|produced|scanned)|This (?:e-?text|e-?book|file) was)\b",
    re.IGNORECASE,
)
# The heading of a list: "Table of Contents", "LIST OF ILLUSTRATIONS.", "目录".
_LIST_HEADING = re.compile(
    r"(?:Table of )?Contents\W*|(?:List of |Full-page )?(?:Illustrations|Plates|Maps)\W*|Index\W*|目\s*录",
    re.IGNORECASE,
)
# The end of a book as a line of its own: "THE END.", "* FINIS *", "全书完".
_THE_END = re.compile(r"\W*(?:THE END|FINIS|END|The End|全书完|完)\W*")
# The heading of back matter: "Transcriber's Notes", "Footnotes", "Other books by ...", "... & Co., Publishers".
_BACK_MATTER_HEADING = re.compile(
    r"\W*(?:transcriber\W*s? notes?|footnotes?|end-?notes?|notes|by the same author|advertisements?)\b.*|"
    r"\W*(?:(?:other|more|new|popular|famous|latest) )*(?:books|works|stories|novels) (?:by|for)\b.*|"
    r".*\b(?:publishers|booksellers|catalogue|12mo|16mo|8vo)\b.*",
    re.IGNORECASE,
)


def _cut_front_and_back(blocks: list[_Block]) -> Iterator[_Block]:
    """The blocks without credits, title page and lists at the start, and without notes and adverts at the end."""
    blocks = [block for block in blocks[:40] if not _CREDITS.match(block.text)] + blocks[40:]
    blocks = blocks[: _find_end(blocks)]
    index = _find_start(blocks, 0)
    while index < len(blocks):
        block = blocks[index]
        if _LIST_HEADING.fullmatch(block.text):
            index = _find_start(blocks, index + 1)
            continue
        if not _is_list(block) and not _is_note(block):
            yield block
        index += 1


def _find_start(blocks: list[_Block], first: int) -> int:
    """Index where the text starts after a title page or a list: the heading above the first prose of some length."""
    start, size = first, 0
    for index in range(first, len(blocks)):
        if _is_prose(blocks[index]):
            size += blocks[index].size
        else:
            start, size = index + (not _is_heading(blocks[index])), 0
        if size >= MIN_PROSE_WORDS:
            return start
    return first


def _find_end(blocks: list[_Block]) -> int:
    """Index of the heading where the back matter starts; the number of blocks if there is none."""
    limit = sum(len(block.text) for block in blocks) // BACK_MATTER_DIVISOR
    size = 0
    end = len(blocks)
    for index in range(len(blocks) - 1, 0, -1):
        size += len(blocks[index].text)
        if size > limit:
            break
        if _THE_END.fullmatch(blocks[index].text):
            # "The End" may also be the title of the last chapter.
            return end if _CHAPTER_WORD.match(blocks[index - 1].text) else index
        if _is_heading(blocks[index]) and _BACK_MATTER_HEADING.fullmatch(blocks[index].text):
            end = index
    return end
