"""make books, make news: questions from your own texts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asreader.cli.options import AsJson, Executor, Only, OutputFormat, print_json

if TYPE_CHECKING:
    from asreader.cloze.making_job import MakingSummary

MAX_NOTES = 5
"""Notes on single books that are shown on the terminal."""

Texts = Annotated[list[Path], typer.Argument(help="text files, folders or archives of them", metavar="PATH...")]
Workers = Annotated[int, typer.Option(min=0, help="number of processes; 0 is one for each CPU core")]


class WordType(StrEnum):
    """Classes of missing words in `make books`."""

    ne = "ne"
    cn = "cn"
    v = "v"
    p = "p"


class HeadingRule(StrEnum):
    """What to do with chapter headings."""

    drop = "drop"
    keep = "keep"


def books(
    paths: Texts,
    out: Annotated[Path, typer.Option(help="file to write: .jsonl for JSONL, anything else for CBT", metavar="FILE")],
    type: Annotated[WordType, typer.Option(help="class of the missing word: named entity, common noun, verb, prep.")],
    tagger: Annotated[str, typer.Option(help="tagger that classifies words (see asreader taggers)")] = "lexical",
    format: Annotated[OutputFormat | None, typer.Option(help="overrides the suffix of FILE")] = None,
    seed: Annotated[int, typer.Option(help="seed of the random candidates")] = 0,
    keep: Annotated[float, typer.Option(min=0, max=1, help="fraction of all possible questions to keep")] = 1.0,
    exclude: Annotated[
        list[Path], typer.Option(help="texts: no question may share ten words in a row with them", metavar="PATH")
    ] = [],  # noqa: B006
    headings: Annotated[
        HeadingRule, typer.Option(help="drop chapter headings, or keep them as CBT did")
    ] = HeadingRule.drop,
    only: Only = None,
    without: Annotated[list[str], typer.Option(help="skip books that match, as '064_*'", metavar="PATTERN")] = [],  # noqa: B006
    workers: Workers = 0,
    executor: Executor = "local",
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="skip books that cannot be read")] = False,
    as_json: AsJson = False,
) -> None:
    """Make questions from books, as in the Children's Book Test."""
    from asreader.cloze.books.book_maker import BookMaker, make_books
    from asreader.cloze.books.window_questions import QuestionRecipe
    from asreader.cloze.making_job import MakingJob

    output_format = format or (OutputFormat.jsonl if out.suffix == ".jsonl" else OutputFormat.cbt)
    maker = BookMaker(QuestionRecipe(type.value, seed, keep), tagger, output_format.value, headings.value)
    summary = make_books(paths, MakingJob(out, executor, workers, skip_bad), maker, only, exclude, without)
    _report_notes(summary)
    if as_json:
        print_json({"books": summary.pieces} | summary.as_json())
        return
    windows = summary.counts["windows"]
    rate = f", {summary.questions / windows:.2f} a window" if windows else ""
    print(f"{summary.questions:,} questions{rate} from {summary.pieces:,} books -> {out}")


def news(
    paths: Texts,
    out: Annotated[Path, typer.Option(help="FILE.jsonl, or a new folder for .question files", metavar="FILE|DIR")],
    lowercase: Annotated[bool, typer.Option("--lowercase", help="lowercase all words, as in the original")] = False,
    seed: Annotated[int, typer.Option(help="seed of the random entity numbers")] = 0,
    only: Only = None,
    workers: Workers = 0,
    executor: Executor = "local",
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="skip articles that cannot be read")] = False,
    as_json: AsJson = False,
) -> None:
    """Make questions from news highlights, as in CNN/Daily Mail.

    Entities are replaced by @entityN.
    """
    from asreader.cloze.making_job import MakingJob
    from asreader.cloze.news.news_maker import NewsMaker, make_news

    maker = NewsMaker(seed, lowercase, as_files=out.suffix != ".jsonl")
    summary = make_news(paths, MakingJob(out, executor, workers, skip_bad), maker, only)
    if as_json:
        print_json(summary.as_json())
        return
    articles = summary.counts["articles"]
    bad = summary.counts["bad_articles"]
    print(
        f"{summary.questions:,} questions, {summary.questions / articles:.1f} an article and "
        f"{summary.counts['candidates'] / summary.questions:.1f} candidates each, from {articles:,} articles -> {out}"
        + (f" ({bad:,} bad articles skipped)" if bad else "")
    )


def _report_notes(summary: MakingSummary) -> None:
    """Print skipped books and notes on overlap to stderr."""
    from asreader.system import progress

    for bad in summary.first_bad:
        progress.print_status(f"skipped: {bad}")
    if summary.bad > len(summary.first_bad):
        progress.print_status(f"skipped: {summary.bad - len(summary.first_bad):,} more")
    for note in summary.notes[:MAX_NOTES]:
        progress.print_status(note)
    if len(summary.notes) > MAX_NOTES:
        progress.print_status(f"... and {len(summary.notes) - MAX_NOTES:,} books that share less (all with --json)")
