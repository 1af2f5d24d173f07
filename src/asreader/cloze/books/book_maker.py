"""files of books -> Texts, the pieces of work -> the questions of each: what `asreader make books` does."""

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
from asreader.data import reading
from asreader.data.discovery import members, plain_size
from asreader.data.example import GAP, Example, Sentence
from asreader.data.source_file import Member, in_memory, plain_file
from asreader.errors import Fault, InputError
from asreader.system import progress


@dataclass(frozen=True, slots=True)
class BookSource:
    """One book before any work on it. A file of its own is read by the worker; what lies in an archive, or in one file
    with other books, travels as bytes."""

    where: str
    name: str
    size: int
    path: Path | None = None
    content: bytes = b""

    def sentences(self, headings: Headings = "drop") -> tuple[Sentence, ...]:
        """The book as sentences of words; an InputError says why it is none."""
        member = plain_file(self.path, self.name) if self.path else in_memory(self.where, self.name, self.content)
        return next(cleaning.read_books(member, headings)).sentences


def find_books(paths: Iterable[Path], only: str | None = None, without: Sequence[str] = ()) -> Iterator[BookSource]:
    """The books of files, folders and archives, in order, each under a name of its own; none that fits `without`."""
    taken = Counter[str]()
    for path in paths:
        found = False
        for text in (text for member in members(path, only) for text in _of_member(member)):
            found = True
            if any(fnmatchcase(text.name, pattern) for pattern in without):
                continue
            taken[text.name] += 1
            yield text if taken[text.name] == 1 else replace(text, name=f"{text.name}~{taken[text.name]}")
        if not found:
            raise InputError(f"{path}: " + (f"no file matches {only!r}" if only else "there is no file in it"))


def _of_member(member: Member) -> Iterator[BookSource]:
    if member.head(64).startswith(BOOK_TITLE):
        yield from _of_many(member)
    elif member.path:
        yield BookSource(member.where, member.stem, member.path.stat().st_size, path=member.path)
    else:
        content = member.content()
        yield BookSource(member.where, member.stem, len(content), content=content)


def _of_many(member: Member) -> Iterator[BookSource]:
    """The books of a tokenised file, each with its title line."""
    for title, lines in cleaning.split_tokenised_books(member.lines()):
        content = "\n".join([f"{BOOK_TITLE} : {title}", *lines]).encode()
        name = PurePosixPath(title).name.removesuffix(".out").removesuffix(".txt")
        yield BookSource(f"{member.where} ({title})", name or member.stem, len(content), content=content)


@dataclass(frozen=True, slots=True)
class BookMaker:
    """Text -> its questions as they are written. It travels to workers, so it holds names and no data."""

    recipe: QuestionRecipe
    tagger: str
    format: str
    headings: Headings = "drop"
    held_out: Path | None = None

    def __call__(self, text: BookSource) -> tuple[PieceResult, PieceOutput]:
        try:
            sentences = text.sentences(self.headings)
        except InputError as error:
            return PieceResult(text.name, text.size, bad=str(error)), PieceOutput()
        shared = overlap.find_overlap(sentences, _held_out(self.held_out)) if self.held_out else None
        line = plugins.load(reading.FORMATS, self.format).line
        found = make_window_questions(
            text.name,
            sentences,
            _tagger(self.tagger)(sentences),
            self.recipe,
            banned=shared.sentences if shared else frozenset(),
        )
        lines = [written for example in found if (written := _written(line, example))]
        counts = {"sentences": len(sentences), "windows": count_windows(len(sentences))}
        made = PieceResult(text.name, text.size, len(lines), counts)
        if shared and shared.shared:
            made = replace(made, note=_note(text.name, shared), weight=shared.shared)
        return made, PieceOutput("".join(lines))


def _written(line: Callable[[Example], str], example: Example) -> str:
    """The question as text; "" for the rare one with a word that the format cannot hold, such as `|` in CBT."""
    try:
        return line(example)
    except InputError:
        return ""


def _note(name: str, shared: overlap.Overlap) -> str:
    count = len(shared.sentences)
    where = "this sentence" if count == 1 else f"these {count:,} sentences"
    return (
        f"{name}: {shared.shared:,} of {shared.total:,} runs of {overlap.NGRAM_WORDS} words stand in excluded texts; "
        f"questions that touch {where} are left out"
    )


@cache
def _tagger(name: str) -> tagging.Tagger:
    return tagging.resolve_tagger(name)


@cache
def _held_out(path: Path) -> NDArray[np.uint64]:
    return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]


def make_books(
    paths: Sequence[Path],
    job: MakingJob,
    maker: BookMaker,
    only: str | None = None,
    exclude: Sequence[Path] = (),
    without: Sequence[str] = (),
) -> MakingSummary:
    """Questions from every book of `paths`, into one file; `exclude` names texts that none may have been seen in."""
    _tagger(maker.tagger)  # what is wrong with it should be said before any work
    settings = asdict(maker) | {"exclude": "", "without": list(without)}
    total, chosen = plain_size(paths, only), find_books(paths, only, without)
    if not exclude:
        return run_maker(chosen, maker, job, settings, "books", total=total)
    runs = hash_held_out_texts(exclude)
    place = job.out.with_name(f".{job.out.name}.held-out.npy")
    settings["exclude"] = sha256(runs.tobytes()).hexdigest()
    try:
        np.save(place, runs, allow_pickle=False)
        return run_maker(chosen, replace(maker, held_out=place.absolute()), job, settings, "books", total=total)
    finally:
        place.unlink(missing_ok=True)


def hash_held_out_texts(paths: Sequence[Path]) -> NDArray[np.uint64]:
    """The n-grams of texts that training must not have seen: books, raw or tokenised, or files of questions."""
    with progress.waiting("reading the texts to exclude"):
        return overlap.merge_ngrams(
            overlap.hash_ngrams(sentences)
            for path in paths
            for member in members(path)
            for sentences in _any_text(member)
        )


def _any_text(member: Member) -> Iterator[Iterable[Sentence]]:
    format = reading.detected(member)
    if format is None:
        yield from (text.sentences() for text in _of_member(member))
        return
    for item in format.read(member):
        if isinstance(item, Fault):
            raise InputError(f"{item}; mend it, or leave it out of --exclude")
        yield _whole(item)


def _whole(example: Example) -> Iterator[Sentence]:
    """A question with its document, the gap filled again."""
    yield from example.document
    yield tuple(example.answer or word if word == GAP else word for word in example.question)
