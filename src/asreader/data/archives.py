"""tar and zip archives -> SourceFiles, streamed: nothing is extracted to disk, inner paths are untrusted."""

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


def _is_hidden(inner_name: str) -> bool:
    return any(part.startswith(".") for part in inner_name.split("/"))


def _clean_inner_name(name: str) -> str:
    """A name inside an archive without root and parent folders."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return make_printable("/".join(part for part in parts if part not in ("/", "//", "..")))


def _format_location(archive: Path, inner_name: str) -> str:
    """The name of an archived file in messages."""
    return f"{make_printable(str(archive))}!{inner_name}"


def _list_sibling_names(name: str, sibling_name: str) -> set[str]:
    """The inner names that a sibling of `name` may have: plain or compressed."""
    return {str(PurePosixPath(name).with_name(sibling_name + suffix)) for suffix in ("", *COMPRESSION_SUFFIXES)}


def iterate_zip(path: Path, is_wanted: Callable[[str], bool]) -> Iterator[SourceFile]:
    """The files of a zip archive whose names are wanted."""
    # The archive is closed with its last SourceFile, so SourceFiles can be used after this loop.
    with report_errors(str(path)):
        archive = zipfile.ZipFile(path)
    for info in archive.infolist():
        name = _clean_inner_name(info.filename)
        is_file = not info.is_dir() and not stat.S_ISLNK(info.external_attr >> 16)
        if name and is_file and not _is_hidden(name) and is_wanted(strip_compression_suffix(name)):
            yield _make_zip_file(path, archive, info)


def _make_zip_file(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> SourceFile:
    name = _clean_inner_name(info.filename)
    where = _format_location(path, name)

    def open_stored() -> io.BufferedReader:
        if info.flag_bits & 1:
            raise InputError(f"{where}: protected by a password; unpack it first")
        source = archive.open(info)
        return open_stream(where, source.read, source.close)

    def find_sibling(sibling_name: str) -> SourceFile | None:
        names = _list_sibling_names(name, sibling_name)
        sibling = next((info for info in archive.infolist() if _clean_inner_name(info.filename) in names), None)
        return None if sibling is None else _make_zip_file(path, archive, sibling)

    return SourceFile(where, strip_compression_suffix(name), open_stored, find_sibling)


class _Header(tarfile.TarInfo):
    """Refuses a damaged header; tarfile would take it for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf == bytes(tarfile.BLOCKSIZE):
                raise
            raise tarfile.ReadError(f"not a complete archive: {error}") from error
        if header.size > CHUNK_BYTES and not header.isreg():
            raise tarfile.ReadError("not a valid archive: a huge header")  # tarfile reads headers into memory
        return header


@contextmanager
def _open_tar(path: Path) -> Iterator[tarfile.TarFile]:
    """Open an archive as a stream: one pass without seeking, so compressed archives take linear time."""
    with (
        make_source_file(path, path.name).open() as stream,
        report_errors(make_printable(str(path))),
        tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as tar,
    ):
        yield tar


def _iterate_headers(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Headers of plain files; links, devices and folders are skipped."""
    while (info := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]  # it would keep 380,000 headers in memory
        if info.isreg():
            yield info


def iterate_tar(path: Path, is_wanted: Callable[[str], bool]) -> Iterator[SourceFile]:
    """The files of a tar archive whose names are wanted."""
    with _open_tar(path) as tar:
        for info in _iterate_headers(tar):
            name = _clean_inner_name(info.name)
            plain_name = strip_compression_suffix(name)
            if name and not _is_hidden(name) and is_wanted(plain_name):
                current = _CurrentTarFile(path, info, _format_location(path, name), tar)
                yield SourceFile(current.where, plain_name, current.open, partial(_find_tar_sibling, path, name))
                current.live = None


def _find_tar_sibling(path: Path, name: str, sibling_name: str) -> SourceFile | None:
    names = _list_sibling_names(name, sibling_name)
    with _open_tar(path) as tar:
        info = next((info for info in _iterate_headers(tar) if _clean_inner_name(info.name) in names), None)
    if info is None:
        return None
    inner_name = _clean_inner_name(info.name)
    where = _format_location(path, inner_name)
    open_stored = partial(_reopen_tar_file, path, info.offset, where)
    find_sibling = partial(_find_tar_sibling, path, inner_name)
    return SourceFile(where, strip_compression_suffix(inner_name), open_stored, find_sibling)


def _reopen_tar_file(path: Path, offset: int, where: str) -> io.BufferedReader:
    """Open a file that the stream has passed: the archive is streamed again up to the header at `offset`."""
    with ExitStack() as resources:
        tar = resources.enter_context(_open_tar(path))
        for info in _iterate_headers(tar):
            if info.offset == offset and (source := tar.extractfile(info)):
                return open_stream(where, source.read, resources.pop_all().close)
    raise InputError(f"{where}: no longer there; the archive changed while it was read")


class _CurrentTarFile:
    """The tar file at the position of the stream: its start is buffered, its rest is read once, then by reopening."""

    def __init__(self, path: Path, info: tarfile.TarInfo, where: str, tar: tarfile.TarFile) -> None:
        self.path = path
        self.offset = info.offset
        self.size = info.size
        self.where = where
        with report_errors(where):
            self.live: IO[bytes] | None = tar.extractfile(info)
            self.start = self.live.read(CHUNK_BYTES) if self.live else b""

    def open(self) -> io.BufferedReader:
        """Open the bytes from the start."""
        start, resources = io.BytesIO(self.start), ExitStack()
        rest: IO[bytes] | None = None

        def read(size: int) -> bytes:
            nonlocal rest
            if (data := start.read(size)) or len(self.start) == self.size:
                return data
            rest = rest or resources.enter_context(self._open_rest())
            return rest.read(size)

        return open_stream(self.where, read, resources.close)

    def _open_rest(self) -> IO[bytes]:
        """The bytes after the buffered start: from the live stream for the first caller, else by reopening."""
        live, self.live = self.live, None
        if live is None:
            live = _reopen_tar_file(self.path, self.offset, self.where)
            live.read(len(self.start))
        return live
