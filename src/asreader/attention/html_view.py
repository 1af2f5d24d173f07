"""Answer -> HTML: the document shaded by attention, the candidates and a strip chart, self-contained and scriptless."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

from asreader.attention import shades
from asreader.attention.shades import MAX_RANK, ShadedWord
from asreader.data.example import GAP
from asreader.inference.answer import Answer, Choice
from asreader.system.markup import Markup, element, fragment, isolate_word, join_content, shorten_word
from asreader.system.markup import page as render_html

STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
MAX_ROWS = 10
"""Number of rows in the tables of candidates and of words."""
MAX_FULL_WORDS = 3000
"""Number of words up to which an excerpt is followed by the whole document."""
MIN_VISIBLE_PROBABILITY = 0.0005
"""Smaller probabilities are printed as 0.0%."""
MIN_NUMBERED_ATTENTION = 0.05
"""Words with at least this attention have it printed next to them."""
STRIP_HEIGHT = 96
"""Height of the strip chart without its axis labels, in pixels."""


def render_fragment(answer: Answer) -> Markup:
    """HTML with its style, as displayed in a notebook."""
    return fragment(render_view(answer, f"a{zlib.crc32(repr(answer).encode(errors='replace')):08x}"), STYLE)


def render_answer_page(answer: Answer) -> str:
    """A complete HTML page."""
    title = "no answer" if answer.answer is None else shades.format_word(answer.answer, answer)
    body = element("main", render_view(answer, "a"))
    return render_html(shorten_word(title), body, style=f"body{{margin:1rem}}\n{STYLE}")


def render_view(answer: Answer, id_prefix: str, max_words: int | None = None) -> Markup:
    """HTML without its style. A document of more than `max_words` words is shown as an excerpt."""
    words = shades.shade_words(answer)
    sentences = shades.find_sentences(answer)
    is_complete = max_words is None or len(words) <= max_words
    spans = sentences if is_complete else shades.select_excerpt(answer, max_words or 0)
    text = [element("div", _render_document(words, spans, id_prefix), class_="document")]
    if not is_complete and len(words) <= MAX_FULL_WORDS:
        document = element("div", _render_document(words, sentences, f"{id_prefix}w"), class_="document")
        text.append(element("details", element("summary", f"the whole document, {len(words):,} words"), document))
    positions = {position for span in spans for position in span}
    details = [draw_attention_strip(answer), _build_candidates(answer, id_prefix, positions), _build_word_table(words)]
    return element(
        "div",
        element("p", _render_question(answer), class_="question"),
        element("p", _render_answer(answer), class_="said"),
        element("div", *text, class_="text"),
        element("div", *details, class_="beside"),
        class_="asreader view",
    )


def _render_question(answer: Answer) -> Markup:
    parts: list[Markup | str] = []
    for word, (text, has_space) in zip(answer.question, shades.space_words(answer.question, answer), strict=True):
        parts += [" "] if has_space else []
        parts.append(element("span", "_____", class_="gap") if word == GAP else isolate_word(text))
    return join_content(parts)


def _render_answer(answer: Answer) -> Markup:
    """The answer and its confidence; right or wrong if the expected answer is known."""
    if answer.answer is None:
        return element("strong", shades.NO_ANSWER)
    parts = [element("strong", isolate_word(shades.format_word(answer.answer, answer))), " "]
    parts.append(element("span", shades.format_confidence(answer), class_="quiet"))
    if answer.expected is not None and answer.answer == answer.expected:
        parts += [" ", element("span", "✓ right", class_="right")]
    elif answer.expected is not None:
        expected = element("b", isolate_word(shades.format_word(answer.expected, answer)))
        expected_probability = next(
            (choice.probability for choice in answer.candidates if shades.is_right_answer(answer, choice)), 0.0
        )
        note = element("span", f"{expected_probability:.1%}", class_="quiet")
        parts += [" ", element("span", "✗ wrong", class_="wrong"), ", the answer is ", expected, " ", note]
    return join_content(parts)


def _build_candidates(answer: Answer, id_prefix: str, positions: set[int]) -> Markup:
    """Table of candidates and their probabilities; a candidate links to its first mention at `positions`."""
    header = [("", None), ("candidate", None), ("share", "wide"), ("", "number"), ("in text", "number")]
    rows = [element("tr", *(element("th", text, class_=kind, scope="col") for text, kind in header))]
    ranked = list(enumerate(answer.candidates, 1))
    visible_count = max(3, sum(choice.probability >= MIN_VISIBLE_PROBABILITY for choice in answer.candidates))
    max_rank = MAX_ROWS if len(ranked) <= MAX_ROWS else min(MAX_ROWS, visible_count)
    listed = [(rank, choice) for rank, choice in ranked if rank <= max_rank or shades.is_right_answer(answer, choice)]
    for rank, choice in listed:
        mention = next((position for position in choice.positions if position in positions), None)
        target = None if mention is None else f"{id_prefix}-{mention}"
        rows.append(_build_candidate_row(answer, choice, rank, target))
    if len(ranked) > len(listed):
        rest = element("td", f"and {len(ranked) - len(listed):,} more", colspan=4, class_="quiet")
        rows.append(element("tr", element("td"), rest))
    return element("table", element("caption", "Candidates"), *rows, class_="choices")


def _build_candidate_row(answer: Answer, choice: Choice, rank: int, target: str | None) -> Markup:
    word = isolate_word(shades.format_word(choice.word, answer))
    link = element("a", word, href=f"#{target}") if target else word
    tick = join_content([" ", element("span", "✓", class_="right", title="the right answer")])
    bar = element("rect", width=f"{choice.probability:.2%}", height=10, rx=2, class_="bar")
    cells = [
        element("td", element("span", str(rank), class_="rank") if rank <= MAX_RANK else None),
        element("td", link, tick if shades.is_right_answer(answer, choice) else None),
        element("td", element("svg", bar, width="100%", height=10, aria_hidden="true")),
        element("td", f"{choice.probability:.1%}", class_="number"),
        element("td", f"{len(choice.positions)}×" if choice.positions else "no", class_="number"),
    ]
    return element("tr", *cells)


def _render_document(words: Sequence[ShadedWord], spans: Sequence[range], id_prefix: str) -> Markup:
    """One paragraph for each span of words; an ellipsis marks omitted text."""
    ellipsis = element("p", "…", class_="quiet")
    paragraphs = []
    stop = 0
    for span in spans:
        if span.start != stop:
            paragraphs.append(ellipsis)
        text = join_content(_render_word(word, id_prefix) for word in words[span.start : span.stop])
        paragraphs.append(element("p", text))
        stop = span.stop
    if stop != len(words):
        paragraphs.append(ellipsis)
    return join_content(paragraphs)


def _render_word(word: ShadedWord, id_prefix: str) -> Markup:
    text = isolate_word(word.text, title=word.original if word.original != word.text else None)
    if word.level or word.rank is not None:
        rank = element("span", str(word.rank), class_="rank") if word.rank else None
        attention = element("sup", f"{word.attention:.0%}") if word.attention >= MIN_NUMBERED_ATTENTION else None
        kind = {None: "", 1: " candidate first"}.get(word.rank, " candidate")
        text = element("mark", rank, text, attention, class_=f"s{word.level}{kind}", id=f"{id_prefix}-{word.position}")
    return join_content([" " if word.has_space else "", text])


def draw_attention_strip(answer: Answer) -> Markup:
    """Bar chart of the attention at each position, as in the paper; it scales to any width."""
    words = shades.shade_words(answer)
    peak = max(words, key=lambda word: word.attention)
    scale = peak.attention or 1.0
    thickness = max(2, min(8, 360 // len(words)))
    summary = f"Attention at each of the {len(words):,} words, in reading order"
    most = f"most, {peak.attention:.1%}, on word {peak.position + 1:,}, {shorten_word(peak.text)}"
    shapes = [
        element("title", f"{summary}; {most}"),
        element("line", x1=0, x2="100%", y1=STRIP_HEIGHT, y2=STRIP_HEIGHT, class_="axis"),
        element("text", "word 1", x=0, y=STRIP_HEIGHT + 14),
        element("text", f"word {len(words):,}", x="100%", y=STRIP_HEIGHT + 14, text_anchor="end"),
    ]
    for word in words:
        x = f"{100 * (word.position + 0.5) / len(words):.2f}%"
        height = (STRIP_HEIGHT - 16) * word.attention / scale
        if height >= 0.5:
            y = round(STRIP_HEIGHT - height, 1)
            shapes.append(element("line", x1=x, x2=x, y1=STRIP_HEIGHT, y2=y, stroke_width=thickness, class_="bar"))
            if word.rank and word.level > 1:
                shapes.append(element("text", str(word.rank), x=x, y=y - 4, text_anchor="middle", class_="digit"))
    svg = element("svg", *shapes, width="100%", height=STRIP_HEIGHT + 18, role="img", aria_label=f"{summary}.")
    caption = f"{summary}; the tallest bar is {peak.attention:.1%}."
    return element("figure", svg, element("figcaption", caption))


def _build_word_table(words: Sequence[ShadedWord]) -> Markup:
    """Table of the words with most attention: the text alternative to the strip chart."""
    strongest = sorted(words, key=lambda word: -word.attention)[:MAX_ROWS]
    header = element("tr", *(element("th", title, scope="col") for title in ("word", "number", "attention")))
    rows = [
        element(
            "tr",
            element("td", isolate_word(word.text)),
            element("td", f"{word.position + 1:,}", class_="number"),
            element("td", f"{word.attention:.2%}", class_="number"),
        )
        for word in strongest
    ]
    return element("details", element("summary", "the strongest words as numbers"), element("table", header, *rows))
