"""DATA -> Examples or Store: the only entry point for data, whether files in any format or stores.

`read_examples` reads files: it detects their formats, makes ids unique and drops nothing silently. `load_examples` and
`load_store` also open stores that `prepare_stores` made.
"""

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
SPLITS = ("train", "valid", "test")
UNNAMED_PART = "questions"
"""Label of data without a group and a split."""
MAX_NAMED = 5
"""How many faults or ignored files a ReadReport names; it counts all."""
MAX_LEADING_FAULTS = 1000
"""Faults at the start of a file of a folder, read in a given format, after which the file counts as ignored."""


@dataclass(frozen=True, slots=True)
class Part:
    """The questions of one group (CBT: NE, CN, V, P; bAbI: qa1...) and one split."""

    group: str = ""
    split: str = ""

    @property
    def label(self) -> str:
        """Group and split as one word, such as NE-valid, fit for a folder name; "" if the data name neither."""
        return "-".join(filter(None, (self.group, self.split)))


@dataclass
class ReadReport:
    """What `read_examples` has read, skipped and ignored."""

    examples: int = 0
    faults: int = 0
    ignored: int = 0
    first_faults: list[Fault] = field(default_factory=list)
    first_ignored: list[str] = field(default_factory=list)

    def add_fault(self, fault: Fault) -> None:
        """Count a bad question; name it if it is among the first."""
        self.faults += 1
        self.first_faults += [fault] * (self.faults <= MAX_NAMED)

    def add_ignored(self, name: str) -> None:
        """Count a file without questions; name it if it is among the first."""
        self.ignored += 1
        self.first_ignored += [name] * (self.ignored <= MAX_NAMED)

    def format_lines(self) -> list[str]:
        """Lines for the user; empty if everything was read."""
        lines = []
        if self.faults:
            lines.append(f"skipped {_format_count(self.faults, 'bad question')}; the first is {self.first_faults[0]}")
        if self.ignored:
            names = ", ".join(self.first_ignored) + (", ..." if self.ignored > MAX_NAMED else "")
            lines.append(f"ignored {_format_count(self.ignored, 'file')} without questions: {names}")
        return lines


# --- files -> Examples ---


def read_examples(
    path: Path,
    format: str | None = None,
    only: str | None = None,
    skip_bad: bool = False,
    report: ReadReport | None = None,
) -> Iterator[tuple[Part, Example]]:
    """Every question of a file, folder or archive, in order; ids are unique inside a part.

    `format` overrides detection, `only` is a glob on the files inside. A bad question raises InputError unless
    `skip_bad`. `report` is filled during the iteration.
    """
    report = ReadReport() if report is None else report
    examples_before, file_count = report.examples, 0
    is_collection = path.is_dir() or is_archive(path.name)
    ids = _UniqueIds(is_collection)
    for file in find_files(path, only):
        file_count += 1
        module = plugins.load_plugin(FORMATS_FOLDER, format) if format else detect_format(file)
        items = _read_questions(module, file, may_ignore=is_collection and format is not None)
        if module is None or items is None:
            report.add_ignored(_describe_ignored(file))
            continue
        group = module.detect_group(file.name) if hasattr(module, "detect_group") else ""
        part = Part(group, detect_split(file.name))
        prefix = ""
        for item in items:
            if isinstance(item, Fault):
                report.add_fault(item)
                if not skip_bad:
                    raise InputError(f"{item}; fix it, or skip bad questions with --skip-bad")
            else:
                report.examples += 1
                prefix = prefix or ids.reserve_prefix(part, file.stem)
                yield part, ids.make_unique(part, file.stem, prefix, item)
    if report.examples == examples_before:
        raise InputError(_explain_no_questions(path, format, only, file_count, report))


@cache
def _load_formats() -> tuple[ModuleType, ...]:
    return tuple(plugins.load_plugin(FORMATS_FOLDER, name) for name in plugins.list_plugins(FORMATS_FOLDER))


def detect_format(file: SourceFile) -> ModuleType | None:
    """The format that claims a file, if any."""
    head = file.read_head()
    claims = [module for module in _load_formats() if module.detect(file.name, head)]
    if len(claims) > 1:
        names = " and ".join(module.__name__.rsplit(".", 1)[-1] for module in claims)
        raise InputError(f"{file.where}: looks like {names}; choose one with --format")
    return claims[0] if claims else None


def _read_questions(module: ModuleType | None, file: SourceFile, may_ignore: bool) -> Iterator[Example | Fault] | None:
    """The items of a file. With `may_ignore`, None for a file that starts with faults only.

    A format given for a whole archive does not apply to its README.
    """
    if module is None:
        return None
    items: Iterator[Example | Fault] = module.read(file)
    if not may_ignore or module.detect(file.name, file.read_head()):
        return items
    leading: list[Example | Fault] = []
    for item in items if file.read_head() else ():
        leading.append(item)
        if isinstance(item, Example):
            return chain(leading, items)
        if len(leading) == MAX_LEADING_FAULTS:
            break
    return None


class _UniqueIds:
    """Makes ids unique inside a part; inside a file they are: they start with the file's stem or come from the data."""

    def __init__(self, is_collection: bool) -> None:
        self.is_collection = is_collection
        self.prefixes: Counter[tuple[Part, str]] = Counter()
        # Hashes, because millions of ids of the data would take too much memory.
        self.data_ids: defaultdict[Part, set[int]] = defaultdict(set)

    def reserve_prefix(self, part: Part, stem: str) -> str:
        """The start of the ids of another file: its stem or, if that is taken, stem~2, stem~3..."""
        copy = self.prefixes[part, stem] + 1
        prefix = stem if copy == 1 else f"{stem}~{copy}"
        while self.prefixes[part, prefix] or not self.data_ids[part].isdisjoint((hash(prefix), hash(f"{prefix}:"))):
            copy += 1
            prefix = f"{stem}~{copy}"
        self.prefixes[part, stem] = copy
        self.prefixes[part, prefix] = self.prefixes[part, prefix] or 1
        return prefix

    def make_unique(self, part: Part, stem: str, prefix: str, example: Example) -> Example:
        """The example, with a new id if another file of the part has the same one."""
        name = example.id
        if name == stem or name.startswith(f"{stem}:"):
            name = prefix + name[len(stem) :]
        elif self.is_collection:
            while hash(name) in self.data_ids[part] or self.prefixes[part, name.partition(":")[0]]:
                name = f"{stem}/{name}"
            start, colon, _ = name.partition(":")
            self.data_ids[part] |= {hash(name), hash(start + colon)}
        return example if name == example.id else replace(example, id=name)


def _describe_ignored(file: SourceFile) -> str:
    """The name of an ignored file, with the reason if it is not plain text."""
    if is_archive(file.name):
        return f"{file.name} (an archive: give its own path)"
    return file.name if file.read_head(1024) else f"{file.name} (empty or not UTF-8 text)"


def _explain_no_questions(path: Path, format: str | None, only: str | None, file_count: int, report: ReadReport) -> str:
    """Why DATA gave no question, and what to do."""
    if not file_count:
        return f"{path}: " + (f"no file matches {only!r}" if only else "there is no file in it")
    if report.faults:
        return f"{path}: not one question could be read; the first fault is {report.first_faults[0]}"
    if file_count == 1 and not format:
        for file in find_files(path, only):
            next(file.read_lines(), None)  # a wrong encoding is the better explanation
    tried = f"as {format}" if format else "in any known format"
    known = ", ".join(name for name in plugins.list_plugins(FORMATS_FOLDER) if name != format)
    names = f" ({', '.join(report.first_ignored)})" if report.first_ignored and file_count > 1 else ""
    files = _format_count(file_count, "file")
    return f"{path}: no question found {tried} in {files}{names}; choose with --format: {known}"


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# --- files or stores -> Examples or Store ---


def load_examples(
    path: Path,
    *,
    split: str | None = None,
    format: str | None = None,
    only: str | None = None,
    skip_bad: bool = False,
) -> Iterator[tuple[Part, Example]]:
    """The Examples of any DATA with a progress bar; then a line for what was skipped or ignored.

    `split` keeps one split. Examples from a store have no entity names.
    """
    report = ReadReport()
    stores = [path] if is_store(path) else _list_stores(path)
    if stores:
        pairs = _decode_stores(stores)
    else:
        pairs = read_examples(path, format=format, only=only, skip_bad=skip_bad, report=report)
    for part, example in track_progress(pairs, f"reading {path.name}"):
        if split is None or part.split in ("", split):
            yield part, example
    for line in report.format_lines():
        print_status(line)


def _list_stores(path: Path) -> list[Path]:
    return sorted(folder for folder in path.iterdir() if is_store(folder)) if path.is_dir() else []


def _decode_stores(folders: Iterable[Path]) -> Iterator[tuple[Part, Example]]:
    for folder in folders:
        group, _, split = folder.name.rpartition("-")
        part = Part(group, split) if split in SPLITS else Part("" if folder.name == UNNAMED_PART else folder.name)
        store = open_store(folder)
        yield from ((part, store.decode_example(index)) for index in range(len(store)))


def label_parts(parts: Iterable[Part]) -> dict[Part, str]:
    """A short label for each part: its split, with the group in front only if there are several groups."""
    parts = list(parts)
    has_one_group = len({part.group for part in parts}) == 1
    return {
        part: "-".join(filter(None, ("" if has_one_group else part.group, part.split))) or part.group or UNNAMED_PART
        for part in parts
    }


def load_store(path: Path, *, split: str | None = None, format: str | None = None, skip_bad: bool = False) -> Store:
    """The store of one split: a prepared one is opened, other data are read and encoded in memory."""
    if (folder := find_store(path, split)) is not None:
        return open_store(folder)
    encoder = Encoder()
    splits = set()
    for part, example in load_examples(path, split=split, format=format, skip_bad=skip_bad):
        splits.add(part.split)
        encoder.add(example)
    if not len(encoder):
        raise InputError(f"{path}: holds no {split} questions")
    if split is None and len(splits) > 1:
        raise InputError(f"{path}: holds several splits ({', '.join(sorted(splits))}); choose one with --split")
    return encoder.build_store()


def find_store(path: Path, split: str | None = None) -> Path | None:
    """The folder of the store that a path names: itself, the one of that split in it, or the only one in it.

    None if there is no store; InputError if there are several and none is named.
    """
    for folder in (path / split, path) if split else (path,):
        if is_store(folder):
            return folder
    stores = _list_stores(path)
    if len(stores) > 1:
        names = ", ".join(folder.name for folder in stores)
        raise InputError(f"{path}: holds several stores; name one of them: {names}")
    return stores[0] if stores else None


def prepare_stores(
    paths: Iterable[Path], out: Path, *, format: str | None, only: str | None, skip_bad: bool
) -> dict[str, int]:
    """Encode DATA into one store per part (split, or group and split); returns the number of questions of each.

    `out` appears only after everything is read, encoded and flushed to disk.
    """
    encoders: dict[Part, Encoder] = {}
    with atomic_files.atomic_folder(out) as scratch:
        for path in paths:
            for part, example in load_examples(path, format=format, only=only, skip_bad=skip_bad):
                if part not in encoders:
                    (scratch / str(len(encoders))).mkdir()
                    encoders[part] = Encoder(scratch / str(len(encoders)))
                encoders[part].add(example)
        labels = label_parts(encoders)
        for index, (part, encoder) in enumerate(encoders.items()):
            encoder.close(about=labels[part])
            (scratch / str(index)).rename(scratch / labels[part])
    return {labels[part]: len(encoder) for part, encoder in encoders.items()}


def compute_data_statistics(
    path: Path, *, format: str | None, only: str | None, skip_bad: bool
) -> dict[str, Statistics]:
    """Table 1 of the paper for any DATA: the Statistics of each part under its label."""
    statistics = compute_statistics_by_part(load_examples(path, format=format, only=only, skip_bad=skip_bad))
    labels = label_parts(statistics)
    return {labels[part]: figures for part, figures in statistics.items()}
