"""titled sections -> one page that needs nothing from outside: for reports and galleries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import asreader
from asreader.attention import html_view
from asreader.errors import InputError
from asreader.system.markup import Markup, Part, element, isolated, joined, page

T = TypeVar("T")

_FOLDER = Path(__file__).parent
STYLE = f"{html_view.STYLE}\n{(_FOLDER / 'page.css').read_text(encoding='utf-8')}"
SCRIPT = (_FOLDER / "page.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of a page that its contents lead to."""

    name: str
    title: str
    body: Markup


def render_page(title: str, lead: Part, sections: Sequence[PageSection]) -> str:
    """A page with its contents; it can be read without its script, which only adds keys and filters."""
    contents = [element("li", element("a", section.title, href=f"#{section.name}")) for section in sections]
    navigation = element("nav", element("ul", *contents), class_="contents", aria_label="Contents")
    main = element("main", *map(_section, sections), id="main", tabindex=-1)
    columns = element(
        "div", navigation if len(sections) > 1 else None, main, class_="columns" if len(sections) > 1 else None
    )
    head = element("header", element("h1", element("bdi", title)), element("p", lead))
    footer = element(
        "footer", f"Made by asreader {asreader.__version__}; everything on this page is inside this one file."
    )
    skip = element("a", "Skip to the content", href="#main", class_="skip")
    body = element("div", skip, element("div", head, columns, footer, class_="sheet"), class_="asreader page")
    return page(title, body, style=STYLE, script=SCRIPT)


def _section(section: PageSection) -> Markup:
    return element(
        "section", element("h2", section.title, id=f"{section.name}-title"), section.body,
        id=section.name, aria_labelledby=f"{section.name}-title",
    )  # fmt: skip


def build_table(
    header: Sequence[Part], rows: Sequence[Sequence[Part]], *, caption: str = "", numbers: Sequence[int] = ()
) -> Markup:
    """A table whose first column names its rows; columns in `numbers` stand to the right. It scrolls by itself."""
    return build_grouped_table(header, {"": rows}, caption=caption, numbers=numbers)


def build_grouped_table(
    header: Sequence[Part],
    groups: Mapping[str, Sequence[Sequence[Part]]],
    *,
    caption: str = "",
    numbers: Sequence[int] = (),
) -> Markup:
    """A table of several parts, each under its name."""
    kinds = ["number" if place in numbers else None for place in range(len(header))]
    head = [element("th", cell, scope="col", class_=kind) for cell, kind in zip(header, kinds, strict=True)]
    bodies = [element("thead", element("tr", *head))]
    for name, rows in groups.items():
        title = element("th", name, scope="rowgroup", colspan=len(header), class_="part")
        body = [element("tr", title)] if name else []
        bodies.append(element("tbody", *body, *(_row(row, kinds) for row in rows)))
    inner = element("table", element("caption", caption) if caption else None, *bodies, class_="lines")
    return element("div", inner, class_="scroll", tabindex=0, role="group", aria_label=caption or "table")


def _row(cells: Sequence[Part], kinds: Sequence[str | None]) -> Markup:
    named = element("th", cells[0], scope="row")
    return element("tr", named, *(element("td", cell, class_=k) for cell, k in zip(cells[1:], kinds[1:], strict=True)))


def build_key_figures(facts: Sequence[tuple[str, str, str]]) -> Markup:
    """The figures that matter: what, how much, and a small line below."""
    boxes = [
        element("div", element("dt", what), element("dd", much, element("small", note) if note else None))
        for what, much, note in facts
    ]
    return element("dl", *boxes, class_="keys")


def build_missing_note(text: str) -> Markup:
    """What a page would show if something were not missing."""
    return element("p", text, class_="missing")


def build_code_block(text: str) -> Markup:
    """Text as it is typed."""
    return element("pre", element("code", text), tabindex=0)


def build_details(summary: str, *parts: Part) -> Markup:
    """What is only looked at when asked for."""
    return element("details", element("summary", summary), joined(parts))


def format_setting(setting: object) -> Markup:
    """A setting as TOML has it, but for the quotes."""
    return isolated(str(setting).lower() if isinstance(setting, bool) else "" if setting is None else str(setting))


def build_section_or_error(maker: Callable[[T], Markup], about: T) -> Markup:
    """A part of a page, or why it is not there."""
    try:
        return maker(about)
    except InputError as error:
        return build_missing_note(f"Not here: {' '.join(str(error).split())}.")
