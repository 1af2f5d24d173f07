"""one file of DATA, wherever it lies -> its bytes or lines, with one clear line for whatever is wrong with it."""

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
"""Characters of one line or one question (64 MB): what unpacks without end must not fill the memory."""
MAX_MEMORY_COPY_BYTES = 1 << 30
"""Bytes of a file that can only be read whole (1 GB)."""

COMPRESSION_SUFFIXES = (".gz", ".xz", ".bz2")
# Content decides, not the suffix: browsers unpack downloads and leave the name as it was.
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
    """What the system or an unpacker raises -> one InputError line that names the file."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise InputError(f"{where}: cannot be opened: {error.strerror}") from error
    except DAMAGE_ERRORS as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{where}: damaged or incomplete ({reason}); copy or download it again") from error


@dataclass(frozen=True)
class SourceFile:
    """One file of DATA, wherever it lies: named for messages, and opened any number of times.

    `name` is the path inside the folder or archive without a compression suffix, for detection, split and ids.
    """

    where: str
    name: str
    open_stored: Callable[[], io.BufferedReader] = field(repr=False)
    beside: Callable[[str], SourceFile | None] = field(repr=False)
    path: Path | None = None
    """Where it lies if it is a file of its own, which another process may open too."""

    @property
    def stem(self) -> str:
        """The file's name without folder and suffix: what ids start with."""
        return PurePosixPath(self.name).stem

    def open(self) -> BinaryIO:
        """The bytes, unpacked; reading them raises InputError where the file breaks off."""
        with report_errors(self.where):
            stored = self.open_stored()
            start = stored.peek(16)
        unpack = next((unpack for magic, unpack in DECOMPRESSORS.items() if magic.match(start)), None)
        return open_stream(self.where, unpack(stored).read, stored.close) if unpack else stored

    def read_lines(self) -> Iterator[str]:
        r"""The text, line by line. Only \n and \r\n end a line: str.splitlines would also cut at U+2028 and others."""
        number, rest = 0, b""
        with report_errors(self.where), self.open() as stream:
            while chunk := stream.read(CHUNK_BYTES):
                block, newline, rest = (rest + chunk).rpartition(b"\n")
                if newline:
                    lines = self._decoded(block, number).split("\n")
                    number += len(lines)
                    yield from (line.removesuffix("\r") for line in lines) if b"\r" in block else lines
                if len(rest) > MAX_RECORD_CHARACTERS:
                    raise InputError(f"{self.where}:{number + 1}: a line of more than {MAX_RECORD_CHARACTERS >> 20} MB")
            if rest:
                yield self._decoded(rest, number)

    def _decoded(self, block: bytes, before: int) -> str:
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            line = before + block.count(b"\n", 0, error.start) + 1
            what = f"byte 0x{block[error.start]:02x} is not UTF-8"
            raise InputError(f"{self.where}:{line}: {what}; convert the file, as with iconv -t utf-8") from error
        return text if before else text.removeprefix("\ufeff")

    def read_head(self, size: int = 1 << 16) -> str:
        """The start of the text; "" for a binary file or a wrong encoding."""
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
        """All bytes at once, for what cannot be streamed, up to a limit."""
        copy = io.BytesIO()
        with report_errors(self.where), self.open() as stream:
            while chunk := stream.read(CHUNK_BYTES):
                copy.write(chunk)
                if copy.tell() > MAX_MEMORY_COPY_BYTES:
                    raise InputError(f"{self.where}: larger than {MAX_MEMORY_COPY_BYTES >> 20} MB; unpack or split it")
        return copy.getvalue()

    def open_seekable(self) -> BinaryIO:
        """The bytes with random access: the file where it lies plainly on disk, otherwise a copy in memory."""
        stream = self.open()
        if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
            return stream
        stream.close()
        return io.BytesIO(self.read_bytes())

    def sibling(self, name: str) -> SourceFile | None:
        """The file of that name in the same folder of the same DATA, compressed or not."""
        return self.beside(name)

    def make_fault(self, line: int, reason: str) -> Fault:
        """What a format yields in place of a question that it cannot read."""
        return Fault(self.where, line, reason)


def split_records(lines: Iterable[str], begins: Callable[[str, list[str]], bool]) -> Iterator[tuple[int, list[str]]]:
    """Lines -> (number of the first line, lines) of each record; `begins(line, record so far)` says where one starts.

    A record that never ends is cut at LONGEST_RECORD; its pieces are then no questions and become faults.
    """
    record: list[str] = []
    first, size = 1, 0
    for number, line in enumerate(lines, 1):
        if record and (size > MAX_RECORD_CHARACTERS or begins(line, record)):
            yield first, record
            record, size = [], 0
        if not record:
            first = number
        record.append(line)
        size += len(line) + 8
    if record:
        yield first, record


class _Stream(io.RawIOBase):
    """Bytes from `read`, with one line for whatever is wrong with them; closes what lies under it as well."""

    def __init__(self, where: str, read: Callable[[int], bytes], under: Callable[[], None]) -> None:
        self.where, self.source, self.under = where, read, under

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with report_errors(self.where):
            data = self.source(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self.under()
        super().close()


def open_stream(where: str, read: Callable[[int], bytes], under: Callable[[], None]) -> io.BufferedReader:
    return io.BufferedReader(_Stream(where, read, under), 1 << 16)


def strip_compression_suffix(name: str) -> str:
    """The name without a compression suffix."""
    return name[: name.rindex(".")] if name.lower().endswith(COMPRESSION_SUFFIXES) else name


def make_printable(name: str) -> str:
    """Names come from strangers and go to terminals: no control characters, no broken encodings."""
    return name if name.isprintable() else "".join(char if char.isprintable() else "?" for char in name)


def make_source_file(path: Path, name: str) -> SourceFile:
    def beside(other: str) -> SourceFile | None:
        found = (path.with_name(other + suffix) for suffix in ("", *COMPRESSION_SUFFIXES))
        there = next((candidate for candidate in found if candidate.is_file()), None)
        return None if there is None else make_source_file(there, str(PurePosixPath(name).with_name(there.name)))

    return SourceFile(
        make_printable(str(path)), make_printable(strip_compression_suffix(name)), lambda: path.open("rb"), beside, path
    )


def make_memory_file(where: str, name: str, content: bytes) -> SourceFile:
    """A file whose bytes are here already."""
    return SourceFile(where, name, lambda: io.BufferedReader(io.BytesIO(content)), lambda _: None)
