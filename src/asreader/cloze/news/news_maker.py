"""files of articles -> Bundles, the pieces of work -> the questions of each: what `asreader make news` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from asreader.cloze.checkpoint import Made, Output
from asreader.cloze.making import Job, Summary, batches, make
from asreader.cloze.news import article_questions, articles
from asreader.cloze.news.articles import Article
from asreader.data.discovery import count_plain_bytes, find_files
from asreader.errors import Fault, InputError

AT_ONCE = 50
"""Articles of a bundle: a second's work."""


@dataclass(frozen=True, slots=True)
class Bundle:
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
class Maker:
    """Bundle -> its questions as they are written: `.question` files, or lines of JSONL."""

    seed: int = 0
    lowercase: bool = False
    as_files: bool = False

    def __call__(self, bundle: Bundle) -> tuple[Made, Output]:
        read = [item for item in bundle.articles if isinstance(item, Article)]
        made = [
            question for article in read for question in article_questions.questions(article, self.seed, self.lowercase)
        ]
        counts = {
            "articles": len(read),
            "bad_articles": len(bundle.articles) - len(read),
            "candidates": sum(len(question.example.candidates) for question in made),
        }
        if self.as_files:
            output = Output(
                files=tuple(
                    (article_questions.file_name(question), article_questions.question_file(question))
                    for question in made
                )
            )
        else:
            output = Output("".join(map(article_questions.jsonl_line, made)))
        return Made(bundle.name, bundle.size, len(made), counts), output


def make_news(paths: Sequence[Path], job: Job, maker: Maker, only: str | None = None) -> Summary:
    """Questions from every article of `paths`, into a file of JSONL or a folder of `.question` files."""
    bundles = (Bundle(some) for some in batches(_articles(paths, only, job.skip_bad), AT_ONCE))
    total = count_plain_bytes(paths, only)
    return make(bundles, maker, job, asdict(maker), "bundles", total=total, as_folder=maker.as_files)


def _articles(paths: Iterable[Path], only: str | None, skip_bad: bool) -> Iterator[Article | Fault]:
    """The articles of files, folders and archives, in order, each under an id of its own."""
    used: set[int] = set()
    for path in paths:
        found = False
        for member in find_files(path, only):
            if not articles.detect(member.name, member.read_head()):
                continue
            for item in articles.read(member):
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
