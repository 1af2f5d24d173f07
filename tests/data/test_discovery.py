from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.data import archives, source_file
from asreader.data.discovery import detect_split, find_files
from asreader.data.source_file import SourceFile, make_memory_file, split_records
from asreader.errors import InputError

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}
FILES = {"train/a.txt": b"one\ntwo\n", "valid/b.txt": b"drei\n"}


def tar(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def folder(path: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def in_memory(data: bytes) -> SourceFile:
    return make_memory_file("memory", "memory", data)


def texts(path: Path, only: str | None = None) -> dict[str, list[str]]:
    return {file.name: list(file.read_lines()) for file in find_files(path, only)}


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_file_is_decompressed_and_loses_the_suffix(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(PACKERS[suffix](b"one\ntwo"))
    assert texts(path) == {"a.txt": ["one", "two"]}


def test_content_decides_over_the_suffix(tmp_path: Path) -> None:
    (tmp_path / "unpacked.txt.gz").write_bytes(b"plain\n")
    (tmp_path / "packed.txt").write_bytes(gzip.compress(b"packed\n"))
    assert texts(tmp_path) == {"packed.txt": ["packed"], "unpacked.txt": ["plain"]}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize(
    "make",
    [
        lambda path, files: folder(path / "folder", files),
        lambda path, files: zipped(path / "a.zip", files),
        lambda path, files: tar(path / "a.tar", files, "w"),
        lambda path, files: tar(path / "a.tgz", files),
        lambda path, files: tar(path / "a.tar.xz", files, "w:xz"),
        lambda path, files: tar(path / "a.tar.bz2", files, "w:bz2"),
    ],
    ids=["folder", "zip", "tar", "tgz", "tar.xz", "tar.bz2"],
)
def test_every_container_gives_the_same_files(
    tmp_path: Path, make: Callable[[Path, dict[str, bytes]], Path], suffix: str
) -> None:
    path = make(tmp_path, {name + suffix: PACKERS[suffix](data) for name, data in FILES.items()})
    assert texts(path) == {"train/a.txt": ["one", "two"], "valid/b.txt": ["drei"]}
    assert list(texts(path, "*.txt" + suffix)) == ["train/a.txt", "valid/b.txt"]
    assert list(texts(path, "b.txt")) == list(texts(path, "valid/*")) == ["valid/b.txt"]
    first = next(find_files(path))
    assert first.where.startswith(str(path)) and first.where.endswith("train/a.txt" + suffix)
    assert (first.read_head(5), list(first.read_lines()), first.read_head(), list(first.read_lines())) == (
        "one\nt",
        ["one", "two"],
        "one\ntwo\n",
        ["one", "two"],
    )


@pytest.mark.parametrize("make", [zipped, tar], ids=["zip", "tar"])
def test_files_can_be_read_after_the_archive_was_streamed(
    tmp_path: Path, make: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    large = b"".join(b"%d\n" % number for number in range(500_000))
    path = make(tmp_path / ("a.zip" if make is zipped else "a.tgz"), {"large.txt": large, "small.txt": b"x\n"})
    files = list(find_files(path))
    for _ in range(2):
        assert [file.read_head(4) for file in files] == ["0\n1\n", "x\n"]
        assert [sum(1 for _ in file.read_lines()) for file in files] == [500_000, 1]
    for file in find_files(path):  # while it is streamed: a look, an interrupted reading, two readings at once
        assert file.read_head(1) in "0x"
        assert next(file.read_lines()) in "0x"
        with file.open() as first, file.open() as second:
            assert first.read() == second.read() == (large if file.name == "large.txt" else b"x\n")


def test_hidden_files_links_and_devices_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind in {
            "link": tarfile.SYMTYPE,
            "hard": tarfile.LNKTYPE,
            "pipe": tarfile.FIFOTYPE,
            "device": tarfile.CHRTYPE,
        }.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        for name in ("./.hidden", "./._a.txt", "../../up.txt", "/root.txt", "./a.txt"):
            archive.addfile(tarfile.TarInfo(name))
    assert list(texts(path)) == ["up.txt", "root.txt", "a.txt"]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zip_file:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        zip_file.writestr(link, "/etc/passwd")
        zip_file.writestr("__MACOSX/._a.txt", "x")
        zip_file.writestr("../..\\up.txt", "x")
    assert list(texts(tmp_path / "a.zip")) == ["up.txt"]
    folder(tmp_path / "folder", {".git/a.txt": b"", ".a.txt": b"", "b.txt": b""})
    assert list(texts(tmp_path / "folder")) == ["b.txt"]


def test_untrusted_names_cannot_control_a_terminal(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"a\x1b[31m\nb.txt": b"x"})
    assert list(texts(path)) == ["a?[31m?b.txt"]


def test_a_folder_that_links_to_itself_is_read_once(tmp_path: Path) -> None:
    folder(tmp_path, {"sub/a.txt": b""})
    (tmp_path / "sub" / "again").symlink_to(tmp_path, target_is_directory=True)
    assert list(texts(tmp_path)) == ["sub/a.txt"]
    (tmp_path / "broken.txt").symlink_to(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"broken\.txt: cannot be opened"):
        texts(tmp_path)


@given(st.lists(st.text(st.characters(exclude_characters="\r\n\ufeff", exclude_categories=["Cs"])), min_size=1))
def test_lines_end_at_newlines_only(lines: list[str]) -> None:
    for newline in ("\n", "\r\n"):
        data = "".join(line + newline for line in lines).encode()
        assert list(in_memory(data).read_lines()) == list(in_memory(b"\xef\xbb\xbf" + data).read_lines()) == lines
        if lines[-1]:
            assert list(in_memory(data.removesuffix(newline.encode())).read_lines()) == lines


def test_lines_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{number} größer\u2028\x0b\x0c\x85 als" for number in range(100)]
    for size in (1, 2, 3, 7, 64):
        monkeypatch.setattr(source_file, "CHUNK_BYTES", size)
        monkeypatch.setattr(archives, "CHUNK_BYTES", size)
        assert list(in_memory("\r\n".join(lines).encode()).read_lines()) == lines


def test_a_wrong_encoding_names_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    data = "fine\nalso fine\ncafé\n".encode("latin-1")
    for size in (1, 1 << 20):
        monkeypatch.setattr(source_file, "CHUNK_BYTES", size)
        monkeypatch.setattr(archives, "CHUNK_BYTES", size)
        with pytest.raises(InputError, match=r"^memory:3: byte 0xe9 is not UTF-8; .*iconv"):
            list(in_memory(data).read_lines())


def test_head_of_text_and_of_binary_files() -> None:
    assert in_memory("\ufeffä\r\nb".encode()).read_head() == "ä\nb"
    assert in_memory("aä".encode()).read_head(2) == "a"
    assert in_memory(b"a\0b").read_head() == in_memory(b"\xff\xfea").read_head() == in_memory(b"").read_head() == ""


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tgz", None),
        ("a.tar", None),
        ("a.tar.xz", None),
        ("a.zip", None),
        ("a.txt.gz", gzip.compress(bytes(range(256)) * 99, mtime=0)),
        ("a.txt.xz", lzma.compress(bytes(range(256)) * 99)),
        ("a.txt.bz2", bz2.compress(bytes(range(256)) * 99)),
    ],
)
def test_truncated_files_are_reported(tmp_path: Path, name: str, data: bytes | None) -> None:
    path = tmp_path / name
    files = {f"{number}.txt": bytes([65 + number % 26]) * 3000 for number in range(9)}
    if data is None:
        modes = {"a.tgz": "w:gz", "a.tar": "w", "a.tar.xz": "w:xz"}
        data = (zipped(path, files) if name == "a.zip" else tar(path, files, modes[name])).read_bytes()
    for cut in range(20, len(data) * 3 // 4, max(1, len(data) // 20)):
        path.write_bytes(data[:cut])
        with pytest.raises(InputError, match=r"a\.t|a\.zip") as error:
            for file in find_files(path):
                with file.open() as stream:
                    stream.read()
        assert "\n" not in str(error.value) and "again" in str(error.value)


def test_a_damaged_header_is_not_the_end_of_an_archive(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", {f"{number}.txt": b"x" for number in range(5)}, "w")
    data = bytearray(path.read_bytes())
    data[3 * 1024 + 5] ^= 255
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        list(find_files(path))


def test_missing_and_invalid_files_are_reported(tmp_path: Path) -> None:
    for name in ("none", "none.tgz", "none.zip"):
        with pytest.raises(InputError, match=f"{name}: cannot be opened: No such file"):
            list(find_files(tmp_path / name))
    (tmp_path / "text.zip").write_text("no archive")
    (tmp_path / "text.tgz").write_text("no archive")
    for name in ("text.zip", "text.tgz"):
        with pytest.raises(InputError, match=f"{name}: damaged"):
            list(find_files(tmp_path / name))
    with pytest.raises(InputError, match="neither a file nor a folder"):
        list(find_files(Path("/dev/null")))


def test_a_file_with_a_password_is_reported(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"a.txt": b"x"})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="password"):
        texts(path)


def test_a_decompression_bomb_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_file, "MAX_RECORD_CHARACTERS", 1 << 22)
    monkeypatch.setattr(source_file, "MAX_MEMORY_COPY_BYTES", 1 << 22)
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"x" * (1 << 26)))
    file = next(find_files(path))
    tracemalloc.start()
    with pytest.raises(InputError, match="line of more than 4 MB"):
        list(file.read_lines())
    with pytest.raises(InputError, match="larger than 4 MB"):
        file.read_bytes()
    endless = ("x" * 1000 for _ in range(1 << 16))
    assert max(len(record) for _, record in split_records(endless, lambda line, record: False)) < 5000
    assert tracemalloc.get_traced_memory()[1] < 1 << 25
    tracemalloc.stop()


def test_a_huge_tar_header_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a.txt")
    info.type, info.size = tarfile.XHDTYPE, 1 << 33
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 16))
    with pytest.raises(InputError, match="huge header"):
        list(find_files(tmp_path / "a.tar"))


def test_long_and_foreign_names_in_a_tar(tmp_path: Path) -> None:
    for number, form in enumerate((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)):
        with tarfile.open(tmp_path / f"{number}.tgz", "w:gz", format=form) as archive:
            info = tarfile.TarInfo("folder/" * 40 + "größe.txt")
            info.size = 1
            archive.addfile(info, io.BytesIO(b"x"))
        (file,) = find_files(tmp_path / f"{number}.tgz")
        assert file.name == "folder/" * 40 + "größe.txt" and list(file.read_lines()) == ["x"]


@pytest.mark.parametrize("suffix", PACKERS)
def test_siblings(tmp_path: Path, suffix: str) -> None:
    files = {"f/a.doc": b"doc", "f/a.key" + suffix: PACKERS[suffix](b"key"), "g/b.key": b"other"}
    for path in (
        folder(tmp_path / "folder", files),
        zipped(tmp_path / "a.zip", files),
        tar(tmp_path / "a.tgz", files),
        tmp_path / "folder" / "f" / "a.doc",
    ):
        file = next(find_files(path))
        sibling = file.find_sibling("a.key")
        assert sibling is not None and list(sibling.read_lines()) == ["key"] and sibling.name.endswith("a.key")
        assert list(sibling.read_lines()) == ["key"]
        assert file.find_sibling("b.key") is None
        back = sibling.find_sibling("a.doc")
        assert back is not None and list(back.read_lines()) == ["doc"] == list(file.read_lines())


def test_seekable(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"abc")
    (tmp_path / "b.bin.gz").write_bytes(gzip.compress(b"abc"))
    for file in find_files(tmp_path):
        with file.open_seekable() as stream:
            stream.seek(1)
            assert stream.read() == b"bc"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cbtest_NE_valid_2000ex.txt", "valid"),
        ("CBTest/data/cbtest_CN_test_2500ex.txt", "test"),
        ("CBTest/data/cbtest_CN_train.txt", "train"),
        ("CBTest/README.txt", ""),
        ("cnn/questions/training/00ab.question", "train"),
        ("cnn/questions/validation/00ab.question", "valid"),
        ("cnn/questions/test/00ab.question", "test"),
        ("en-valid-10k/qa1_train.txt", "train"),
        ("lambada_development_plain_text", "valid"),
        ("NE/validation-00000-of-00001.parquet", "valid"),
        ("dev/train/x.txt", "train"),
        ("cloze.valid.doc_query", "valid"),
        ("DEV2.jsonl", "valid"),
        ("constraints/latest/contest.txt", ""),
    ],
)
def test_split(name: str, expected: str) -> None:
    assert detect_split(name) == expected


def test_a_folder_named_after_a_split_gives_the_split_when_it_is_data_itself(tmp_path: Path) -> None:
    folder(tmp_path / "training", {"a.question": b"x"})
    folder(tmp_path / "test_of_mine", {"a.question": b"x"})
    (named,) = find_files(tmp_path / "training")
    (single,) = find_files(tmp_path / "training" / "a.question")
    assert detect_split(named.name) == detect_split(single.name) == "train"
    assert [detect_split(file.name) for file in find_files(tmp_path / "test_of_mine")] == [""]
