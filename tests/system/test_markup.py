from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.system import markup
from asreader.system.markup import (
    Markup,
    element,
    escape_content,
    escape_controls,
    isolate_word,
    join_content,
    page,
    shorten_word,
)

TEXTS = st.text(st.characters() | st.sampled_from("<>&\"'`=/\u202e\u2069\x00\x1b\ud800\uffff"), max_size=40)


class Elements(HTMLParser):
    """Tags with attributes, in order, and all text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


def parse_html(html: str) -> Elements:
    reader = Elements()
    reader.feed(html)
    reader.close()
    return reader


@given(TEXTS, TEXTS)
def test_text_is_parsed_back_as_text_only(text: str, value: str) -> None:
    found = parse_html(element("p", text, element("b", text), title=value))
    assert [tag for tag, _ in found.found] == ["p", "b"]
    assert found.text == escape_controls(text) * 2
    assert found.found[0][1] == {"title": escape_controls(value)}


@given(TEXTS, TEXTS)
def test_elements_are_valid_xml(text: str, value: str) -> None:
    tree = ElementTree.fromstring(element("svg", element("rect", x=value), element("text", text)))
    assert [part.tag for part in tree.iter()] == ["svg", "rect", "text"]
    assert "".join(tree.itertext()) == re.sub("\r\n?", "\n", escape_controls(text))


@given(TEXTS)
def test_control_characters_are_replaced(text: str) -> None:
    shown = escape_controls(text)
    forbidden = {*range(9), *range(11, 13), *range(14, 32), *range(0x7F, 0xA0), *range(0xD800, 0xE000)}
    forbidden |= {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFFFE, 0xFFFF}
    assert not forbidden & set(map(ord, shown))
    assert escape_controls(shown) == shown
    assert shown.encode().decode() == shown


def test_ordinary_letters_are_kept() -> None:
    for text in ("Ana's dog", "שלום\u200f עולם", "猫が寝る", "👩‍👩‍👧 é", "tab\tline\n"):
        assert escape_controls(text) == text


def test_markup_is_not_escaped_twice_and_none_is_left_out() -> None:
    inner = element("i", "a & b")
    assert element("p", inner, None, "<") == "<p><i>a &amp; b</i>&lt;</p>"
    assert join_content(["<", inner], " & ") == f"&lt; &amp; {inner}"
    assert escape_content(None) == ""
    assert isinstance(escape_content("<"), Markup)


def test_attributes_are_written_as_html() -> None:
    assert element("p", class_="a", aria_label="b", hidden=True, id=None, x=False, n=0) == (
        '<p class="a" aria-label="b" hidden="" n="0"></p>'
    )
    assert element("br") == "<br/>"


@pytest.mark.parametrize("name", ["onclick", "onLoad".lower(), "a b", "a>b", "1a"])
def test_attributes_with_scripts_or_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="attribute"):
        element("p", **{name: "x"})


@given(st.integers(1, 300), st.integers(10, 200))
def test_long_words_are_cut_and_show_their_length(length: int, longest: int) -> None:
    word = "x" * length
    shown = shorten_word(word, longest)
    assert shown == word if length <= longest else f"{length:,} characters" in shown and len(shown) < longest + 40
    assert shown.startswith("x" * min(length, longest // 2))


def test_a_word_is_isolated_in_its_writing_direction() -> None:
    assert parse_html(isolate_word("שלום", title="x")).found == [("bdi", {"title": "x"})]


def test_a_page_loads_nothing_external_and_runs_only_its_own_script() -> None:
    style, script = "p{color:red}", "let a = 1;"
    whole = page("<title>", element("p", "text"), style=style, script=script)
    found = dict(parse_html(whole).found)
    policy = next(a["content"] for tag, a in parse_html(whole).found if a.get("http-equiv"))
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    for text, kind in ((style, "style-src"), (script, "script-src")):
        assert rules[kind] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert "script" in found and "<title>&lt;title&gt;</title>" in whole
    assert "script" not in page("t", element("p"), style=style)


@pytest.mark.parametrize("text", ["</style>", "<!-- ", "a</b"])
def test_a_style_with_an_end_tag_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        page("t", element("p"), style=text)


def test_an_svg_is_embedded_as_an_image() -> None:
    svg = "<svg><script>alert(1)</script></svg>"
    ((tag, attributes),) = parse_html(markup.embed_svg(svg, "a <drawing>")).found
    assert tag == "img" and attributes["alt"] == "a <drawing>"
    assert base64.b64decode(str(attributes["src"]).partition(",")[2]).decode() == svg
