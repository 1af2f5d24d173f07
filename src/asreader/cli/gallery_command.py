"""gallery: a page of questions, answers and attention."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import Data, Device, Format, HtmlFile, SkipBad, Split
from asreader.errors import InputError
from asreader.pages.filter_options import AnswerSelection, QuestionOrder


def gallery(
    run: Annotated[str, typer.Argument(help="run folder, or 'bundled'")],
    data: Data,
    out: HtmlFile,
    show: Annotated[AnswerSelection, typer.Option(help="which questions to show")] = AnswerSelection.every,
    top: Annotated[int, typer.Option(min=1, help="maximum number of questions")] = 20,
    word: Annotated[str, typer.Option(help="only questions with this word in document or question")] = "",
    answer: Annotated[str, typer.Option(help="only questions with this right or given answer")] = "",
    confidence: Annotated[
        str, typer.Option(help="only answers with this confidence, such as 0.5:0.9", metavar="LOW:HIGH")
    ] = "0:1",
    sort: Annotated[QuestionOrder | None, typer.Option(help="order; without it, the one that fits --show")] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="saved predictions of the run on this data, if there are any", metavar="FILE")
    ] = None,
    split: Split = None,
    format: Format = None,
    skip_bad: SkipBad = False,
    device: Device = "auto",
) -> None:
    """Write an HTML page of questions, answers and attention."""
    from asreader.inference.reader import Reader
    from asreader.pages import gallery_page as galleries
    from asreader.pages import question_filter

    low, high = _parse_confidence_range(confidence)
    selection = question_filter.QuestionFilter(show, word, answer, low, high, sort, top)
    reader = Reader.load(run, device)
    questions = question_filter.read_questions(data, split=split, format=format, skip_bad=skip_bad)
    title = f"{'The bundled reader' if run == 'bundled' else run} on {data}"
    count = galleries.write_gallery(
        out, reader, title, galleries.answer_questions(reader, questions, predictions), selection
    )
    print(f"{count} questions -> {out}")


def _parse_confidence_range(text: str) -> tuple[float, float]:
    """LOW:HIGH as two probabilities."""
    first, colon, last = text.partition(":")
    try:
        low = float(first or 0)
        high = float(last or 1)
    except ValueError:
        low, high = 1.0, 0.0
    if not (colon and 0 <= low <= high <= 1):
        raise InputError(f"--confidence {text}: write two numbers from 0 to 1, such as 0.5:0.9")
    return low, high
