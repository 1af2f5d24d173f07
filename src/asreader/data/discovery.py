"""DATA path -> SourceFiles: the files of a folder or archive, and the split that their names imply."""

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

    def is_wanted(name: str) -> bool:
        pattern = strip_compression_suffix(only or "*")
        return fnmatchcase(name, pattern) or fnmatchcase(PurePosixPath(name).name, pattern)

    with report_errors(str(path)):
        mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        yield from _iterate_folder(path, is_wanted)
    elif not stat.S_ISREG(mode):
        raise InputError(f"{path}: neither a file nor a folder")
    elif path.name.lower().endswith(TAR_SUFFIXES):
        yield from iterate_tar(path, is_wanted)
    elif path.name.lower().endswith(".zip"):
        yield from iterate_zip(path, is_wanted)
    elif is_wanted(strip_compression_suffix(path.name)):
        yield make_source_file(path, _split_prefix(path.parent) + path.name)


def is_archive(name: str) -> bool:
    """Whether `find_files` looks into a file of this name (its compression suffix may already be stripped)."""
    return name.lower().endswith((*TAR_SUFFIXES, ".zip"))


def count_plain_bytes(paths: Iterable[Path], only: str | None = None) -> int | None:
    """Total size of all files of DATA, for a progress bar; None if any is compressed or in an archive."""
    total = 0
    for path in paths:
        if is_archive(path.name):
            return None
        for file in find_files(path, only):
            if file.path is None or file.path.suffix.lower() in COMPRESSION_SUFFIXES:
                return None
            with report_errors(file.where):
                total += file.path.stat().st_size
    return total


def detect_split(name: str) -> str:
    """Train, valid, test or "": the last such word of the base name, else of its folders from the innermost out."""
    for part in reversed(PurePosixPath(name.lower()).parts):
        for word in reversed(re.findall("[a-z]+", part)):
            if word in SPLIT_WORDS:
                return SPLIT_WORDS[word]
    return ""


def _split_prefix(folder: Path) -> str:
    """The folder's name as a prefix if it is a split word alone: DATA may be a path such as `questions/training`."""
    name = folder.resolve().name
    return f"{name}/" if name.lower() in SPLIT_WORDS else ""


def _iterate_folder(folder: Path, is_wanted: Callable[[str], bool]) -> Iterator[SourceFile]:
    prefix = _split_prefix(folder)
    for path in _walk_folder(folder, frozenset({folder.resolve()})):
        name = prefix + path.relative_to(folder).as_posix()
        if is_wanted(strip_compression_suffix(name)):
            yield make_source_file(path, name)


def _walk_folder(folder: Path, ancestors: frozenset[Path]) -> Iterator[Path]:
    """Files in sorted order; a linked folder is followed unless it is an ancestor. Broken links fail when opened."""
    with report_errors(str(folder)):
        entries = sorted(os.listdir(folder))
    for path in (folder / entry for entry in entries if not entry.startswith(".")):
        if path.is_dir():
            if (target := path.resolve()) not in ancestors:
                yield from _walk_folder(path, ancestors | {target})
        elif path.is_file() or not path.exists():
            yield path
