"""gallery, report: pages that show what readers do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.combine import Published
from asreader.cli.options import Data, Device, Format, SkipBad
from asreader.errors import InputError
from asreader.pages.filter_options import AnswerSelection, QuestionOrder

Page = Annotated[Path, typer.Option(help="page to write", metavar="FILE.html")]


def gallery(
    run: Annotated[str, typer.Argument(help="run folder, or 'bundled'")],
    data: Data,
    out: Page,
    show: Annotated[AnswerSelection, typer.Option(help="which questions")] = AnswerSelection.every,
    top: Annotated[int, typer.Option(min=1, help="how many questions at the most")] = 20,
    word: Annotated[str, typer.Option(help="only questions with this word in the document or question")] = "",
    answer: Annotated[str, typer.Option(help="only questions where this was the right or the given answer")] = "",
    confidence: Annotated[
        str, typer.Option(help="only answers this sure, such as 0.5:0.9", metavar="LOW:HIGH")
    ] = "0:1",
    sort: Annotated[QuestionOrder | None, typer.Option(help="what comes first; without it what fits --show")] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="what the run said of the data, if it is written down already", metavar="FILE")
    ] = None,
    split: Annotated[str | None, typer.Option(help="train, valid or test, where the data holds several")] = None,
    format: Format = None,
    skip_bad: SkipBad = False,
    device: Device = "auto",
) -> None:
    """A page of questions with where the reader looked: right, wrong or most surprising answers."""
    from asreader.inference.reader import Reader
    from asreader.pages import gallery_page as galleries
    from asreader.pages import question_filter

    least, most = _range(confidence)
    selected = question_filter.QuestionFilter(show, word, answer, least, most, sort, top)
    reader = Reader.load(run, device)
    asked = question_filter.read_questions(data, split=split, format=format, skip_bad=skip_bad)
    name = f"{'The bundled reader' if run == 'bundled' else run} on {data}"
    count = galleries.write_gallery(out, reader, name, galleries.answer_questions(reader, asked, predictions), selected)
    print(f"{count} questions -> {out}")


def report(
    path: Annotated[Path, typer.Argument(help="a run, or a folder of runs on the same data", metavar="RUN|DIR")],
    out: Page,
    paper: Annotated[
        Published | None, typer.Option(help="put the paper's figures on this data set beside ours")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="the validation data, where they are not where the runs say", metavar="DATA")
    ] = None,
) -> None:
    """One self-contained page: results, learning curves, settings, data, figures, examples, how to make it again."""
    from asreader.pages import report_page as reports

    reports.write_report(path, out, paper.value if paper else None, data)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB; open it in a browser")


def _range(text: str) -> tuple[float, float]:
    """LOW:HIGH as two shares."""
    low, colon, high = text.partition(":")
    try:
        least, most = float(low or 0), float(high or 1)
    except ValueError:
        least, most = 1.0, 0.0
    if not (colon and 0 <= least <= most <= 1):
        raise InputError(f"--confidence {text}: write two numbers from 0 to 1, such as 0.5:0.9")
    return least, most
