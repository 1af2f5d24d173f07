"""DATA -> Examples: the one way in. Finds each file's format, keeps ids apart and loses nothing in silence."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType

from asreader import plugins
from asreader.data.discovery import detect_split, find_files, is_archive
from asreader.data.example import Example
from asreader.data.source_file import SourceFile
from asreader.data.statistics import Statistics, compute_statistics_by_part
from asreader.data.store import Encoder, Store, is_store, open_store
from asreader.errors import Fault, InputError
from asreader.system import atomic_files
from asreader.system.progress import print_status, track_progress

FORMATS_FOLDER = "data.formats"
NAMED = 5
"""How many faults or ignored files a Report names; it counts all."""
PATIENCE = 1000
"""Faults after which a file of a folder, read in a given format, is taken for no question file at all."""


@dataclass(frozen=True, slots=True)
class Part:
    """What belongs together: the questions of one group (CBT: NE, CN, V, P; bAbI: qa1...) and one split."""

    group: str = ""
    split: str = ""

    @property
    def label(self) -> str:
        """Group and split as one word, such as NE-valid, which may be a folder's name; "" if the data say neither."""
        return "-".join(filter(None, (self.group, self.split)))


@dataclass
class ReadReport:
    """What became of the data while `read` went through it."""

    examples: int = 0
    faults: int = 0
    ignored: int = 0
    first_faults: list[Fault] = field(default_factory=list)
    first_ignored: list[str] = field(default_factory=list)

    def add_fault(self, fault: Fault) -> None:
        """Count a bad question; remember it if it is among the first."""
        self.faults += 1
        self.first_faults += [fault] * (self.faults <= NAMED)

    def add_ignored(self, name: str) -> None:
        """Count a file without questions; remember it if it is among the first."""
        self.ignored += 1
        self.first_ignored += [name] * (self.ignored <= NAMED)

    def format_lines(self) -> list[str]:
        """What the user should hear; empty if all was read."""
        lines = []
        if self.faults:
            lines.append(f"left out {_count(self.faults, 'bad question')}; the first is {self.first_faults[0]}")
        if self.ignored:
            names = ", ".join(self.first_ignored) + (", ..." if self.ignored > NAMED else "")
            lines.append(f"ignored {_count(self.ignored, 'file')} without questions: {names}")
        return lines


def read_examples(
    path: Path,
    format: str | None = None,
    only: str | None = None,
    skip_bad: bool = False,
    report: ReadReport | None = None,
) -> Iterator[tuple[Part, Example]]:
    """Every question of a file, folder or archive, in order; ids are unique inside a part.

    `format` overrides detection, `only` is a glob on the files inside. A bad question ends the reading unless
    `skip_bad`. `report` is filled on the way.
    """
    report = ReadReport() if report is None else report
    before, files = report.examples, 0
    many = path.is_dir() or is_archive(path.name)
    ids = _Ids(many)
    for member in find_files(path, only):
        files += 1
        module = plugins.load_plugin(FORMATS_FOLDER, format) if format else detect_format(member)
        items = _questions(module, member, sceptical=many and format is not None)
        if module is None or items is None:
            report.add_ignored(_label(member))
            continue
        part = Part(module.group(member.name) if hasattr(module, "group") else "", detect_split(member.name))
        stem, prefix = member.stem, ""
        for item in items:
            if isinstance(item, Fault):
                report.add_fault(item)
                if not skip_bad:
                    raise InputError(f"{item}; mend it, or leave such questions out with --skip-bad")
            else:
                report.examples += 1
                prefix = prefix or ids.prefix(part, stem)
                yield part, ids.unique(part, stem, prefix, item)
    if report.examples == before:
        raise InputError(_nothing(path, format, only, files, report))


@cache
def _formats() -> tuple[ModuleType, ...]:
    return tuple(plugins.load_plugin(FORMATS_FOLDER, name) for name in plugins.list_plugins(FORMATS_FOLDER))


def detect_format(member: SourceFile) -> ModuleType | None:
    """The format whose questions a file seems to hold, if any."""
    head = member.read_head()
    claims = [module for module in _formats() if module.detect(member.name, head)]
    if len(claims) > 1:
        names = " and ".join(module.__name__.rsplit(".", 1)[-1] for module in claims)
        raise InputError(f"{member.where}: looks like {names}; say which with --format")
    return claims[0] if claims else None


def _questions(module: ModuleType | None, member: SourceFile, sceptical: bool) -> Iterator[Example | Fault] | None:
    """What the format reads. A sceptic lets a file that gives faults alone pass for one without questions (None):
    a format given for a whole archive is not meant for its README."""
    if module is None:
        return None
    items: Iterator[Example | Fault] = module.read(member)
    if not sceptical or module.detect(member.name, member.read_head()):
        return items
    held: list[Example | Fault] = []
    for item in items if member.read_head() else ():
        held.append(item)
        if isinstance(item, Example):
            return chain(held, items)
        if len(held) == PATIENCE:
            break
    return None


class _Ids:
    """Keeps the ids of a part apart; a format's are unique inside a file, start with its stem or are the data's own."""

    def __init__(self, many: bool) -> None:
        self.many = many
        self.files: Counter[tuple[Part, str]] = Counter()
        # Hashes, since millions of own ids need not stay in memory whole.
        self.own: defaultdict[Part, set[int]] = defaultdict(set)

    def prefix(self, part: Part, stem: str) -> str:
        """What the ids of one more file start with: its stem or, if that is taken, stem~2, stem~3..."""
        copy = self.files[part, stem] + 1
        prefix = stem if copy == 1 else f"{stem}~{copy}"
        while self.files[part, prefix] or not self.own[part].isdisjoint((hash(prefix), hash(f"{prefix}:"))):
            copy += 1
            prefix = f"{stem}~{copy}"
        self.files[part, stem] = copy
        self.files[part, prefix] = self.files[part, prefix] or 1
        return prefix

    def unique(self, part: Part, stem: str, prefix: str, example: Example) -> Example:
        """The example, renamed if another file of the part has its id."""
        name = example.id
        if name == stem or name.startswith(f"{stem}:"):
            name = prefix + name[len(stem) :]
        elif self.many:
            while hash(name) in self.own[part] or self.files[part, name.partition(":")[0]]:
                name = f"{stem}/{name}"
            before, colon, _ = name.partition(":")
            self.own[part] |= {hash(name), hash(before + colon)}
        return example if name == example.id else replace(example, id=name)


def _label(member: SourceFile) -> str:
    """How an ignored file is named to the user, with the reason if it is not plain text."""
    if is_archive(member.name):
        return f"{member.name} (an archive: name it itself)"
    return member.name if member.read_head(1024) else f"{member.name} (empty or not UTF-8 text)"


def _nothing(path: Path, format: str | None, only: str | None, files: int, report: ReadReport) -> str:
    """Why no question came out of DATA, and what to do."""
    if not files:
        return f"{path}: " + (f"no file matches {only!r}" if only else "there is no file in it")
    if report.faults:
        return f"{path}: not one question could be read; the first fault is {report.first_faults[0]}"
    if files == 1 and not format:
        for member in find_files(path, only):
            next(member.read_lines(), None)  # a wrong encoding is the better explanation
    tried = f"as {format}" if format else "in any known format"
    known = ", ".join(name for name in plugins.list_plugins(FORMATS_FOLDER) if name != format)
    seen = f" ({', '.join(report.first_ignored)})" if report.first_ignored and files > 1 else ""
    return f"{path}: no question found {tried} in {_count(files, 'file')}{seen}; choose with --format: {known}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


SPLITS = ("train", "valid", "test")
UNNAMED_PART = "questions"
"""The store of data that name no split."""


def load_examples(
    path: Path,
    *,
    split: str | None = None,
    format: str | None = None,
    only: str | None = None,
    skip_bad: bool = False,
) -> Iterator[tuple[Part, Example]]:
    """The Examples of any DATA, under a bar; then a line for what was skipped or ignored. `split` keeps one split.

    Stores are DATA too, though they do not know the names of entities any more.
    """
    report = ReadReport()
    stores = [path] if is_store(path) else _inside(path)
    found = (
        _stored(stores) if stores else read_examples(path, format=format, only=only, skip_bad=skip_bad, report=report)
    )
    for part, example in track_progress(found, f"reading {path.name}"):
        if split is None or part.split in ("", split):
            yield part, example
    for note in report.format_lines():
        print_status(note)


def _inside(path: Path) -> list[Path]:
    return sorted(folder for folder in path.iterdir() if is_store(folder)) if path.is_dir() else []


def _stored(stores: Iterable[Path]) -> Iterator[tuple[Part, Example]]:
    for place in stores:
        group, _, split = place.name.rpartition("-")
        part = Part(group, split) if split in SPLITS else Part("" if place.name == UNNAMED_PART else place.name)
        store = open_store(place)
        yield from ((part, store.decode_example(number)) for number in range(len(store)))


def label_parts(parts: Iterable[Part]) -> dict[Part, str]:
    """A short name for each part: its split, with the group before it only where there are several groups."""
    kinds = list(parts)
    alone = len({part.group for part in kinds}) == 1
    return {
        part: "-".join(filter(None, ("" if alone else part.group, part.split))) or part.group or UNNAMED_PART
        for part in kinds
    }


def load_store(path: Path, *, split: str | None = None, format: str | None = None, skip_bad: bool = False) -> Store:
    """A store of one split, from a prepared folder or straight from the data."""
    if (store := find_store(path, split)) is not None:
        return open_store(store)
    encoder = Encoder()
    parts = set()
    for part, example in load_examples(path, split=split, format=format, skip_bad=skip_bad):
        parts.add(part.split)
        encoder.add(example)
    if not len(encoder):
        raise InputError(f"{path}: holds no {split} questions")
    if split is None and len(parts) > 1:
        raise InputError(f"{path}: holds several splits ({', '.join(sorted(parts))}); choose one with --split")
    return encoder.build_store()


def find_store(path: Path, split: str | None = None) -> Path | None:
    """The store that a path names: itself, the one of that split in it, or the only one in it; None without any.

    Several of which none is meant are an InputError.
    """
    for place in (path / split, path) if split else (path,):
        if is_store(place):
            return place
    inside = _inside(path)
    if len(inside) > 1:
        names = ", ".join(folder.name for folder in inside)
        raise InputError(f"{path}: holds several stores; name one of them: {names}")
    return inside[0] if inside else None


def prepare_stores(
    paths: Iterable[Path], out: Path, *, format: str | None, only: str | None, skip_bad: bool
) -> dict[str, int]:
    """Encode DATA into one store for each part (split, or group and split); returns the questions of each.

    Nothing appears under `out` before everything is read, encoded and on the disk.
    """
    encoders: dict[Part, Encoder] = {}
    with atomic_files.atomic_folder(out) as scratch:
        for path in paths:
            for part, example in load_examples(path, format=format, only=only, skip_bad=skip_bad):
                if part not in encoders:
                    (scratch / str(len(encoders))).mkdir()
                    encoders[part] = Encoder(scratch / str(len(encoders)))
                encoders[part].add(example)
        names = label_parts(encoders)
        for number, (part, encoder) in enumerate(encoders.items()):
            encoder.close(about=names[part])
            (scratch / str(number)).rename(scratch / names[part])
    return {names[part]: len(encoder) for part, encoder in encoders.items()}


def compute_data_statistics(
    path: Path, *, format: str | None, only: str | None, skip_bad: bool
) -> dict[str, Statistics]:
    """Table 1 of the paper for any DATA: the figures of each part under its label."""
    found = compute_statistics_by_part(load_examples(path, format=format, only=only, skip_bad=skip_bad))
    names = label_parts(found)
    return {names[part]: figures for part, figures in found.items()}
