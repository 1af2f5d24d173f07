"""DATA path -> Members: the files of a folder or archive, and what their names say of the split."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from asreader.data.archives import iterate_tar, iterate_zip
from asreader.data.source_file import (
    COMPRESSION_SUFFIXES,
    SourceFile,
    make_source_file,
    report_errors,
    strip_compression_suffix,
)
from asreader.errors import InputError

TAR_SUFFIXES = (".tar", ".tgz", ".tar.gz", ".txz", ".tar.xz", ".tbz2", ".tar.bz2")
SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev", "development"), "valid"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def find_files(path: Path, only: str | None = None) -> Iterator[SourceFile]:
    """The files of DATA whose inner or base name matches the glob `only`; folders sorted, archives in their order."""

    def wanted(name: str) -> bool:
        pattern = strip_compression_suffix(only or "*")
        return fnmatchcase(name, pattern) or fnmatchcase(PurePosixPath(name).name, pattern)

    with report_errors(str(path)):
        mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        yield from _of_folder(path, wanted)
    elif not stat.S_ISREG(mode):
        raise InputError(f"{path}: neither a file nor a folder")
    elif path.name.lower().endswith(TAR_SUFFIXES):
        yield from iterate_tar(path, wanted)
    elif path.name.lower().endswith(".zip"):
        yield from iterate_zip(path, wanted)
    elif wanted(strip_compression_suffix(path.name)):
        yield make_source_file(path, _split_folder(path.parent) + path.name)


def is_archive(name: str) -> bool:
    """Whether `members` would look into a file of this name (a compression suffix may be gone already)."""
    return name.lower().endswith((*TAR_SUFFIXES, ".zip"))


def count_plain_bytes(paths: Iterable[Path], only: str | None = None) -> int | None:
    """Bytes of all files of DATA, for a bar; None where packing hides how much it will be."""
    total = 0
    for path in paths:
        if is_archive(path.name):
            return None
        for member in find_files(path, only):
            if member.path is None or member.path.suffix.lower() in COMPRESSION_SUFFIXES:
                return None
            with report_errors(member.where):
                total += member.path.stat().st_size
    return total


def detect_split(name: str) -> str:
    """Train, valid, test or "": the last such word of the base name, else of its folders from the inside out."""
    for part in reversed(PurePosixPath(name.lower()).parts):
        for word in reversed(re.findall("[a-z]+", part)):
            if word in SPLIT_WORDS:
                return SPLIT_WORDS[word]
    return ""


def _split_folder(folder: Path) -> str:
    """The folder's own name as a prefix if it says nothing but the split: someone may name `questions/training`."""
    name = folder.resolve().name
    return f"{name}/" if name.lower() in SPLIT_WORDS else ""


def _of_folder(folder: Path, wanted: Callable[[str], bool]) -> Iterator[SourceFile]:
    prefix = _split_folder(folder)
    for path in _walk(folder, frozenset({folder.resolve()})):
        name = prefix + path.relative_to(folder).as_posix()
        if wanted(strip_compression_suffix(name)):
            yield make_source_file(path, name)


def _walk(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Files in sorted order; a linked folder is followed unless it leads back up. Broken links fail when opened."""
    with report_errors(str(folder)):
        entries = sorted(os.listdir(folder))
    for path in (folder / entry for entry in entries if not entry.startswith(".")):
        if path.is_dir():
            if (target := path.resolve()) not in above:
                yield from _walk(path, above | {target})
        elif path.is_file() or not path.exists():
            yield path
