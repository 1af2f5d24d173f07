"""answer: one question about a text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, Device, print_json
from asreader.errors import InputError


def answer(
    question: Annotated[str, typer.Option(help="a sentence with a gap: XXXXX, @placeholder or ___")],
    document: Annotated[str, typer.Option(help="a text file, or - for standard input", metavar="FILE|-")],
    run: Annotated[str, typer.Argument(help="run folder; without it, the bundled reader", metavar="RUN")] = "bundled",
    candidates: Annotated[
        str | None, typer.Option(help="comma-separated; without it, every word of the document")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="number of candidates to show")] = 5,
    html: Annotated[Path | None, typer.Option(help="write a page that shows the attention", metavar="FILE")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="draw the attention as in the paper's figures", metavar="FILE.svg|FILE.png")
    ] = None,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Answer a question about a text and show the attention."""
    from asreader.attention import html_view, terminal_view
    from asreader.inference.reader import Reader
    from asreader.system import atomic_files

    choices = [part.strip() for part in candidates.split(",") if part.strip()] if candidates else None
    result = Reader.load(run, device).answer(_read_document(document), question, choices)
    if html is not None:
        atomic_files.write_text(html, html_view.render_answer_page(result))
    if picture is not None:
        from asreader.attention import figure_file

        figure_file.write_figure(result, picture)
    if as_json:
        print_json(result.as_json(top))
    else:
        from asreader.cli.tables import print_renderable

        print_renderable(terminal_view.render_terminal(result, top))


def _read_document(document: str) -> str:
    """The text of --document."""
    try:
        raw = sys.stdin.buffer.read() if document == "-" else Path(document).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{document}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{document}: not UTF-8 text (byte {error.start}); convert it, e.g. with iconv") from None
