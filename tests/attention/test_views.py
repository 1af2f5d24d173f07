"""The attention of an answer as HTML and in a terminal."""

from __future__ import annotations

import io
from html.parser import HTMLParser

import pytest
from rich.console import Console

from asreader.attention import html_view, shades, terminal_view
from asreader.data.example import GAP
from asreader.inference.answer import Answer, Choice
from asreader.system.markup import escape_controls, shorten_word

ALLOWED = set(
    "div p span strong b bdi mark sup table caption tr th td a svg title line text rect figure figcaption".split()
)
ALLOWED |= set("details summary style html head meta body main".split())
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img/src=x/onerror=alert(1)>',
    "&amp;",
    "\u202eevil",
    "\u2069\u202eout",
    "שלום\u200f",
    "\x1b[31mred\x07\x00",
    "😀" * 50,
    "</style><b>",
    "x" * 100_000,
)


class Page(HTMLParser):
    """Tags, ids, links and text of a page; fails on any tag or attribute that is not expected."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.classes: list[str] = []
        self.text = ""
        self._silent = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        self.tags.append(tag)
        for name, value in attributes:
            assert not name.startswith("on") and name not in ("style", "src"), (tag, name)
            self.ids += [str(value)] * (name == "id")
            self.links += [str(value)] * (name == "href")
            self.classes += str(value).split() * (name == "class")
        self._silent += tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag == "style"

    def handle_data(self, data: str) -> None:
        self.text += "" if self._silent else data


def make_answer(
    words: tuple[str, ...] = HOSTILE, candidates: tuple[str, ...] = HOSTILE, expected: str | None = None
) -> Answer:
    """An Answer whose candidates have the normalized attention of their words."""
    weights = [len(words) - index for index in range(len(words))]
    attention = tuple(weight / sum(weights) for weight in weights)
    positions = {word: tuple(n for n, other in enumerate(words) if other == word) for word in candidates}
    sums = {word: sum(attention[n] for n in positions[word]) for word in candidates}
    total = sum(sums.values()) or 1.0
    ranked = sorted((Choice(w, sums[w] / total, positions[w]) for w in candidates), key=lambda c: -c.probability)
    best = ranked[0] if ranked and ranked[0].probability > 0 else None
    return Answer(
        best.word if best else None,
        best.probability if best else 0.0,
        tuple(ranked),
        ("Who", *words[:2], GAP, "?"),
        (words[: len(words) // 2], words[len(words) // 2 :]),
        attention,
        expected=expected,
    )


def print_terminal(answer: Answer, **options: object) -> str:
    console = Console(file=io.StringIO(), width=100, **options)  # type: ignore[arg-type]
    console.print(terminal_view.render_terminal(answer))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("render", [html_view.render_answer_page, html_view.render_fragment])
def test_hostile_text_is_escaped(render: object) -> None:
    page = Page(render(make_answer(expected=HOSTILE[3])))  # type: ignore[operator]
    for word in HOSTILE:
        assert escape_controls(shorten_word(word)) in page.text
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)


def test_hostile_text_sends_no_control_characters() -> None:
    plain = print_terminal(make_answer())
    assert all(letter.isprintable() or letter == "\n" for letter in plain.replace("\u200f", ""))
    assert "␛[31mred" in plain and "⟨RLO⟩evil" in plain
    coloured = print_terminal(make_answer(), force_terminal=True)
    assert "\x1b[31mred" not in coloured and "\x07" not in coloured


def test_every_word_has_its_own_text_direction() -> None:
    page = Page(html_view.render_view(make_answer(), "a"))
    assert page.tags.count("bdi") >= 2 * len(HOSTILE)  # as a word of the document and as a candidate


def test_notebook_displays_the_fragment() -> None:
    answer = make_answer(("Ana", "met", "Bo", "."), ("Ana", "Bo"))
    assert answer._repr_html_() == html_view.render_fragment(answer)
    assert "<script" not in answer._repr_html_()


def test_wrong_answer_is_shown_with_the_right_one() -> None:
    words = ("Ana", "met", "Bo", ".")
    assert "✓ right" in Page(html_view.render_view(make_answer(words, ("Ana", "Bo"), "Ana"), "a")).text
    wrong = Page(html_view.render_view(make_answer(words, ("Ana", "Bo"), "Bo"), "a")).text
    assert "✗ wrong, the answer is Bo 33.3%" in wrong
    assert "right" not in Page(html_view.render_view(make_answer(words, ("Ana", "Bo")), "a")).text


def test_missing_answer_is_reported() -> None:
    answer = make_answer(("Ana", "slept", "."), ("Zoe",))
    assert shades.NO_ANSWER in Page(html_view.render_answer_page(answer)).text
    assert shades.NO_ANSWER in print_terminal(answer)


def test_entities_are_shown_under_their_names() -> None:
    from dataclasses import replace

    answer = replace(
        make_answer(("@entity1", "met", "@entity2"), ("@entity1", "@entity2")), names={"@entity1": "Ana Berg"}
    )
    for text in (Page(html_view.render_answer_page(answer)).text, print_terminal(answer)):
        assert "Ana Berg" in text and "@entity1" not in text and "@entity2" in text


def test_shading_does_not_rely_on_colour_alone() -> None:
    """The attention as a number, an underline with the thickness of the level, and the rank of a candidate."""
    page = Page(html_view.render_view(make_answer(("Ana", "met", "Bo", "."), ("Ana", "Bo")), "a"))
    for level in range(1, shades.LEVELS + 1):
        assert f".s{level} {{ background: var(--s{level}); border-bottom-width: {level}px" in html_view.STYLE
    assert "40%" in page.text and "rank" in page.classes
    assert "prefers-color-scheme: dark" in html_view.STYLE and "print-color-adjust" in html_view.STYLE


def test_long_document_is_shown_as_excerpt_and_in_full() -> None:
    document = tuple((f"w{n}", "sat", ".") for n in range(50))
    attention = tuple(0.9 if n == 60 else 0.1 / 149 for n in range(150))
    answer = Answer("w20", 0.9, (Choice("w20", 1.0, (60,)),), ("?",), document, attention)
    page = Page(html_view.render_view(answer, "a", max_words=9))
    assert page.text.count("w20") >= 3 and "the whole document, 150 words" in page.text
    assert page.text.count("w47") == 1  # in the whole document alone
    assert "#a-60" in page.links and "a-60" in page.ids and "aw-60" in page.ids


def test_strip_has_a_bar_for_each_word_with_attention() -> None:
    attention = (0.5, 0.0, 0.3, 0.2)
    answer = Answer("a", 0.5, (Choice("a", 1.0, (0,)),), ("?",), (("a", "b", "c", "d"),), attention)
    bars = [part for part in html_view.draw_attention_strip(answer).split("<line")[2:] if 'class="bar"' in part]
    heights = [round((html_view.STRIP_HEIGHT - 16) * share / 0.5, 1) for share in attention if share]
    assert len(bars) == 3
    for bar, height, position in zip(bars, heights, (0, 2, 3), strict=True):
        assert f'y2="{round(html_view.STRIP_HEIGHT - height, 1)}"' in bar
        assert f'x1="{100 * (position + 0.5) / 4:.2f}%"' in bar
