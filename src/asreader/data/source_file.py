"""one file of DATA (plain, compressed or in an archive) -> its bytes or lines; every error is one line."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from asreader.errors import Fault, InputError

CHUNK_BYTES = 1 << 20
MAX_RECORD_CHARACTERS = 1 << 26
"""Limit of one line or one question (64 MB): a decompression bomb must not fill the memory."""
MAX_MEMORY_COPY_BYTES = 1 << 30
"""Limit of a file that can only be read as a whole (1 GB)."""

COMPRESSION_SUFFIXES = (".gz", ".xz", ".bz2")
# Content decides, not the suffix: browsers decompress downloads and keep the name.
DECOMPRESSORS: dict[re.Pattern[bytes], Callable[[BinaryIO], io.BufferedIOBase]] = {
    re.compile(rb"\x1f\x8b\x08"): lambda stored: gzip.GzipFile(fileobj=stored),
    re.compile(rb"\xfd7zXZ\x00"): lzma.LZMAFile,
    re.compile(rb"BZh[1-9]1AY&SY"): bz2.BZ2File,
}
DAMAGE_ERRORS = (
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    NotImplementedError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
)


@contextmanager
def report_errors(where: str) -> Iterator[None]:
    """Turn errors of the file system or a decompressor into a one-line InputError that names the file."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise InputError(f"{where}: cannot be opened: {error.strerror}") from error
    except DAMAGE_ERRORS as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{where}: damaged or incomplete ({reason}); copy or download it again") from error


@dataclass(frozen=True)
class SourceFile:
    """One file of DATA, in a folder or an archive; it can be opened any number of times.

    `where` names the file in messages. `name` is the path inside the folder or archive without a compression suffix,
    for detection, split and ids. `find_sibling(name)` is the file of that name in the same folder, compressed or not.
    """

    where: str
    name: str
    open_stored: Callable[[], io.BufferedReader] = field(repr=False)
    find_sibling: Callable[[str], SourceFile | None] = field(repr=False)
    path: Path | None = None
    """The path if it is not in an archive; another process may then open it too."""

    @property
    def stem(self) -> str:
        """The file name without folder and suffix: the start of ids."""
        return PurePosixPath(self.name).stem

    def open(self) -> BinaryIO:
        """Open the decompressed bytes; reading raises InputError if the file is truncated."""
        with report_errors(self.where):
            stored = self.open_stored()
            start = stored.peek(16)
        decompress = next((opener for magic, opener in DECOMPRESSORS.items() if magic.match(start)), None)
        return open_stream(self.where, decompress(stored).read, stored.close) if decompress else stored

    def read_lines(self) -> Iterator[str]:
        r"""The text, line by line. Only \n and \r\n end a line: str.splitlines also splits at U+2028 and others."""
        number, rest = 0, b""
        with report_errors(self.where), self.open() as stream:
            while chunk := stream.read(CHUNK_BYTES):
                block, newline, rest = (rest + chunk).rpartition(b"\n")
                if newline:
                    lines = self._decode_block(block, number).split("\n")
                    number += len(lines)
                    yield from (line.removesuffix("\r") for line in lines) if b"\r" in block else lines
                if len(rest) > MAX_RECORD_CHARACTERS:
                    raise InputError(f"{self.where}:{number + 1}: a line of more than {MAX_RECORD_CHARACTERS >> 20} MB")
            if rest:
                yield self._decode_block(rest, number)

    def _decode_block(self, block: bytes, lines_before: int) -> str:
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            line = lines_before + block.count(b"\n", 0, error.start) + 1
            reason = f"byte 0x{block[error.start]:02x} is not UTF-8; convert the file, for example with iconv -t utf-8"
            raise InputError(f"{self.where}:{line}: {reason}") from error
        return text if lines_before else text.removeprefix("\ufeff")

    def read_head(self, size: int = 1 << 16) -> str:
        """The first `size` bytes as text; "" for a binary file or a wrong encoding."""
        with report_errors(self.where), self.open() as stream:
            data = stream.read(size)
        if b"\0" in data:
            return ""
        try:
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(data, final=len(data) < size)
        except UnicodeDecodeError:
            return ""
        return text.replace("\r\n", "\n")

    def read_bytes(self) -> bytes:
        """All bytes at once, for formats that cannot be streamed; MAX_MEMORY_COPY_BYTES at most."""
        copy = io.BytesIO()
        with report_errors(self.where), self.open() as stream:
            while chunk := stream.read(CHUNK_BYTES):
                copy.write(chunk)
                if copy.tell() > MAX_MEMORY_COPY_BYTES:
                    raise InputError(f"{self.where}: larger than {MAX_MEMORY_COPY_BYTES >> 20} MB; unpack or split it")
        return copy.getvalue()

    def open_seekable(self) -> BinaryIO:
        """Open the bytes for random access: the file itself if it is plain, otherwise a copy in memory."""
        stream = self.open()
        if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
            return stream
        stream.close()
        return io.BytesIO(self.read_bytes())

    def make_fault(self, line: int, reason: str) -> Fault:
        """The Fault that a format yields in place of a question that it cannot read."""
        return Fault(self.where, line, reason)


def split_records(
    lines: Iterable[str], starts_record: Callable[[str, list[str]], bool]
) -> Iterator[tuple[int, list[str]]]:
    """Lines -> (number of the first line, lines) of each record.

    `starts_record(line, record so far)` is true for the first line of the next record. A record without an end is cut
    at MAX_RECORD_CHARACTERS; the pieces are not valid questions and become faults.
    """
    record: list[str] = []
    first, size = 1, 0
    for number, line in enumerate(lines, 1):
        if record and (size > MAX_RECORD_CHARACTERS or starts_record(line, record)):
            yield first, record
            record, size = [], 0
        if not record:
            first = number
        record.append(line)
        size += len(line) + 8
    if record:
        yield first, record


class _Stream(io.RawIOBase):
    """Bytes from `read` with one-line errors; closing it also calls `close_source`."""

    def __init__(self, where: str, read: Callable[[int], bytes], close_source: Callable[[], None]) -> None:
        self.where = where
        self.read_source = read
        self.close_source = close_source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with report_errors(self.where):
            data = self.read_source(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self.close_source()
        super().close()


def open_stream(where: str, read: Callable[[int], bytes], close_source: Callable[[], None]) -> io.BufferedReader:
    """A buffered stream over a `read(size)` function."""
    return io.BufferedReader(_Stream(where, read, close_source), 1 << 16)


def strip_compression_suffix(name: str) -> str:
    """The name without a compression suffix."""
    return name[: name.rindex(".")] if name.lower().endswith(COMPRESSION_SUFFIXES) else name


def make_printable(name: str) -> str:
    """Replace control characters: file names are untrusted and are printed to terminals."""
    return name if name.isprintable() else "".join(char if char.isprintable() else "?" for char in name)


def make_source_file(path: Path, name: str) -> SourceFile:
    """The SourceFile of a path on disk; `name` is its path inside DATA."""

    def find_sibling(sibling_name: str) -> SourceFile | None:
        paths = (path.with_name(sibling_name + suffix) for suffix in ("", *COMPRESSION_SUFFIXES))
        sibling = next((candidate for candidate in paths if candidate.is_file()), None)
        return None if sibling is None else make_source_file(sibling, str(PurePosixPath(name).with_name(sibling.name)))

    inner_name = make_printable(strip_compression_suffix(name))
    return SourceFile(make_printable(str(path)), inner_name, lambda: path.open("rb"), find_sibling, path)


def make_memory_file(where: str, name: str, content: bytes) -> SourceFile:
    """The SourceFile of bytes in memory."""
    return SourceFile(where, name, lambda: io.BufferedReader(io.BytesIO(content)), lambda _: None)
