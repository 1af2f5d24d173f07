"""PageSections -> HTML page: layout, tables and notes shared by reports and galleries; one self-contained file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import asreader
from asreader.attention import html_view
from asreader.errors import InputError
from asreader.system.markup import Content, Markup, element, isolate_word, join_content, page

T = TypeVar("T")

_FOLDER = Path(__file__).parent
STYLE = f"{html_view.STYLE}\n{(_FOLDER / 'page.css').read_text(encoding='utf-8')}"
SCRIPT = (_FOLDER / "page.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class PageSection:
    """A titled part of a page, listed in its contents."""

    name: str
    title: str
    body: Markup


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A number that is printed large, with its name above and an optional note below."""

    name: str
    value: str
    note: str = ""


def render_page(title: str, lead: Content, sections: Sequence[PageSection]) -> str:
    """A page with a table of contents. The script only adds keyboard shortcuts and filters."""
    contents = [element("li", element("a", section.title, href=f"#{section.name}")) for section in sections]
    navigation = element("nav", element("ul", *contents), class_="contents", aria_label="Contents")
    main = element("main", *map(_render_section, sections), id="main", tabindex=-1)
    has_contents = len(sections) > 1
    columns = element("div", navigation if has_contents else None, main, class_="columns" if has_contents else None)
    header = element("header", element("h1", element("bdi", title)), element("p", lead))
    footer = element(
        "footer", f"Made by asreader {asreader.__version__}; everything on this page is inside this one file."
    )
    skip_link = element("a", "Skip to the content", href="#main", class_="skip")
    body = element("div", skip_link, element("div", header, columns, footer, class_="sheet"), class_="asreader page")
    return page(title, body, style=STYLE, script=SCRIPT)


def _render_section(section: PageSection) -> Markup:
    title_id = f"{section.name}-title"
    title = element("h2", section.title, id=title_id)
    return element("section", title, section.body, id=section.name, aria_labelledby=title_id)


def build_table(
    header: Sequence[Content], rows: Sequence[Sequence[Content]], *, caption: str = "", numbers: Sequence[int] = ()
) -> Markup:
    """A scrollable table; the first column is the row header, columns in `numbers` are right-aligned."""
    return build_grouped_table(header, {"": rows}, caption=caption, numbers=numbers)


def build_grouped_table(
    header: Sequence[Content],
    groups: Mapping[str, Sequence[Sequence[Content]]],
    *,
    caption: str = "",
    numbers: Sequence[int] = (),
) -> Markup:
    """A table whose rows are grouped under titles."""
    classes = ["number" if index in numbers else None for index in range(len(header))]
    head = [element("th", cell, scope="col", class_=name) for cell, name in zip(header, classes, strict=True)]
    bodies = [element("thead", element("tr", *head))]
    for group, rows in groups.items():
        title = element("th", group, scope="rowgroup", colspan=len(header), class_="part")
        title_row = [element("tr", title)] if group else []
        bodies.append(element("tbody", *title_row, *(_build_row(row, classes) for row in rows)))
    inner = element("table", element("caption", caption) if caption else None, *bodies, class_="lines")
    return element("div", inner, class_="scroll", tabindex=0, role="group", aria_label=caption or "table")


def _build_row(cells: Sequence[Content], classes: Sequence[str | None]) -> Markup:
    header = element("th", cells[0], scope="row")
    values = [element("td", cell, class_=name) for cell, name in zip(cells[1:], classes[1:], strict=True)]
    return element("tr", header, *values)


def build_key_figures(figures: Sequence[KeyFigure]) -> Markup:
    """The most important numbers of a page."""
    boxes = [
        element(
            "div",
            element("dt", figure.name),
            element("dd", figure.value, element("small", figure.note) if figure.note else None),
        )
        for figure in figures
    ]
    return element("dl", *boxes, class_="keys")


def build_missing_note(text: str) -> Markup:
    """A note in place of something that is missing."""
    return element("p", text, class_="missing")


def build_code_block(text: str) -> Markup:
    """Preformatted text."""
    return element("pre", element("code", text), tabindex=0)


def build_details(summary: str, *parts: Content) -> Markup:
    """Content that is folded under its summary."""
    return element("details", element("summary", summary), join_content(parts))


def format_setting(setting: object) -> Markup:
    """A setting as in TOML, but strings without quotes."""
    return isolate_word(str(setting).lower() if isinstance(setting, bool) else "" if setting is None else str(setting))


def build_section_or_error(build: Callable[[T], Markup], argument: T) -> Markup:
    """The built part of a page, or a note with the reason if it raises InputError."""
    try:
        return build(argument)
    except InputError as error:
        return build_missing_note(f"Not here: {' '.join(str(error).split())}.")
