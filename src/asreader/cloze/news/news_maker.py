"""files of articles -> Bundles, the pieces of work -> the questions of each: what `asreader make news` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from asreader.cloze.checkpoint import PieceOutput, PieceResult
from asreader.cloze.making_job import MakingJob, MakingSummary, group_items, run_maker
from asreader.cloze.news import article_questions, articles
from asreader.cloze.news.articles import Article
from asreader.data.discovery import members, plain_size
from asreader.errors import Fault, InputError

ARTICLES_PER_GROUP = 50
"""Articles of a bundle: a second's work."""


@dataclass(frozen=True, slots=True)
class ArticleGroup:
    """Some articles, read and not yet worked on; a bad record among them says why it is none."""

    articles: tuple[Article | Fault, ...]

    @property
    def name(self) -> str:
        """Of the first article."""
        first = self.articles[0]
        return str(first) if isinstance(first, Fault) else first.id

    @property
    def size(self) -> int:
        """Characters, or nearly."""
        read = (item for item in self.articles if isinstance(item, Article))
        return sum(len(article.text) + sum(map(len, article.highlights)) for article in read)


@dataclass(frozen=True, slots=True)
class NewsMaker:
    """Bundle -> its questions as they are written: `.question` files, or lines of JSONL."""

    seed: int = 0
    lowercase: bool = False
    as_files: bool = False

    def __call__(self, bundle: ArticleGroup) -> tuple[PieceResult, PieceOutput]:
        read = [item for item in bundle.articles if isinstance(item, Article)]
        made = [
            question
            for article in read
            for question in article_questions.make_article_questions(article, self.seed, self.lowercase)
        ]
        counts = {
            "articles": len(read),
            "bad_articles": len(bundle.articles) - len(read),
            "candidates": sum(len(question.example.candidates) for question in made),
        }
        if self.as_files:
            output = PieceOutput(
                files=tuple(
                    (article_questions.question_file_name(question), article_questions.format_question_file(question))
                    for question in made
                )
            )
        else:
            output = PieceOutput("".join(map(article_questions.format_jsonl_line, made)))
        return PieceResult(bundle.name, bundle.size, len(made), counts), output


def make_news(paths: Sequence[Path], job: MakingJob, maker: NewsMaker, only: str | None = None) -> MakingSummary:
    """Questions from every article of `paths`, into a file of JSONL or a folder of `.question` files."""
    bundles = (ArticleGroup(some) for some in group_items(_articles(paths, only, job.skip_bad), ARTICLES_PER_GROUP))
    total = plain_size(paths, only)
    return run_maker(bundles, maker, job, asdict(maker), "bundles", total=total, as_folder=maker.as_files)


def _articles(paths: Iterable[Path], only: str | None, skip_bad: bool) -> Iterator[Article | Fault]:
    """The articles of files, folders and archives, in order, each under an id of its own."""
    used: set[int] = set()
    for path in paths:
        found = False
        for member in members(path, only):
            if not articles.is_article_file(member.name, member.head()):
                continue
            for item in articles.read_articles(member):
                found = True
                if isinstance(item, Fault) and not skip_bad:
                    raise InputError(f"{item}; mend it, or leave such articles out with --skip-bad")
                if isinstance(item, Article) and hash(item.id) in used:
                    item = replace(item, id=f"{member.stem}/{item.id}")
                if isinstance(item, Article):
                    used.add(hash(item.id))
                yield item
        if not found:
            expected = ".story files, or CSV or JSONL with article and highlights"
            raise InputError(f"{path}: no articles with highlights in it; give {expected}")
