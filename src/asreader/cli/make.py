"""make books, make news: from your own texts to questions."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asreader.cli.options import AsJson, Kind, Only, print_json

if TYPE_CHECKING:
    from asreader.cloze.making_job import MakingSummary

SHOWN = 5
"""Notes on single books that are shown to a person."""

Texts = Annotated[list[Path], typer.Argument(help="text files, folders or archives of them", metavar="PATH...")]
Executor = Annotated[str, typer.Option(help="local, or ray for a cluster (see asreader executors)")]
Workers = Annotated[int, typer.Option(min=0, help="processes; 0 is one for each processor")]
Seed = Annotated[int, typer.Option(help="another seed draws other candidates")]


class WordType(StrEnum):
    """What `make books` asks for."""

    ne = "ne"
    cn = "cn"
    v = "v"
    p = "p"


class Headings(StrEnum):
    """What becomes of chapter heads."""

    drop = "drop"
    keep = "keep"


def books(
    paths: Texts,
    out: Annotated[Path, typer.Option(help="file to write: .jsonl for JSONL, anything else for CBT", metavar="FILE")],
    type: Annotated[WordType, typer.Option(help="class of the missing word: named entity, common noun, verb, prep.")],
    tagger: Annotated[str, typer.Option(help="who says what a word is (see asreader taggers)")] = "lexical",
    format: Annotated[Kind | None, typer.Option(help="overrides what the name of FILE says")] = None,
    seed: Seed = 0,
    keep: Annotated[float, typer.Option(min=0, max=1, help="share of all possible questions to keep")] = 1.0,
    exclude: Annotated[
        list[Path], typer.Option(help="texts that no question may repeat ten words of", metavar="PATH")
    ] = [],  # noqa: B006
    headings: Annotated[Headings, typer.Option(help="drop chapter heads, or keep them as CBT did")] = Headings.drop,
    only: Only = None,
    without: Annotated[list[str], typer.Option(help="no book whose name fits, as '064_*'", metavar="PATTERN")] = [],  # noqa: B006
    workers: Workers = 0,
    executor: Executor = "local",
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="leave out books that cannot be read")] = False,
    as_json: AsJson = False,
) -> None:
    """Cloze questions from any books, as in the Children's Book Test."""
    from asreader.cloze.books.book_maker import BookMaker, make_books
    from asreader.cloze.books.window_questions import QuestionRecipe
    from asreader.cloze.making_job import MakingJob

    kind = format or (Kind.jsonl if out.suffix == ".jsonl" else Kind.cbt)
    maker = BookMaker(QuestionRecipe(type.value, seed, keep), tagger, kind.value, headings.value)
    summary = make_books(paths, MakingJob(out, executor, workers, skip_bad), maker, only, exclude, without)
    _show_summary(summary, out, as_json, "books")


def news(
    paths: Texts,
    out: Annotated[Path, typer.Option(help="FILE.jsonl, or a new folder for .question files", metavar="FILE|DIR")],
    lowercase: Annotated[bool, typer.Option("--lowercase", help="all words in lower case, as officially")] = False,
    seed: Annotated[int, typer.Option(help="another seed numbers the entities differently")] = 0,
    only: Only = None,
    workers: Workers = 0,
    executor: Executor = "local",
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="leave out articles that cannot be read")] = False,
    as_json: AsJson = False,
) -> None:
    """Cloze questions from news articles and their highlights, as in CNN/Daily Mail: entities become @entityN."""
    from asreader.cloze.making_job import MakingJob
    from asreader.cloze.news.news_maker import NewsMaker, make_news

    maker = NewsMaker(seed, lowercase, as_files=out.suffix != ".jsonl")
    summary = make_news(paths, MakingJob(out, executor, workers, skip_bad), maker, only)
    if as_json:
        print_json(summary.as_json())
        return
    articles, bad = summary.counts["articles"], summary.counts["bad_articles"]
    print(
        f"{summary.questions:,} questions, {summary.questions / articles:.1f} an article and "
        f"{summary.counts['candidates'] / summary.questions:.1f} candidates each, from {articles:,} articles -> {out}"
        + (f" ({bad:,} bad articles left out)" if bad else "")
    )


def _show_summary(summary: MakingSummary, out: Path, as_json: bool, what: str) -> None:
    from asreader.system import progress

    more = len(summary.notes) - SHOWN
    for line in (
        *(f"left out: {bad}" for bad in summary.first_bad),
        *([f"left out: {summary.bad - len(summary.first_bad):,} more"] if summary.bad > len(summary.first_bad) else []),
        *summary.notes[:SHOWN],
        *([f"... and {more:,} {what} that share less (all with --json)"] if more > 0 else []),
    ):
        progress.print_status(line)
    if as_json:
        print_json({what: summary.pieces} | summary.as_json())
        return
    rate = f", {summary.questions / windows:.2f} a window" if (windows := summary.counts["windows"]) else ""
    print(f"{summary.questions:,} questions{rate} from {summary.pieces:,} {what} -> {out}")
