"""text -> HTML and SVG without injection: elements are built from typed content, never pasted from strings."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from html import escape

_EMPTY = frozenset("br circle col hr img input line meta path polyline rect".split())
"""Elements without content; written as <br/>, which HTML and XML both read."""
_CONTROLS = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n\r"}
_CONTROLS |= dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "�") | {0x7F: "␡"}
# An override reorders the text after it, and a stray PDI ends the isolation of a word: both are shown by name.
_CONTROLS |= dict(zip(range(0x202A, 0x202F), ("⟨LRE⟩", "⟨RLE⟩", "⟨PDF⟩", "⟨LRO⟩", "⟨RLO⟩"), strict=True))
_CONTROLS |= dict(zip(range(0x2066, 0x206A), ("⟨LRI⟩", "⟨RLI⟩", "⟨FSI⟩", "⟨PDI⟩"), strict=True))
_NAME = re.compile(r"[a-zA-Z][\w:-]*")

MAX_WORD_LENGTH = 120
"""Characters of a word that are shown; a longer word is cut and its length is shown."""


class Markup(str):
    """Text that is HTML already. Only this module makes it."""

    __slots__ = ()


Content = str | None
"""Content of an element: Markup is kept as it is, other text is escaped, None is left out."""


def escape_controls(text: str) -> str:
    """Replace control characters and direction overrides by visible symbols, for terminals and browsers."""
    return text.translate(_CONTROLS)


def shorten_word(word: str, longest: int = MAX_WORD_LENGTH) -> str:
    """Cut a word that is too long to show and append its length."""
    return word if len(word) <= longest else f"{word[: longest // 2]}… ({len(word):,} characters)"


def escape_content(part: Content) -> Markup:
    """Content as Markup."""
    if isinstance(part, Markup):
        return part
    return Markup(escape(escape_controls(part)) if part else "")


def join_content(parts: Iterable[Content], between: str = "") -> Markup:
    """Concatenate content."""
    return Markup(escape_content(between).join(map(escape_content, parts)))


def element(tag: str, /, *parts: Content, **attributes: object) -> Markup:
    """An element; `class_` is class, `aria_label` aria-label, True an attribute alone, None and False none at all."""
    present = ((name, value) for name, value in attributes.items() if value is not None and value is not False)
    opened = f"<{tag}{''.join(f' {_check_attribute(name)}={_quote_value(value)}' for name, value in present)}"
    return Markup(f"{opened}/>" if tag in _EMPTY else f"{opened}>{join_content(parts)}</{tag}>")


def isolate_word(word: str, **attributes: object) -> Markup:
    """A word of untrusted text in a <bdi>: its writing direction does not affect the text around it."""
    return element("bdi", shorten_word(word), **attributes)


def fragment(body: Markup, style: str) -> Markup:
    """A part of a page with its own style, for notebooks."""
    return Markup(f"<style>{_check_raw_text(style)}</style>{body}")


def page(title: str, body: Markup, *, style: str, script: str = "") -> str:
    """A complete page. Its content security policy loads nothing external and allows this script alone."""
    sources = [
        "default-src 'none'",
        "img-src data:",
        f"style-src {_hash_text(style)}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    sources += [f"script-src {_hash_text(script)}"] if script else []
    head = join_content(
        [
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content="; ".join(sources)),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("title", title),
            Markup(f"<style>{_check_raw_text(style)}</style>"),
        ]
    )
    ending = Markup(f"<script>{_check_raw_text(script)}</script>") if script else None
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>{element("body", body, ending)}</html>\n'


def embed_svg(svg: str, description: str, **attributes: object) -> Markup:
    """Embed an SVG as an image: its scripts do not run and its styles do not leak into the page."""
    data = base64.b64encode(svg.encode()).decode()
    return element("img", src=f"data:image/svg+xml;base64,{data}", alt=description, **attributes)


def _check_attribute(name: str) -> str:
    plain = name.rstrip("_").replace("_", "-")
    if not _NAME.fullmatch(plain) or plain.startswith("on"):
        raise ValueError(f"{name} is not an attribute that may be written")
    return plain


def _quote_value(value: object) -> str:
    return '""' if value is True else f'"{escape(escape_controls(str(value)))}"'


def _check_raw_text(text: str) -> str:
    if "</" in text or "<!" in text:
        raise ValueError("a style or script must not contain an end tag")
    return text


def _hash_text(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
