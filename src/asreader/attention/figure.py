"""Answer -> Drawing: the layout of the paper's attention figure as boxes and labels, independent of the file format."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from asreader.attention import shades
from asreader.attention.shades import MAX_RANK, ShadedWord
from asreader.inference.answer import Answer
from asreader.system.markup import escape_controls, shorten_word

# Lengths are in units of 1/72 inch.
WIDTH = 640
MARGIN = 20
SIZE = 14  # of the font
LINE = 27  # from one baseline to the next
PADDING = 2.5  # on both sides of a marked word
PLOT = 84  # height of the bar chart

INK = "#1b1d21"
QUIET = "#5d636c"
RULE = "#c9cdd3"
BAR = "#b86a00"
PAPER = "#ffffff"
MARK = "#8f5200"
SHADES = ("none", "#fff6e6", "#ffeaca", "#ffdda8", "#ffcf83", "#ffc05a", "#ffae2b")
MAX_WORD_LENGTH = 30
"""Number of characters of a word that are drawn."""
MAX_CANDIDATES = 5
"""Number of candidates that are listed."""

# Advance widths of the ASCII characters from space to tilde in Helvetica, in 1/1000 em; the same in Arial and
# Liberation Sans.
_WIDTHS = """278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278
278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 667
667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500
722 500 500 500 334 260 334 584"""
_ADVANCES = {chr(32 + index): int(width) / 1000 for index, width in enumerate(_WIDTHS.split())}


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    fill: str = "none"
    stroke: str = "none"
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """Text on the baseline y, with its start, middle or end at x; stretched to exactly `width`."""

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
    """A canvas of width WIDTH; labels are drawn over boxes."""

    title: str
    height: float = 0
    boxes: list[Box] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    def add_text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = SIZE,
        colour: str = INK,
        bold: bool = False,
        anchor: str = "start",
    ) -> float:
        """Add a label; returns its width."""
        width = measure_text(text, size, bold)
        self.labels.append(Label(x, y, text, width, size, colour, bold, anchor))
        return width

    def add_rule(self, y: float) -> None:
        """Add a horizontal line between the margins."""
        self.boxes.append(Box(MARGIN, y, WIDTH - 2 * MARGIN, 1, RULE))


def measure_text(text: str, size: float, bold: bool = False) -> float:
    """Approximate width of a text; it is drawn at exactly this width."""
    return size * sum(map(_measure_character, text)) * (1.06 if bold else 1)


def _measure_character(character: str) -> float:
    if character in _ADVANCES:
        return _ADVANCES[character]
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    return 1.0 if unicodedata.east_asian_width(character) in "WF" else 0.6


def lay_out_figure(answer: Answer, max_words: int = 160) -> Drawing:
    """The shaded document (an excerpt if it has more than `max_words` words), a bar chart, the question, candidates."""
    name = (
        "nobody" if answer.answer is None else shorten_word(shades.format_word(answer.answer, answer), MAX_WORD_LENGTH)
    )
    drawing = Drawing(title=f"Attention of a reader that answers {name} with {answer.confidence:.0%} confidence")
    spans = shades.select_excerpt(answer, max_words)
    y = _add_document(drawing, answer, spans, MARGIN + SIZE)
    y = _add_bar_chart(drawing, answer, spans, y + 8)
    drawing.add_rule(y + 6)
    y = _add_question(drawing, answer, y + 6 + LINE)
    drawing.add_rule(y + 12)
    drawing.height = _add_candidates(drawing, answer, y + 12 + LINE) + 8
    return drawing


def _add_document(drawing: Drawing, answer: Answer, spans: Sequence[range], y: float) -> float:
    """Add spans of words as wrapped text; an ellipsis marks omitted text. Returns the y below the text."""
    words = shades.shade_words(answer)
    x, stop = float(MARGIN), 0
    for span in (*spans, range(len(words), len(words))):
        if span.start != stop:
            x, y = _add_word(drawing, x, y, "…", True)
        for word in words[span.start : span.stop]:
            x, y = _add_word(drawing, x, y, word.text, word.has_space or word.position == span.start, word)
        stop = span.stop
    return y + LINE / 2


def _add_word(
    drawing: Drawing, x: float, y: float, text: str, has_space: bool, word: ShadedWord | None = None
) -> tuple[float, float]:
    """Add one word to the current line, or to the next if the line is full; returns the end of the line."""
    text = escape_controls(shorten_word(text, MAX_WORD_LENGTH))
    rank = str(word.rank) if word and word.rank else ""
    is_strong = bool(word and word.level == shades.LEVELS)
    width = measure_text(text, SIZE, is_strong) + (measure_text(rank, 9) + 3 if rank else 0)
    is_marked = word is not None and (word.level or word.rank is not None)
    x += measure_text(" ", SIZE) if has_space and x > MARGIN else 0
    padding = PADDING if is_marked else 0
    if x > MARGIN and x + width + 2 * padding > WIDTH - MARGIN:
        x, y = MARGIN, y + LINE
    x += padding
    if word and is_marked:
        _add_mark(drawing, word, x, y, width)
    drawing.add_text(x, y, text, bold=is_strong)
    if rank:
        drawing.add_text(x + width, y - 5, rank, 9, bold=True, anchor="end")
    return x + width + padding, y


def _add_mark(drawing: Drawing, word: ShadedWord, x: float, y: float, width: float) -> None:
    """Add a background and an underline whose thickness follows the attention, and a frame around a candidate."""
    left, top = x - PADDING, y - SIZE + 1
    width, height = width + 2 * PADDING, SIZE + 4
    underline = 0.8 * word.level
    if word.level:
        drawing.boxes.append(Box(left, top, width, height, SHADES[word.level]))
        drawing.boxes.append(Box(left, top + height, width, underline, MARK))
    if word.rank is not None:
        is_best = word.rank == 1
        stroke = INK if is_best else QUIET
        drawing.boxes.append(Box(left, top, width, height + underline, stroke=stroke, dashed=not is_best))


def _add_bar_chart(drawing: Drawing, answer: Answer, spans: Sequence[range], y: float) -> float:
    """Add the attention by position; bands below the axis show which spans of the document are displayed."""
    words = shades.shade_words(answer)
    peak = max((word.attention for word in words), default=0.0) or 1.0
    axis_y = y + PLOT
    step = (WIDTH - 2 * MARGIN) / len(words)
    drawing.add_rule(axis_y)
    drawing.add_text(MARGIN, y + 8, f"{peak:.0%}", 10, QUIET)
    for word in words:
        height = (PLOT - 14) * word.attention / peak
        x = MARGIN + step * word.position
        if height >= 0.3:
            width = min(max(0.7 * step, 1.2), 8)
            drawing.boxes.append(Box(x + (step - width) / 2, axis_y - height, width, height, BAR))
            if word.rank and word.level > 1:
                drawing.add_text(x + step / 2, axis_y - height - 3, str(word.rank), 10, bold=True, anchor="middle")
    if sum(map(len, spans)) < len(words):
        drawing.boxes += [Box(MARGIN + step * span.start, axis_y + 2, step * len(span), 3, QUIET) for span in spans]
    drawing.add_text(MARGIN, axis_y + 17, "word 1", 10, QUIET)
    drawing.add_text(WIDTH / 2, axis_y + 17, "attention at each word of the document", 10, QUIET, anchor="middle")
    drawing.add_text(WIDTH - MARGIN, axis_y + 17, f"word {len(words):,}", 10, QUIET, anchor="end")
    return axis_y + 20


def _add_question(drawing: Drawing, answer: Answer, y: float) -> float:
    x = float(MARGIN)
    for text, has_space in shades.space_words(answer.question, answer):
        x, y = _add_word(drawing, x, y, text, has_space)
    return y


def _add_candidates(drawing: Drawing, answer: Answer, y: float) -> float:
    """Add the best candidates with their probabilities as bars and numbers."""
    for rank, choice in enumerate(answer.candidates, 1):
        is_right = shades.is_right_answer(answer, choice)
        if rank > MAX_CANDIDATES and not is_right:
            continue
        text = escape_controls(shorten_word(shades.format_word(choice.word, answer), MAX_WORD_LENGTH))
        if rank <= MAX_RANK:
            drawing.add_text(MARGIN, y, str(rank), 11, QUIET, bold=True)
        width = drawing.add_text(MARGIN + 18, y, text, bold=rank == 1)
        if is_right:
            drawing.add_text(MARGIN + 18 + width + 6, y, "✓")
        bar_width = max(1, choice.probability * (WIDTH / 2 - MARGIN - 56))
        drawing.boxes.append(Box(WIDTH / 2, y - 9, bar_width, 9, BAR))
        drawing.add_text(WIDTH - MARGIN, y, f"{choice.probability:.1%}", anchor="end")
        y += LINE - 4
    return y - (LINE - 4) / 2
