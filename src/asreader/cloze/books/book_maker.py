"""files of books -> BookSources -> the questions of each book: `asreader make books`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from asreader import plugins
from asreader.cloze import tagging
from asreader.cloze.books import cleaning, overlap
from asreader.cloze.books.cleaning import BOOK_TITLE, Headings
from asreader.cloze.books.window_questions import QuestionRecipe, count_windows, make_window_questions
from asreader.cloze.checkpoint import PieceOutput, PieceResult
from asreader.cloze.making_job import MakingJob, MakingSummary, run_maker
from asreader.data import dataset
from asreader.data.discovery import count_plain_bytes, find_files
from asreader.data.example import GAP, Example, Sentence
from asreader.data.source_file import SourceFile, make_memory_file, make_source_file
from asreader.errors import Fault, InputError
from asreader.system import progress


@dataclass(frozen=True, slots=True)
class BookSource:
    """One book that has not been read yet.

    A worker reads a plain file itself; a book from an archive or from a file with several books is sent as bytes.
    """

    location: str
    name: str
    size: int
    path: Path | None = None
    content: bytes = b""

    def read_sentences(self, headings: Headings = "drop") -> tuple[Sentence, ...]:
        """The book as sentences of words; an InputError if it cannot be read."""
        member = (
            make_source_file(self.path, self.name)
            if self.path
            else make_memory_file(self.location, self.name, self.content)
        )
        return next(cleaning.read_books(member, headings)).sentences


def find_books(paths: Iterable[Path], only: str | None = None, without: Sequence[str] = ()) -> Iterator[BookSource]:
    """The books of files, folders and archives, in order, with unique names; without those that match `without`."""
    name_counts = Counter[str]()
    for path in paths:
        has_files = False
        for book in (book for member in find_files(path, only) for book in _split_file(member)):
            has_files = True
            if any(fnmatchcase(book.name, pattern) for pattern in without):
                continue
            name_counts[book.name] += 1
            count = name_counts[book.name]
            yield book if count == 1 else replace(book, name=f"{book.name}~{count}")
        if not has_files:
            raise InputError(f"{path}: " + (f"no file matches {only!r}" if only else "there is no file in it"))


def _split_file(member: SourceFile) -> Iterator[BookSource]:
    if member.read_head(64).startswith(BOOK_TITLE):
        yield from _split_tokenised_file(member)
    elif member.path:
        yield BookSource(member.where, member.stem, member.path.stat().st_size, path=member.path)
    else:
        content = member.read_bytes()
        yield BookSource(member.where, member.stem, len(content), content=content)


def _split_tokenised_file(member: SourceFile) -> Iterator[BookSource]:
    """The books of a tokenised file, each with its title line."""
    for title, lines in cleaning.split_tokenised_books(member.read_lines()):
        content = "\n".join([f"{BOOK_TITLE} : {title}", *lines]).encode()
        name = PurePosixPath(title).name.removesuffix(".out").removesuffix(".txt")
        yield BookSource(f"{member.where} ({title})", name or member.stem, len(content), content=content)


@dataclass(frozen=True, slots=True)
class BookMaker:
    """BookSource -> its questions in the output format. A maker is sent to workers, so it holds names and no data."""

    recipe: QuestionRecipe
    tagger: str
    format: str
    headings: Headings = "drop"
    held_out: Path | None = None

    def __call__(self, book: BookSource) -> tuple[PieceResult, PieceOutput]:
        try:
            sentences = book.read_sentences(self.headings)
        except InputError as error:
            return PieceResult(book.name, book.size, bad=str(error)), PieceOutput()
        shared = overlap.find_overlap(sentences, _load_held_out(self.held_out)) if self.held_out else None
        format_line = plugins.load_plugin(dataset.FORMATS_FOLDER, self.format).format_example
        questions = make_window_questions(
            book.name,
            sentences,
            _resolve_tagger(self.tagger)(sentences),
            self.recipe,
            banned=shared.sentences if shared else frozenset(),
        )
        lines = [line for example in questions if (line := _format_question(format_line, example))]
        counts = {"sentences": len(sentences), "windows": count_windows(len(sentences))}
        result = PieceResult(book.name, book.size, len(lines), counts)
        if shared and shared.shared_ngrams:
            result = replace(result, note=_describe_overlap(book.name, shared), weight=shared.shared_ngrams)
        return result, PieceOutput("".join(lines))


def _format_question(format_line: Callable[[Example], str], example: Example) -> str:
    """The question as text; empty if the format cannot hold one of its words, such as `|` in CBT."""
    try:
        return format_line(example)
    except InputError:
        return ""


def _describe_overlap(name: str, shared: overlap.Overlap) -> str:
    count = len(shared.sentences)
    where = "this sentence" if count == 1 else f"these {count:,} sentences"
    return (
        f"{name}: {shared.shared_ngrams:,} of {shared.total_ngrams:,} runs of {overlap.NGRAM_WORDS} words "
        "stand in excluded texts; "
        f"questions that touch {where} are left out"
    )


@cache
def _resolve_tagger(name: str) -> tagging.Tagger:
    return tagging.resolve_tagger(name)


@cache
def _load_held_out(path: Path) -> NDArray[np.uint64]:
    return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]


def make_books(
    paths: Sequence[Path],
    job: MakingJob,
    maker: BookMaker,
    only: str | None = None,
    exclude: Sequence[Path] = (),
    without: Sequence[str] = (),
) -> MakingSummary:
    """Make questions from every book of `paths` into one file; none repeats the held-out texts of `exclude`."""
    _resolve_tagger(maker.tagger)  # fail before any work if the tagger cannot be loaded
    settings = asdict(maker) | {"exclude": "", "without": list(without)}
    total = count_plain_bytes(paths, only)
    books = find_books(paths, only, without)
    if not exclude:
        return run_maker(books, maker, job, settings, "books", total=total)
    ngrams = hash_held_out_texts(exclude)
    ngram_file = job.out.with_name(f".{job.out.name}.held-out.npy")
    settings["exclude"] = sha256(ngrams.tobytes()).hexdigest()
    try:
        np.save(ngram_file, ngrams, allow_pickle=False)
        return run_maker(books, replace(maker, held_out=ngram_file.absolute()), job, settings, "books", total=total)
    finally:
        ngram_file.unlink(missing_ok=True)


def hash_held_out_texts(paths: Sequence[Path]) -> NDArray[np.uint64]:
    """The n-gram hashes of held-out texts: raw or tokenised books, or files of questions."""
    with progress.show_spinner("reading the texts to exclude"):
        return overlap.merge_ngrams(
            overlap.hash_ngrams(sentences)
            for path in paths
            for member in find_files(path)
            for sentences in _read_any_text(member)
        )


def _read_any_text(member: SourceFile) -> Iterator[Iterable[Sentence]]:
    format = dataset.detect_format(member)
    if format is None:
        yield from (book.read_sentences() for book in _split_file(member))
        return
    for item in format.read(member):
        if isinstance(item, Fault):
            raise InputError(f"{item}; fix it, or remove the file from --exclude")
        yield _fill_gap(item)


def _fill_gap(example: Example) -> Iterator[Sentence]:
    """The document and the question with its gap filled."""
    yield from example.document
    yield tuple(example.answer or word if word == GAP else word for word in example.question)
