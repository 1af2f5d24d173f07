"""Answer -> terminal output: the candidates, the document shaded by attention, attention by position."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from asreader.attention import shades
from asreader.attention.shades import MAX_RANK, ShadedWord
from asreader.inference.answer import Answer
from asreader.system.markup import escape_controls, shorten_word

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_BLOCKS = " ▁▂▃▄▅▆▇█"
_LEVEL_STYLES = (
    "",
    "underline",
    "on grey23",
    "on dark_goldenrod",
    "black on orange3",
    "black on orange1",
    "bold black on orange1",
)


def render_terminal(answer: Answer, top: int = 5, width: int = 72) -> RenderableType:
    """The answer, the `top` candidates as bars, the strongest sentence, the shaded document, attention by position."""
    words = shades.shade_words(answer)
    sentences = [words[span.start : span.stop] for span in shades.find_sentences(answer)]
    strongest = Text("» ") + _render_sentence(sentences[shades.find_strongest_sentence(answer)])
    document = Text("\n").join(map(_render_sentence, sentences))
    title = Text("attention over the document; raised numbers are candidates, 1 the best", style="dim")
    candidates = _render_candidates(answer, top)
    skyline = _render_skyline(words, width)
    return Group(_render_answer(answer), candidates, Text(), strongest, Text(), title, document, Text(), skyline)


def _render_answer(answer: Answer) -> Text:
    if answer.answer is None:
        return Text(shades.NO_ANSWER, style="bold")
    return Text(_format_safe(answer.answer, answer), style="bold").append(
        f"  {shades.format_confidence(answer)}", style="dim"
    )


def _render_candidates(answer: Answer, top: int) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    for rank, choice in enumerate(answer.candidates[:top], 1):
        bar = "█" * round(choice.probability * 24) or "▏"
        superscript = _SUPERSCRIPTS[rank] if rank <= MAX_RANK else ""
        note = f"{len(choice.positions)}x in the document" if choice.positions else "not in the document"
        word = Text(_format_safe(choice.word, answer) + superscript)
        table.add_row(word, f"{choice.probability:6.1%}", Text(bar, style="yellow"), Text(note, style="dim"))
    return table


def _format_safe(word: str, answer: Answer) -> str:
    """The written form of a word, shortened and without control characters."""
    return escape_controls(shorten_word(shades.format_word(word, answer)))


def _render_sentence(sentence: Sequence[ShadedWord]) -> Text:
    text = Text()
    for word in sentence:
        text.append(" " if word.has_space else "")
        text.append(escape_controls(shorten_word(word.text)), style=_LEVEL_STYLES[word.level])
        if word.rank:
            text.append(_SUPERSCRIPTS[word.rank])
    return text


def _render_skyline(words: Sequence[ShadedWord], width: int) -> Text:
    """Attention by position as a row of blocks, the maximum of each column, with the ranks of candidates below."""
    width = min(width, len(words))
    columns = [words[index * len(words) // width : (index + 1) * len(words) // width] for index in range(width)]
    maxima = [max(column, key=lambda word: word.attention) for column in columns]
    peak = max((word.attention for word in words), default=0.0) or 1.0
    blocks = "".join(_BLOCKS[round(8 * word.attention / peak)] for word in maxima)
    ranks = "".join(str(word.rank) if word.rank and word.level else " " for word in maxima)
    last = f"word {len(words):,}"
    scale = "word 1" + last.rjust(width - 6) if width >= len(last) + 8 else f"{len(words)} words"
    return Text.assemble((blocks, "yellow"), "\n", ranks, "\n", (scale, "dim"))
