"""DATA -> Examples: the one way in. Finds each file's format, keeps ids apart and loses nothing in silence."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType

from asreader import plugins
from asreader.data.discovery import is_archive, members, split
from asreader.data.example import Example
from asreader.data.source_file import Member
from asreader.errors import Fault, InputError

FORMATS = "data.formats"
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
class Report:
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

    def lines(self) -> list[str]:
        """What the user should hear; empty if all was read."""
        lines = []
        if self.faults:
            lines.append(f"left out {_count(self.faults, 'bad question')}; the first is {self.first_faults[0]}")
        if self.ignored:
            names = ", ".join(self.first_ignored) + (", ..." if self.ignored > NAMED else "")
            lines.append(f"ignored {_count(self.ignored, 'file')} without questions: {names}")
        return lines


def read(
    path: Path, format: str | None = None, only: str | None = None, skip_bad: bool = False, report: Report | None = None
) -> Iterator[tuple[Part, Example]]:
    """Every question of a file, folder or archive, in order; ids are unique inside a part.

    `format` overrides detection, `only` is a glob on the files inside. A bad question ends the reading unless
    `skip_bad`. `report` is filled on the way.
    """
    report = Report() if report is None else report
    before, files = report.examples, 0
    many = path.is_dir() or is_archive(path.name)
    ids = _Ids(many)
    for member in members(path, only):
        files += 1
        module = plugins.load(FORMATS, format) if format else detected(member)
        items = _questions(module, member, sceptical=many and format is not None)
        if module is None or items is None:
            report.add_ignored(_label(member))
            continue
        part = Part(module.group(member.name) if hasattr(module, "group") else "", split(member.name))
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
    return tuple(plugins.load(FORMATS, name) for name in plugins.names(FORMATS))


def detected(member: Member) -> ModuleType | None:
    """The format whose questions a file seems to hold, if any."""
    head = member.head()
    claims = [module for module in _formats() if module.detect(member.name, head)]
    if len(claims) > 1:
        names = " and ".join(module.__name__.rsplit(".", 1)[-1] for module in claims)
        raise InputError(f"{member.where}: looks like {names}; say which with --format")
    return claims[0] if claims else None


def _questions(module: ModuleType | None, member: Member, sceptical: bool) -> Iterator[Example | Fault] | None:
    """What the format reads. A sceptic lets a file that gives faults alone pass for one without questions (None):
    a format given for a whole archive is not meant for its README."""
    if module is None:
        return None
    items: Iterator[Example | Fault] = module.read(member)
    if not sceptical or module.detect(member.name, member.head()):
        return items
    held: list[Example | Fault] = []
    for item in items if member.head() else ():
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


def _label(member: Member) -> str:
    """How an ignored file is named to the user, with the reason if it is not plain text."""
    if is_archive(member.name):
        return f"{member.name} (an archive: name it itself)"
    return member.name if member.head(1024) else f"{member.name} (empty or not UTF-8 text)"


def _nothing(path: Path, format: str | None, only: str | None, files: int, report: Report) -> str:
    """Why no question came out of DATA, and what to do."""
    if not files:
        return f"{path}: " + (f"no file matches {only!r}" if only else "there is no file in it")
    if report.faults:
        return f"{path}: not one question could be read; the first fault is {report.first_faults[0]}"
    if files == 1 and not format:
        for member in members(path, only):
            next(member.lines(), None)  # a wrong encoding is the better explanation
    tried = f"as {format}" if format else "in any known format"
    known = ", ".join(name for name in plugins.names(FORMATS) if name != format)
    seen = f" ({', '.join(report.first_ignored)})" if report.first_ignored and files > 1 else ""
    return f"{path}: no question found {tried} in {_count(files, 'file')}{seen}; choose with --format: {known}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
