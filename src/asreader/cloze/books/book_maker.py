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
from asreader.cloze.books.window_questions import Recipe, questions, windows
from asreader.cloze.checkpoint import Made, Output
from asreader.cloze.making import Job, Summary, make
from asreader.data import dataset
from asreader.data.discovery import count_plain_bytes, find_files
from asreader.data.example import GAP, Example, Sentence
from asreader.data.source_file import SourceFile, make_memory_file, make_source_file
from asreader.errors import Fault, InputError
from asreader.system import progress


@dataclass(frozen=True, slots=True)
class Text:
    """One book before any work on it. A file of its own is read by the worker; what lies in an archive, or in one file
    with other books, travels as bytes."""

    where: str
    name: str
    size: int
    path: Path | None = None
    content: bytes = b""

    def sentences(self, headings: Headings = "drop") -> tuple[Sentence, ...]:
        """The book as sentences of words; an InputError says why it is none."""
        member = (
            make_source_file(self.path, self.name)
            if self.path
            else make_memory_file(self.where, self.name, self.content)
        )
        return next(cleaning.books(member, headings)).sentences


def texts(paths: Iterable[Path], only: str | None = None, without: Sequence[str] = ()) -> Iterator[Text]:
    """The books of files, folders and archives, in order, each under a name of its own; none that fits `without`."""
    taken = Counter[str]()
    for path in paths:
        found = False
        for text in (text for member in find_files(path, only) for text in _of_member(member)):
            found = True
            if any(fnmatchcase(text.name, pattern) for pattern in without):
                continue
            taken[text.name] += 1
            yield text if taken[text.name] == 1 else replace(text, name=f"{text.name}~{taken[text.name]}")
        if not found:
            raise InputError(f"{path}: " + (f"no file matches {only!r}" if only else "there is no file in it"))


def _of_member(member: SourceFile) -> Iterator[Text]:
    if member.read_head(64).startswith(BOOK_TITLE):
        yield from _of_many(member)
    elif member.path:
        yield Text(member.where, member.stem, member.path.stat().st_size, path=member.path)
    else:
        content = member.read_bytes()
        yield Text(member.where, member.stem, len(content), content=content)


def _of_many(member: SourceFile) -> Iterator[Text]:
    """The books of a tokenised file, each with its title line."""
    for title, lines in cleaning.tokenised_books(member.read_lines()):
        content = "\n".join([f"{BOOK_TITLE} : {title}", *lines]).encode()
        name = PurePosixPath(title).name.removesuffix(".out").removesuffix(".txt")
        yield Text(f"{member.where} ({title})", name or member.stem, len(content), content=content)


@dataclass(frozen=True, slots=True)
class Maker:
    """Text -> its questions as they are written. It travels to workers, so it holds names and no data."""

    recipe: Recipe
    tagger: str
    format: str
    headings: Headings = "drop"
    held_out: Path | None = None

    def __call__(self, text: Text) -> tuple[Made, Output]:
        try:
            sentences = text.sentences(self.headings)
        except InputError as error:
            return Made(text.name, text.size, bad=str(error)), Output()
        shared = overlap.find(sentences, _held_out(self.held_out)) if self.held_out else None
        line = plugins.load_plugin(dataset.FORMATS_FOLDER, self.format).format_example
        found = questions(
            text.name,
            sentences,
            _tagger(self.tagger)(sentences),
            self.recipe,
            banned=shared.sentences if shared else frozenset(),
        )
        lines = [written for example in found if (written := _written(line, example))]
        counts = {"sentences": len(sentences), "windows": windows(len(sentences))}
        made = Made(text.name, text.size, len(lines), counts)
        if shared and shared.shared:
            made = replace(made, note=_note(text.name, shared), weight=shared.shared)
        return made, Output("".join(lines))


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
        f"{name}: {shared.shared:,} of {shared.total:,} runs of {overlap.LENGTH} words stand in excluded texts; "
        f"questions that touch {where} are left out"
    )


@cache
def _tagger(name: str) -> tagging.Tagger:
    return tagging.load(name)


@cache
def _held_out(path: Path) -> NDArray[np.uint64]:
    return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]


def make_books(
    paths: Sequence[Path],
    job: Job,
    maker: Maker,
    only: str | None = None,
    exclude: Sequence[Path] = (),
    without: Sequence[str] = (),
) -> Summary:
    """Questions from every book of `paths`, into one file; `exclude` names texts that none may have been seen in."""
    _tagger(maker.tagger)  # what is wrong with it should be said before any work
    settings = asdict(maker) | {"exclude": "", "without": list(without)}
    total, chosen = count_plain_bytes(paths, only), texts(paths, only, without)
    if not exclude:
        return make(chosen, maker, job, settings, "books", total=total)
    runs = held_out_runs(exclude)
    place = job.out.with_name(f".{job.out.name}.held-out.npy")
    settings["exclude"] = sha256(runs.tobytes()).hexdigest()
    try:
        np.save(place, runs, allow_pickle=False)
        return make(chosen, replace(maker, held_out=place.absolute()), job, settings, "books", total=total)
    finally:
        place.unlink(missing_ok=True)


def held_out_runs(paths: Sequence[Path]) -> NDArray[np.uint64]:
    """The n-grams of texts that training must not have seen: books, raw or tokenised, or files of questions."""
    with progress.show_spinner("reading the texts to exclude"):
        return overlap.merged(
            overlap.ngrams(sentences)
            for path in paths
            for member in find_files(path)
            for sentences in _any_text(member)
        )


def _any_text(member: SourceFile) -> Iterator[Iterable[Sentence]]:
    format = dataset.detect_format(member)
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
