from __future__ import annotations

import io
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from asreader.attention import html_view, shades
from asreader.data.example import GAP
from asreader.inference.answer import Answer, Choice
from asreader.system.markup import shortened, visible

OURS = set(
    "div p span strong b bdi mark sup table caption tr th td a svg title line text rect figure figcaption".split()
)
OURS |= set("details summary style html head meta body main".split())
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
    """Tags, ids, links and text of a page; complains of what we never write."""

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
        assert tag in OURS, tag
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


def asked(
    words: tuple[str, ...] = HOSTILE, candidates: tuple[str, ...] = HOSTILE, expected: str | None = None
) -> Answer:
    """An Answer whose candidates share the attention of their words."""
    weights = [len(words) - place for place in range(len(words))]
    attention = tuple(weight / sum(weights) for weight in weights)
    places = {word: tuple(n for n, other in enumerate(words) if other == word) for word in candidates}
    shares = {word: sum(attention[n] for n in own) for word, own in places.items()}
    total = sum(shares.values()) or 1.0
    ranked = sorted((Choice(w, shares[w] / total, places[w]) for w in candidates), key=lambda c: -c.probability)
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


def shown(answer: Answer, **options: object) -> str:
    console = Console(file=io.StringIO(), width=100, **options)  # type: ignore[arg-type]
    console.print(html_view.terminal(answer))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("whole", [html_view.render_answer_page, html_view.render_fragment])
def test_hostile_text_is_text_wherever_it_stands(whole: object) -> None:
    found = Page(whole(asked(expected=HOSTILE[3])))  # type: ignore[operator]
    for word in HOSTILE:
        assert visible(shortened(word)) in found.text
    assert len(found.ids) == len(set(found.ids))
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)


def test_hostile_text_cannot_steer_a_terminal() -> None:
    plain = shown(asked())
    assert all(letter.isprintable() or letter == "\n" for letter in plain.replace("\u200f", ""))
    assert "␛[31mred" in plain and "⟨RLO⟩evil" in plain
    coloured = shown(asked(), force_terminal=True)
    assert "\x1b[31mred" not in coloured and "\x07" not in coloured


def test_every_word_stands_in_its_own_direction() -> None:
    found = Page(html_view.render_view(asked(), "a"))
    assert found.tags.count("bdi") >= 2 * len(HOSTILE)  # as a word of the document and as a candidate


def test_the_notebook_shows_the_fragment() -> None:
    answer = asked(("Ana", "met", "Bo", "."), ("Ana", "Bo"))
    assert answer._repr_html_() == html_view.render_fragment(answer)
    assert "<script" not in answer._repr_html_()


def test_a_wrong_answer_is_told_with_the_right_one() -> None:
    words = ("Ana", "met", "Bo", ".")
    assert "✓ right" in Page(html_view.render_view(asked(words, ("Ana", "Bo"), "Ana"), "a")).text
    wrong = Page(html_view.render_view(asked(words, ("Ana", "Bo"), "Bo"), "a")).text
    assert "✗ wrong, the answer is Bo 33.3%" in wrong
    assert "right" not in Page(html_view.render_view(asked(words, ("Ana", "Bo")), "a")).text


def test_no_candidate_in_the_document_is_said() -> None:
    answer = asked(("Ana", "slept", "."), ("Zoe",))
    assert html_view.NOBODY in Page(html_view.render_answer_page(answer)).text
    assert html_view.NOBODY in shown(answer)


def test_entities_are_shown_under_their_names() -> None:
    from dataclasses import replace

    answer = replace(asked(("@entity1", "met", "@entity2"), ("@entity1", "@entity2")), names={"@entity1": "Ana Berg"})
    for text in (Page(html_view.render_answer_page(answer)).text, shown(answer)):
        assert "Ana Berg" in text and "@entity1" not in text and "@entity2" in text


def test_shading_is_told_by_more_than_colour() -> None:
    """A number beside the word, a class with its own thickness of underline, a number for the candidate."""
    found = Page(html_view.render_view(asked(("Ana", "met", "Bo", "."), ("Ana", "Bo")), "a"))
    for level in range(1, shades.LEVELS + 1):
        assert f".s{level} {{ background: var(--s{level}); border-bottom-width: {level}px" in html_view.STYLE
    assert "40%" in found.text and "rank" in found.classes
    assert "prefers-color-scheme: dark" in html_view.STYLE and "print-color-adjust" in html_view.STYLE


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60))
def test_shades_follow_the_attention(counts: list[int]) -> None:
    attention = tuple(count / (sum(counts) or 1) for count in counts)
    answer = Answer(None, 0.0, (), ("?",), (tuple("w" * len(counts)),), attention)
    found = shades.compute_relative_attention(answer)
    full = max(*attention, min(1.0, shades.FULL_SHADE_FACTOR / len(counts)), 0.0)
    assert found == [share / full for share in attention]
    levels = [shades.choose_level(shade) for shade in found]
    assert all(0 <= level <= shades.LEVELS for level in levels)
    order = sorted(range(len(counts)), key=attention.__getitem__)
    assert [levels[n] for n in order] == sorted(levels)


def test_even_attention_is_faint_and_a_strong_word_is_strong() -> None:
    even = Answer(None, 0.0, (), ("?",), (("w",) * 100,), (0.01,) * 100)
    assert max(word.level for word in shades.shade_words(even)) <= 2
    peaked = Answer(None, 0.0, (), ("?",), (("w",) * 100,), (0.505, *(0.005,) * 99))
    assert [word.level for word in shades.shade_words(peaked)] == [shades.LEVELS] + [0] * 99


def test_words_of_candidates_bear_the_better_ones_number() -> None:
    words = ("New", "York", "beats", "York")
    choices = (Choice("York", 0.6, (1, 3)), Choice("New York", 0.3, (0, 1)), Choice("Rome", 0.1, ()))
    answer = Answer("York", 0.6, choices, ("?",), (words,), (0.25,) * 4)
    assert shades.rank_positions(answer) == {1: 1, 3: 1, 0: 2}


def test_where_every_word_is_a_candidate_only_those_with_support_are_marked() -> None:
    words = tuple(f"w{n}" for n in range(20))
    shares = [0.5, 0.4, *(0.1 / 18,) * 18]
    choices = tuple(Choice(word, share, (n,)) for n, (word, share) in enumerate(zip(words, shares, strict=True)))
    answer = Answer("w0", 0.5, choices, ("?",), (words,), (0.05,) * 20)
    assert shades.rank_positions(answer) == {0: 1, 1: 2}


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(1, 60), st.randoms(use_true_random=False))
def test_an_excerpt_is_the_strongest_part_in_reading_order(lengths: list[int], longest: int, dice: object) -> None:
    words = sum(lengths)
    attention = tuple(dice.random() for _ in range(words))  # type: ignore[attr-defined]
    answer = Answer(None, 0.0, (), ("?",), tuple(("w",) * length for length in lengths), attention)
    pieces = shades.select_excerpt(answer, longest)
    places = [place for piece in pieces for place in piece]
    assert places == sorted(set(places)) and 1 <= len(places) <= longest
    everything = shades.find_sentences(answer)
    assert [place for sentence in everything for place in sentence] == list(range(words))
    strongest = max(everything, key=lambda sentence: sum(attention[place] for place in sentence))
    if len(strongest) <= longest:
        assert strongest in pieces and all(piece in everything for piece in pieces)
    else:
        (piece,) = pieces
        assert max(strongest, key=attention.__getitem__) in piece and len(piece) == longest
        assert strongest.start <= piece.start and piece.stop <= strongest.stop


def test_a_long_document_is_an_excerpt_first_and_then_whole() -> None:
    document = tuple((f"w{n}", "sat", ".") for n in range(50))
    attention = tuple(0.9 if n == 60 else 0.1 / 149 for n in range(150))
    answer = Answer("w20", 0.9, (Choice("w20", 1.0, (60,)),), ("?",), document, attention)
    found = Page(html_view.render_view(answer, "a", longest=9))
    assert found.text.count("w20") >= 3 and "the whole document, 150 words" in found.text
    assert found.text.count("w47") == 1  # in the whole document alone
    assert "#a-60" in found.links and "a-60" in found.ids and "aw-60" in found.ids


def test_punctuation_is_spaced_as_a_person_does() -> None:
    answer = Answer(None, 0.0, (), ("?",), ((),), ())
    words = ("``", "Do", "n't", "go", ",", "''", "said", "-LRB-", "old", "-RRB-", "Ana", "'s", "dog", ".")
    text = "".join(" " * spaced + word for word, spaced in shades.space_words(words, answer))
    assert text == "“Don't go,” said (old) Ana's dog."


def test_the_strip_has_a_bar_for_each_word_that_is_looked_at() -> None:
    attention = (0.5, 0.0, 0.3, 0.2)
    answer = Answer("a", 0.5, (Choice("a", 1.0, (0,)),), ("?",), (("a", "b", "c", "d"),), attention)
    bars = [part for part in html_view.draw_attention_strip(answer).split("<line")[2:] if 'class="bar"' in part]
    heights = [round((html_view._HEIGHT - 16) * share / 0.5, 1) for share in attention if share]
    assert len(bars) == 3
    for bar, height, place in zip(bars, heights, (0, 2, 3), strict=True):
        assert f'y2="{round(html_view._HEIGHT - height, 1)}"' in bar
        assert f'x1="{100 * (place + 0.5) / 4:.2f}%"' in bar
