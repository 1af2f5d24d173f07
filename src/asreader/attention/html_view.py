"""Answer -> pictures of its attention: shaded words in a terminal, or in HTML that needs nothing from outside."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from asreader.attention import shades
from asreader.attention.shades import MAX_RANK, ShadedWord
from asreader.data.example import GAP
from asreader.inference.answer import Answer, Choice
from asreader.system.markup import Markup, element, fragment, isolated, joined, shortened, visible
from asreader.system.markup import page as whole_page

STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
LISTED = 10
"""Candidates in the table of a page."""
WHOLE = 3000
"""Words up to which an excerpt of a document is followed by all of it."""
UNSEEN = 0.0005
"""A share that is written as 0.0%."""
TOLD = 0.05
"""Attention from this share on is written as a number beside the word."""
NOBODY = "no candidate stands in the document"
_HEIGHT = 96
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_BLOCKS = " ▁▂▃▄▅▆▇█"


def strongest_sentence(answer: Answer) -> int:
    """The sentence with most attention on the answer's words; on all words where there is no answer."""
    positions = set(answer.candidates[0].positions) if answer.answer is not None else set(range(len(answer.tokens)))
    ends = list(accumulate(map(len, answer.document)))
    weights = [
        sum(answer.attention[place] for place in range(end - len(sentence), end) if place in positions)
        for sentence, end in zip(answer.document, ends, strict=True)
    ]
    return max(range(len(weights)), key=weights.__getitem__)


def terminal(answer: Answer, top: int = 5, width: int = 72) -> RenderableType:
    """The answer, its rivals as bars, the sentence that decided it, the document shaded, the attention by position."""
    head = Text(_shown(answer.answer, answer) if answer.answer is not None else NOBODY, style="bold")
    if answer.answer is not None:
        head.append(f"  {answer.confidence:.0%}{'' if answer.sure else ', not sure'}", style="dim")
    table = Table(box=None, show_header=False, padding=(0, 1))
    for place, choice in enumerate(answer.candidates[:top], 1):
        bar = "█" * round(choice.probability * 24) or "▏"
        number = _SUPERSCRIPTS[place] if place <= MAX_RANK else ""
        note = f"{len(choice.positions)}x in the document" if choice.positions else "not in the document"
        word = Text(_shown(choice.word, answer) + number)
        table.add_row(word, f"{choice.probability:6.1%}", Text(bar, style="yellow"), Text(note, style="dim"))
    words = shades.shade_words(answer)
    sentences = [words[place.start : place.stop] for place in shades.find_sentences(answer)]
    decided = Text("» ") + _shaded(sentences[strongest_sentence(answer)])
    whole = Text("\n").join(map(_shaded, sentences))
    title = Text("attention over the document; raised numbers are candidates, 1 the best", style="dim")
    return Group(head, table, Text(), decided, Text(), title, whole, Text(), _skyline(answer, width))


def _shown(word: str, answer: Answer) -> str:
    return visible(shortened(shades.format_word(word, answer)))


def _shaded(sentence: Sequence[ShadedWord]) -> Text:
    text = Text()
    styles = ("", "underline", "on grey23", "on dark_goldenrod", "black on orange3", "black on orange1")
    for word in sentence:
        style = (*styles, "bold black on orange1")[word.level]
        text.append(" " if word.spaced else "").append(visible(shortened(word.text)), style=style)
        if word.rank:
            text.append(_SUPERSCRIPTS[word.rank])
    return text


def _skyline(answer: Answer, width: int) -> Text:
    """Attention per position as a row of blocks, each the strongest of its words, with the candidates' numbers."""
    words = shades.shade_words(answer)
    width = min(width, len(words))
    columns = [words[place * len(words) // width : (place + 1) * len(words) // width] for place in range(width)]
    tallest = [max(column, key=lambda word: word.share) for column in columns]
    peak = max(answer.attention, default=0.0) or 1.0
    blocks = "".join(_BLOCKS[round(8 * word.share / peak)] for word in tallest)
    digits = "".join(str(word.rank) if word.rank and word.level else " " for word in tallest)
    last = f"word {len(words):,}"
    scale = "word 1" + last.rjust(width - 6) if width >= len(last) + 8 else f"{len(words)} words"
    return Text.assemble((blocks, "yellow"), "\n", digits, "\n", (scale, "dim"))


def render_fragment(answer: Answer) -> Markup:
    """A fragment of HTML with its style, nothing remote and no script: what a notebook shows."""
    return fragment(render_view(answer, f"a{zlib.crc32(repr(answer).encode(errors='replace')):08x}"), STYLE)


def render_answer_page(answer: Answer) -> str:
    """A whole HTML page."""
    title = "no answer" if answer.answer is None else shades.format_word(answer.answer, answer)
    return whole_page(
        shortened(title), element("main", render_view(answer, "a")), style=f"body{{margin:1rem}}\n{STYLE}"
    )


def render_view(answer: Answer, key: str, longest: int | None = None) -> Markup:
    """The fragment without its style; `key` starts its ids. Of a document of more than `longest` words an excerpt."""
    words, everything = shades.shade_words(answer), shades.find_sentences(answer)
    whole = longest is None or len(words) <= longest
    kept = everything if whole else shades.select_excerpt(answer, longest or 0)
    text = [element("div", _document(words, kept, key), class_="document")]
    if not whole and len(words) <= WHOLE:
        inside = element("div", _document(words, everything, f"{key}w"), class_="document")
        text.append(element("details", element("summary", f"the whole document, {len(words):,} words"), inside))
    shown = {position for piece in kept for position in piece}
    return element(
        "div",
        element("p", _question(answer), class_="question"),
        element("p", _said(answer), class_="said"),
        element("div", *text, class_="text"),
        element("div", draw_attention_strip(answer), _choices(answer, key, shown), _numbers(answer), class_="beside"),
        class_="asreader view",
    )


def _question(answer: Answer) -> Markup:
    parts: list[Markup | str] = []
    for word, (text, spaced) in zip(answer.question, shades.space_words(answer.question, answer), strict=True):
        parts += [" "] if spaced else []
        parts.append(element("span", "_____", class_="gap") if word == GAP else isolated(text))
    return joined(parts)


def _said(answer: Answer) -> Markup:
    if answer.answer is None:
        return element("strong", NOBODY)
    said = [element("strong", isolated(shades.format_word(answer.answer, answer))), " "]
    said.append(element("span", f"{answer.confidence:.0%}{'' if answer.sure else ', not sure'}", class_="quiet"))
    if answer.expected is not None and answer.answer == answer.expected:
        said += [" ", element("span", "✓ right", class_="right")]
    elif answer.expected is not None:
        truth = element("b", isolated(shades.format_word(answer.expected, answer)))
        got = next((choice.probability for choice in answer.candidates if shades.is_right_answer(answer, choice)), 0.0)
        share = element("span", f"{got:.1%}", class_="quiet")
        said += [" ", element("span", "✗ wrong", class_="wrong"), ", the answer is ", truth, " ", share]
    return joined(said)


def _choices(answer: Answer, key: str, shown: set[int]) -> Markup:
    """The candidates with their share of the support; a candidate leads to where it first stands in the text."""
    head = [("", None), ("candidate", None), ("share", "wide"), ("", "number"), ("in text", "number")]
    rows = [element("tr", *(element("th", text, class_=kind, scope="col") for text, kind in head))]
    listed = list(enumerate(answer.candidates, 1))
    worth = max(3, sum(choice.probability >= UNSEEN for choice in answer.candidates))
    longest = LISTED if len(listed) <= LISTED else min(LISTED, worth)
    kept = [(place, choice) for place, choice in listed if place <= longest or shades.is_right_answer(answer, choice)]
    for place, choice in kept:
        rows.append(
            _row(answer, choice, place, f"{key}-{first}" if (first := _first(choice, shown)) is not None else None)
        )
    if len(listed) > len(kept):
        rest = element("td", f"and {len(listed) - len(kept):,} more", colspan=4, class_="quiet")
        rows.append(element("tr", element("td"), rest))
    return element("table", element("caption", "Candidates"), *rows, class_="choices")


def _first(choice: Choice, shown: set[int]) -> int | None:
    return next((position for position in choice.positions if position in shown), None)


def _row(answer: Answer, choice: Choice, place: int, target: str | None) -> Markup:
    word = isolated(shades.format_word(choice.word, answer))
    named = element("a", word, href=f"#{target}") if target else word
    tick = joined([" ", element("span", "✓", class_="right", title="the right answer")])
    bar = element("rect", width=f"{choice.probability:.2%}", height=10, rx=2, class_="bar")
    cells = [
        element("td", element("span", str(place), class_="rank") if place <= MAX_RANK else None),
        element("td", named, tick if shades.is_right_answer(answer, choice) else None),
        element("td", element("svg", bar, width="100%", height=10, aria_hidden="true")),
        element("td", f"{choice.probability:.1%}", class_="number"),
        element("td", f"{len(choice.positions)}×" if choice.positions else "no", class_="number"),
    ]
    return element("tr", *cells)


def _document(words: Sequence[ShadedWord], pieces: Sequence[range], key: str) -> Markup:
    """Pieces of the text, one a line; dots stand for what is left out between them."""
    parts, stop = [], 0
    for piece in pieces:
        if piece.start != stop:
            parts.append(element("p", "…", class_="quiet"))
        parts.append(element("p", joined(_word(word, key) for word in words[piece.start : piece.stop])))
        stop = piece.stop
    if stop != len(words):
        parts.append(element("p", "…", class_="quiet"))
    return joined(parts)


def _word(word: ShadedWord, key: str) -> Markup:
    text = isolated(word.text, title=word.original if word.original != word.text else None)
    if word.level or word.rank is not None:
        rank = element("span", str(word.rank), class_="rank") if word.rank else None
        share = element("sup", f"{word.share:.0%}") if word.share >= TOLD else None
        marked = {None: "", 1: " candidate first"}.get(word.rank, " candidate")
        text = element("mark", rank, text, share, class_=f"s{word.level}{marked}", id=f"{key}-{word.position}")
    return joined([" " if word.spaced else "", text])


def draw_attention_strip(answer: Answer) -> Markup:
    """The attention at each position, drawn below the text as in the paper; it takes any width."""
    words = shades.shade_words(answer)
    peak = max(words, key=lambda word: word.share)
    top = peak.share or 1.0
    thick = max(2, min(8, 360 // len(words)))
    told = f"Attention at each of the {len(words):,} words, in reading order"
    drawn = [
        element("title", f"{told}; most, {peak.share:.1%}, on word {peak.position + 1:,}, {shortened(peak.text)}"),
        element("line", x1=0, x2="100%", y1=_HEIGHT, y2=_HEIGHT, class_="axis"),
        element("text", "word 1", x=0, y=_HEIGHT + 14),
        element("text", f"word {len(words):,}", x="100%", y=_HEIGHT + 14, text_anchor="end"),
    ]
    for word in words:
        x, tall = f"{100 * (word.position + 0.5) / len(words):.2f}%", (_HEIGHT - 16) * word.share / top
        if tall >= 0.5:
            y = round(_HEIGHT - tall, 1)
            drawn.append(element("line", x1=x, x2=x, y1=_HEIGHT, y2=y, stroke_width=thick, class_="bar"))
            if word.rank and word.level > 1:
                drawn.append(element("text", str(word.rank), x=x, y=y - 4, text_anchor="middle", class_="digit"))
    picture = element("svg", *drawn, width="100%", height=_HEIGHT + 18, role="img", aria_label=f"{told}.")
    caption = f"{told}; the tallest bar is {peak.share:.1%}."
    return element("figure", picture, element("figcaption", caption))


def _numbers(answer: Answer) -> Markup:
    """The strongest words as a table, for those who do not see the picture."""
    words = shades.shade_words(answer)
    strongest = sorted(words, key=lambda word: -word.share)[:LISTED]
    head = element("tr", *(element("th", title, scope="col") for title in ("word", "number", "attention")))
    rows = [
        element(
            "tr",
            element("td", isolated(word.text)),
            element("td", f"{word.position + 1:,}", class_="number"),
            element("td", f"{word.share:.2%}", class_="number"),
        )
        for word in strongest
    ]
    return element("details", element("summary", "the strongest words as numbers"), element("table", head, *rows))
