"""files of articles -> ArticleGroups -> the questions of each group: `asreader make news`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from asreader.cloze.checkpoint import PieceOutput, PieceResult
from asreader.cloze.making_job import MakingJob, MakingSummary, group_items, run_maker
from asreader.cloze.news.article_questions import (
    format_jsonl_line,
    format_question_file,
    make_article_questions,
    question_file_name,
)
from asreader.cloze.news.articles import Article, is_article_file, read_articles
from asreader.data.discovery import count_plain_bytes, find_files
from asreader.errors import Fault, InputError

ARTICLES_PER_GROUP = 50
"""Articles of a group: about one second of work."""


@dataclass(frozen=True, slots=True)
class ArticleGroup:
    """The articles of one piece of work; a Fault stands for a record that could not be read."""

    articles: tuple[Article | Fault, ...]

    @property
    def name(self) -> str:
        """The id of the first article."""
        first = self.articles[0]
        return str(first) if isinstance(first, Fault) else first.id

    @property
    def size(self) -> int:
        """The number of characters, about the size in bytes."""
        articles = (item for item in self.articles if isinstance(item, Article))
        return sum(len(article.text) + sum(map(len, article.highlights)) for article in articles)


@dataclass(frozen=True, slots=True)
class NewsMaker:
    """ArticleGroup -> its questions in the output format: `.question` files, or lines of JSONL."""

    seed: int = 0
    lowercase: bool = False
    as_files: bool = False

    def __call__(self, group: ArticleGroup) -> tuple[PieceResult, PieceOutput]:
        good_articles = [item for item in group.articles if isinstance(item, Article)]
        questions = [
            question
            for article in good_articles
            for question in make_article_questions(article, self.seed, self.lowercase)
        ]
        counts = {
            "articles": len(good_articles),
            "bad_articles": len(group.articles) - len(good_articles),
            "candidates": sum(len(question.example.candidates) for question in questions),
        }
        if self.as_files:
            output = PieceOutput(
                files=tuple((question_file_name(question), format_question_file(question)) for question in questions)
            )
        else:
            output = PieceOutput("".join(map(format_jsonl_line, questions)))
        return PieceResult(group.name, group.size, len(questions), counts), output


def make_news(paths: Sequence[Path], job: MakingJob, maker: NewsMaker, only: str | None = None) -> MakingSummary:
    """Make questions from every article of `paths`: one JSONL file or a folder of `.question` files."""
    articles = _find_articles(paths, only, job.skip_bad)
    groups = (ArticleGroup(group) for group in group_items(articles, ARTICLES_PER_GROUP))
    total = count_plain_bytes(paths, only)
    return run_maker(groups, maker, job, asdict(maker), "groups of articles", total=total, as_folder=maker.as_files)


def _find_articles(paths: Iterable[Path], only: str | None, skip_bad: bool) -> Iterator[Article | Fault]:
    """The articles of files, folders and archives, in order, each with a unique id."""
    used_ids: set[int] = set()
    for path in paths:
        has_articles = False
        for member in find_files(path, only):
            if not is_article_file(member.name, member.read_head()):
                continue
            for item in read_articles(member):
                has_articles = True
                if isinstance(item, Fault) and not skip_bad:
                    raise InputError(f"{item}; fix it, or skip bad articles with --skip-bad")
                if isinstance(item, Article) and hash(item.id) in used_ids:
                    item = replace(item, id=f"{member.stem}/{item.id}")
                if isinstance(item, Article):
                    used_ids.add(hash(item.id))
                yield item
        if not has_articles:
            expected = ".story files, or CSV or JSONL with article and highlights"
            raise InputError(f"{path}: no articles with highlights found; give {expected}")
