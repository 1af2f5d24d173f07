"""tar and zip archives -> Members, as streams; nothing is extracted, no inner path is trusted."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from asreader.data.source_file import (
    CHUNK_BYTES,
    COMPRESSION_SUFFIXES,
    SourceFile,
    make_printable,
    make_source_file,
    open_stream,
    report_errors,
    strip_compression_suffix,
)
from asreader.errors import InputError


def _hidden(inner: str) -> bool:
    return any(part.startswith(".") for part in inner.split("/"))


def _inner(name: str) -> str:
    """A name inside an archive, for reading only: no root, no way up."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return make_printable("/".join(part for part in parts if part not in ("/", "//", "..")))


def _inside(archive: Path, name: str) -> str:
    """How messages name a file in an archive."""
    return f"{make_printable(str(archive))}!{name}"


def _beside(name: str, other: str) -> set[str]:
    """The names that `other` may have next to `name` inside an archive."""
    return {str(PurePosixPath(name).with_name(other + suffix)) for suffix in ("", *COMPRESSION_SUFFIXES)}


def iterate_zip(path: Path, wanted: Callable[[str], bool]) -> Iterator[SourceFile]:
    # The archive is closed with its last Member, so that Members outlive this loop.
    with report_errors(str(path)):
        archive = zipfile.ZipFile(path)
    for info in archive.infolist():
        name = _inner(info.filename)
        link = stat.S_ISLNK(info.external_attr >> 16)
        if name and not info.is_dir() and not link and not _hidden(name) and wanted(strip_compression_suffix(name)):
            yield _zipped(path, archive, info)


def _zipped(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> SourceFile:
    name = _inner(info.filename)
    where = _inside(path, name)

    def stored() -> io.BufferedReader:
        if info.flag_bits & 1:
            raise InputError(f"{where}: protected by a password; unpack it first")
        source = archive.open(info)
        return open_stream(where, source.read, source.close)

    def beside(other: str) -> SourceFile | None:
        names = _beside(name, other)
        found = next((info for info in archive.infolist() if _inner(info.filename) in names), None)
        return None if found is None else _zipped(path, archive, found)

    return SourceFile(where, strip_compression_suffix(name), stored, beside)


class _Header(tarfile.TarInfo):
    """A header that is neither whole nor the end mark is damage; tarfile would take it for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf == bytes(tarfile.BLOCKSIZE):
                raise
            raise tarfile.ReadError(f"no whole archive: {error}") from error
        if header.size > CHUNK_BYTES and not header.isreg():
            raise tarfile.ReadError("no sound archive: a huge header")  # tarfile reads headers into memory
        return header


@contextmanager
def _tar(path: Path) -> Iterator[tarfile.TarFile]:
    """The archive as a stream: one pass, no seeking, so that compressed ones take linear time."""
    with (
        make_source_file(path, path.name).open() as stream,
        report_errors(make_printable(str(path))),
        tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as tar,
    ):
        yield tar


def _headers(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Plain files only: links, devices and folders are passed over."""
    while (info := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]  # it would keep 380,000 headers
        if info.isreg():
            yield info


def iterate_tar(path: Path, wanted: Callable[[str], bool]) -> Iterator[SourceFile]:
    with _tar(path) as tar:
        for info in _headers(tar):
            name = _inner(info.name)
            if name and not _hidden(name) and wanted(strip_compression_suffix(name)):
                passing = _Passing(path, info, _inside(path, name), tar)
                yield SourceFile(
                    passing.where, strip_compression_suffix(name), passing.open, partial(_tar_sibling, path, name)
                )
                passing.live = None


def _tar_sibling(path: Path, name: str, other: str) -> SourceFile | None:
    names = _beside(name, other)
    with _tar(path) as tar:
        info = next((info for info in _headers(tar) if _inner(info.name) in names), None)
    if info is None:
        return None
    found = _inner(info.name)
    where = _inside(path, found)
    stored = partial(_reopened, path, info.offset, where)
    return SourceFile(where, strip_compression_suffix(found), stored, partial(_tar_sibling, path, found))


def _reopened(path: Path, offset: int, where: str) -> io.BufferedReader:
    """A second look at a tar member that has passed: the archive is streamed again up to its header."""
    with ExitStack() as opened:
        tar = opened.enter_context(_tar(path))
        for info in _headers(tar):
            if info.offset == offset and (source := tar.extractfile(info)):
                return open_stream(where, source.read, opened.pop_all().close)
    raise InputError(f"{where}: no longer there; the archive changed while it was read")


class _Passing:
    """A tar member while its archive streams by: its start is kept, the rest can be read once and then by reopening."""

    def __init__(self, path: Path, info: tarfile.TarInfo, where: str, tar: tarfile.TarFile) -> None:
        self.path, self.offset, self.size, self.where = path, info.offset, info.size, where
        with report_errors(where):
            self.live: IO[bytes] | None = tar.extractfile(info)
            self.start = self.live.read(CHUNK_BYTES) if self.live else b""

    def open(self) -> io.BufferedReader:
        start, opened = io.BytesIO(self.start), ExitStack()
        rest: IO[bytes] | None = None

        def read(size: int) -> bytes:
            nonlocal rest
            if (data := start.read(size)) or len(self.start) == self.size:
                return data
            rest = rest or opened.enter_context(self.rest())
            return rest.read(size)

        return open_stream(self.where, read, opened.close)

    def rest(self) -> IO[bytes]:
        """What follows the start: from the archive as it passes, for the first who asks."""
        live, self.live = self.live, None
        if live is None:
            live = _reopened(self.path, self.offset, self.where)
            live.read(len(self.start))
        return live
