"""Answer -> pictures of its attention: words shaded in a terminal or in a self-contained, escaped HTML page."""

from __future__ import annotations

from html import escape
from itertools import accumulate

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from asreader.answer import Answer
from asreader.data.example import Sentence

_STYLE = """
.asreader{font:16px/1.6 system-ui,sans-serif;max-width:46em;color:#1a1a1a;background:#fff;padding:1em}
.asreader mark{background:rgba(230,120,0,var(--a));color:inherit;border-radius:3px;padding:0 1px;unicode-bidi:isolate}
.asreader .found{text-decoration:underline;font-weight:600}
.asreader table{border-collapse:collapse;margin-top:1em}.asreader td{padding:.1em .8em .1em 0}
.asreader meter{width:12em}
"""


def shades(answer: Answer) -> list[float]:
    """Attention from 0 to 1 relative to the strongest word, so that the picture does not fade in a long text."""
    peak = max(answer.attention, default=0.0) or 1.0
    return [weight / peak for weight in answer.attention]


def strongest_sentence(answer: Answer) -> int:
    """The sentence with most attention on the answer's words; on all words where there is no answer."""
    positions = set(answer.candidates[0].positions) if answer.answer is not None else set(range(len(answer.tokens)))
    ends = list(accumulate(map(len, answer.document)))
    weights = [
        sum(answer.attention[place] for place in range(end - len(sentence), end) if place in positions)
        for sentence, end in zip(answer.document, ends, strict=True)
    ]
    return max(range(len(weights)), key=weights.__getitem__)


def terminal(answer: Answer, top: int = 5) -> RenderableType:
    """The answer, its rivals as bars, the sentence that decided it, and the whole document shaded by attention."""
    head = Text.assemble(
        (answer.answer if answer.answer is not None else "no candidate stands in the document", "bold")
    )
    if answer.answer is not None:
        head.append(f"  {answer.confidence:.0%}", style="dim")
    table = Table(box=None, show_header=False, padding=(0, 1))
    for choice in answer.candidates[:top]:
        bar = "█" * round(choice.probability * 24) or "▏"
        note = f"{len(choice.positions)}x in the document" if choice.positions else "not in the document"
        table.add_row(
            Text(choice.word), f"{choice.probability:6.1%}", Text(bar, style="yellow"), Text(note, style="dim")
        )
    numbers = shades(answer)
    chosen = strongest_sentence(answer)
    start = sum(map(len, answer.document[:chosen]))
    sentence = Text("» ") + _shaded(answer.document[chosen], numbers[start:])
    whole = Text("\n").join(
        _shaded(part, numbers[end - len(part) : end])
        for part, end in zip(answer.document, accumulate(map(len, answer.document)), strict=True)
    )
    return Group(head, table, Text(), sentence, Text(), Text("attention over the document", style="dim"), whole)


def _shaded(sentence: Sentence, weights: list[float]) -> Text:
    text = Text()
    for word, weight in zip(sentence, weights, strict=False):
        level = round(weight * 4)
        style = ("", "on grey23", "on dark_goldenrod", "black on orange3", "bold black on orange1")[level]
        text.append(word, style=style).append(" ")
    return text


def html(answer: Answer) -> str:
    """A fragment of HTML with nothing remote and no script; every word of the text is escaped."""
    found = set(answer.candidates[0].positions) if answer.answer is not None else set()
    numbers, place, lines = shades(answer), 0, []
    for sentence in answer.document:
        words = []
        for word in sentence:
            mark = ' class="found"' if place in found else ""
            weight, share = numbers[place], answer.attention[place]
            words.append(f'<mark{mark} style="--a:{weight:.3f}" title="{share:.2%}">{escape(word)}</mark>')
            place += 1
        lines.append(" ".join(words))
    rows = "".join(
        f"<tr><td>{escape(choice.word)}</td><td>{choice.probability:.1%}</td>"
        f'<td><meter value="{choice.probability:.4f}"></meter></td></tr>'
        for choice in answer.candidates[:10]
    )
    title = escape(answer.answer) if answer.answer is not None else "no candidate stands in the document"
    return (
        f'<div class="asreader"><style>{_STYLE}</style><p>{escape(" ".join(answer.question))}</p>'
        f"<p><strong>{title}</strong> {answer.confidence:.0%}</p><p>{'<br>'.join(lines)}</p><table>{rows}</table></div>"
    )


def page(answer: Answer) -> str:
    """A whole HTML page."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(answer.answer or 'asreader')}</title><body>{html(answer)}</body></html>\n"
    )
