"""Answer -> Drawing: the paper's attention figure as boxes, lines and words on a sheet, whatever draws them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from asreader.attention import shades
from asreader.attention.shades import MAX_RANK, ShadedWord
from asreader.inference.answer import Answer
from asreader.system.markup import shortened, visible

WIDTH = 640
MARGIN = 20
SIZE = 14
LINE = 27
PADDING = 2.5
PLOT = 84
INK, QUIET, RULE, BAR, PAPER = "#1b1d21", "#5d636c", "#c9cdd3", "#b86a00", "#ffffff"
SHADES = ("none", "#fff6e6", "#ffeaca", "#ffdda8", "#ffcf83", "#ffc05a", "#ffae2b")
MARK = "#8f5200"
MAX_WORD_LENGTH = 30
"""Characters of a word in a picture."""
MAX_CANDIDATES = 5
"""Candidates that are listed."""

# Widths of space to tilde in Helvetica, in thousandths of its size; Arial and Liberation Sans have the same.
_WIDTHS = """278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278
278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 667
667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500
722 500 500 500 334 260 334 584"""
_ADVANCES = {chr(32 + place): int(width) / 1000 for place, width in enumerate(_WIDTHS.split())}


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    fill: str = "none"
    stroke: str = "none"
    thickness: float = 1
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """Words on a line that begins at x, or ends or has its middle there; drawn exactly `width` wide."""

    x: float
    y: float
    text: str
    width: float
    size: float = SIZE
    colour: str = INK
    bold: bool = False
    anchor: str = "start"


@dataclass
class Drawing:
    """A sheet WIDTH wide: boxes first, words on top."""

    title: str
    height: float = 0
    boxes: list[Box] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    def write(
        self,
        x: float,
        y: float,
        text: str,
        size: float = SIZE,
        colour: str = INK,
        bold: bool = False,
        anchor: str = "start",
    ) -> float:
        """Put words down; returns how wide they are."""
        width = measure_text(text, size, bold)
        self.labels.append(Label(x, y, text, width, size, colour, bold, anchor))
        return width

    def rule(self, y: float) -> None:
        """A line across the sheet."""
        self.boxes.append(Box(MARGIN, y, WIDTH - 2 * MARGIN, 1, RULE))


def measure_text(text: str, size: float, bold: bool = False) -> float:
    """How wide a text is, roughly: drawing stretches it to exactly this."""
    return size * sum(map(_advance, text)) * (1.06 if bold else 1)


def _advance(letter: str) -> float:
    if letter in _ADVANCES:
        return _ADVANCES[letter]
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0.0
    return 1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.6


def lay_out_figure(answer: Answer, longest: int = 160) -> Drawing:
    """The text with its attention, of a longer document the strongest sentences; the plot; the question; the rivals."""
    said = "nobody" if answer.answer is None else shortened(shades.format_word(answer.answer, answer), MAX_WORD_LENGTH)
    sheet = Drawing(title=f"Attention of a reader that answers {said} with {answer.confidence:.0%} confidence")
    kept = shades.select_excerpt(answer, longest)
    y = _text(sheet, answer, kept, MARGIN + SIZE)
    y = _plot(sheet, answer, kept, y + 8)
    sheet.rule(y + 6)
    y = _question(sheet, answer, y + 6 + LINE)
    sheet.rule(y + 12)
    sheet.height = _candidates(sheet, answer, y + 12 + LINE) + 8
    return sheet


def _text(sheet: Drawing, answer: Answer, kept: Sequence[range], y: float) -> float:
    """Pieces of the text flow into lines; dots stand for what is left out."""
    words = shades.shade_words(answer)
    x, stop = float(MARGIN), 0
    for piece in (*kept, range(len(words), len(words))):
        if piece.start != stop:
            x, y = _flow(sheet, x, y, "…", True)
        for word in words[piece.start : piece.stop]:
            x, y = _flow(sheet, x, y, word.text, word.spaced or word.position == piece.start, word)
        stop = piece.stop
    return y + LINE / 2


def _flow(
    sheet: Drawing, x: float, y: float, text: str, spaced: bool, word: ShadedWord | None = None
) -> tuple[float, float]:
    """One word at the end of the line, or at the start of the next; returns where the line now ends."""
    text = visible(shortened(text, MAX_WORD_LENGTH))
    number = str(word.rank) if word and word.rank else ""
    strong = bool(word and word.level == shades.LEVELS)
    wide = measure_text(text, SIZE, strong) + (measure_text(number, 9) + 3 if number else 0)
    marked = word is not None and (word.level or word.rank is not None)
    x += measure_text(" ", SIZE) if spaced and x > MARGIN else 0
    room = PADDING if marked else 0
    if x > MARGIN and x + wide + 2 * room > WIDTH - MARGIN:
        x, y = MARGIN, y + LINE
    x += room
    if word and marked:
        _mark(sheet, word, x, y, wide)
    sheet.write(x, y, text, bold=strong)
    if number:
        sheet.write(x + wide, y - 5, number, 9, bold=True, anchor="end")
    return x + wide + room, y


def _mark(sheet: Drawing, word: ShadedWord, x: float, y: float, wide: float) -> None:
    """Shade, an underline as thick as the attention is strong, and a frame around a candidate."""
    top, tall = y - SIZE + 1, SIZE + 4
    line = 0.8 * word.level
    if word.level:
        sheet.boxes.append(Box(x - PADDING, top, wide + 2 * PADDING, tall, SHADES[word.level]))
        sheet.boxes.append(Box(x - PADDING, top + tall, wide + 2 * PADDING, line, MARK))
    if word.rank is not None:
        first = word.rank == 1
        room = Box(x - PADDING, top, wide + 2 * PADDING, tall + line, stroke=INK if first else QUIET, dashed=not first)
        sheet.boxes.append(room)


def _plot(sheet: Drawing, answer: Answer, kept: Sequence[range], y: float) -> float:
    """Attention per position; a band below shows which part of the document stands above."""
    words = shades.shade_words(answer)
    top = max((word.share for word in words), default=0.0) or 1.0
    floor, room = y + PLOT, WIDTH - 2 * MARGIN
    step = room / len(words)
    sheet.rule(floor)
    sheet.write(MARGIN, y + 8, f"{top:.0%}", 10, QUIET)
    for word in words:
        tall = (PLOT - 14) * word.share / top
        x = MARGIN + step * word.position
        if tall >= 0.3:
            wide = min(max(0.7 * step, 1.2), 8)
            sheet.boxes.append(Box(x + (step - wide) / 2, floor - tall, wide, tall, BAR))
            if word.rank and word.level > 1:
                sheet.write(x + step / 2, floor - tall - 3, str(word.rank), 10, bold=True, anchor="middle")
    if sum(map(len, kept)) < len(words):
        sheet.boxes += [Box(MARGIN + step * piece.start, floor + 2, step * len(piece), 3, QUIET) for piece in kept]
    sheet.write(MARGIN, floor + 17, "word 1", 10, QUIET)
    sheet.write(WIDTH / 2, floor + 17, "attention at each word of the document", 10, QUIET, anchor="middle")
    sheet.write(WIDTH - MARGIN, floor + 17, f"word {len(words):,}", 10, QUIET, anchor="end")
    return floor + 20


def _question(sheet: Drawing, answer: Answer, y: float) -> float:
    x = float(MARGIN)
    for text, spaced in shades.space_words(answer.question, answer):
        x, y = _flow(sheet, x, y, text, spaced)
    return y


def _candidates(sheet: Drawing, answer: Answer, y: float) -> float:
    """The best candidates with their share as a bar and a number."""
    kept = [
        (n, choice)
        for n, choice in enumerate(answer.candidates, 1)
        if n <= MAX_CANDIDATES or shades.is_right_answer(answer, choice)
    ]
    for place, choice in kept:
        text = visible(shortened(shades.format_word(choice.word, answer), MAX_WORD_LENGTH))
        if place <= MAX_RANK:
            sheet.write(MARGIN, y, str(place), 11, QUIET, bold=True)
        wide = sheet.write(MARGIN + 18, y, text, bold=place == 1)
        if shades.is_right_answer(answer, choice):
            sheet.write(MARGIN + 18 + wide + 6, y, "✓")
        bar = Box(WIDTH / 2, y - 9, max(1, choice.probability * (WIDTH / 2 - MARGIN - 56)), 9, BAR)
        sheet.boxes.append(bar)
        sheet.write(WIDTH - MARGIN, y, f"{choice.probability:.1%}", anchor="end")
        y += LINE - 4
    return y - (LINE - 4) / 2
