from __future__ import annotations

import io
import json
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.data.dataset import Part, ReadReport, read_examples
from asreader.errors import InputError

SHARED = Path(__file__).parents[3] / "shared" / "data"
GOOD = "1 Anna saw Ben .\n2 XXXXX saw Ben .\tAnna\t\tAnna|Ben\n\n"
BAD = "1 Anna saw Ben .\n2 Nobody saw Ben .\tAnna\t\tAnna|Ben\n\n"

IDS = ["", "a", "b", "a:1", "b:1", "a~2:1", "a~2", "b/a", "b/a:1"]


def row(name: str | None = None) -> str:
    return (
        json.dumps({"document": ["Anna", "slept"], "question": ["XXXXX", "slept"]} | ({"id": name} if name else {}))
        + "\n"
    )


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder


def ids(path: Path, **options: object) -> list[str]:
    return [f"{part.label}/{example.id}" for part, example in read_examples(path, **options)]  # type: ignore[arg-type]


def test_parts_come_from_group_and_split(tmp_path: Path) -> None:
    write(tmp_path / "d", {"cbtest_NE_train.txt": GOOD * 2, "cbtest_CN_valid_2000ex.txt": GOOD, "mine.txt": GOOD})
    parts = [part for part, _ in read_examples(tmp_path / "d")]
    assert parts == [Part("CN", "valid"), Part("NE", "train"), Part("NE", "train"), Part("", "")]
    assert [part.label for part in parts] == ["CN-valid", "NE-train", "NE-train", ""]


def test_files_without_questions_are_named(tmp_path: Path) -> None:
    notes = {f"note{number}.txt": "just words\n" for number in range(6)}
    write(tmp_path / "d", {"README": "Read me.", "q.txt": GOOD, **notes})
    (tmp_path / "d" / "picture.png").write_bytes(b"\x89PNG\0")
    with tarfile.open(tmp_path / "d" / "more.tgz", "w:gz"):
        pass
    report = ReadReport()
    assert len(list(read_examples(tmp_path / "d", report=report))) == report.examples == 1
    assert report.ignored == 9
    (line,) = report.format_lines()
    assert line.startswith(
        "ignored 9 files without questions: README, more.tgz (an archive: give its own path), note0.txt"
    )
    assert line.endswith(", ...")
    report = ReadReport()
    list(read_examples(tmp_path / "d", only="[pq]*", report=report))
    assert report.first_ignored == ["picture.png (empty or not UTF-8 text)"]


def test_the_first_bad_question_is_an_error_unless_bad_ones_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path, {"q.txt": GOOD + BAD + GOOD + BAD}) / "q.txt"
    found = read_examples(path)
    assert next(found)[1].id == "q:1"
    with pytest.raises(InputError, match=r"q\.txt:5: the question has no XXXXX; .*--skip-bad$"):
        next(found)
    report = ReadReport()
    assert ids(path, skip_bad=True, report=report) == ["/q:1", "/q:3"]
    assert (report.examples, report.faults, [fault.line for fault in report.first_faults]) == (2, 2, [5, 11])
    assert report.format_lines() == [f"skipped 2 bad questions; the first is {path}:5: the question has no XXXXX"]


def test_ids_differ_inside_a_part_and_do_not_depend_on_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "d", {"a/q.txt": GOOD * 2, "b/q.txt": GOOD * 2, "train/q.txt": GOOD})
    assert ids(tmp_path / "d") == ["/q:1", "/q:2", "/q~2:1", "/q~2:2", "train/q:1"]
    assert ids(tmp_path / "d" / "b" / "q.txt") == ["/q:1", "/q:2"]


def test_ids_of_the_data_are_kept_unless_another_file_has_them(tmp_path: Path) -> None:
    files = {"a.jsonl": row("1") + row("2"), "b.jsonl": row("2") + row() + row("3"), "c/b.jsonl": row("3") + row()}
    write(tmp_path / "d", files)
    assert ids(tmp_path / "d") == ["/1", "/2", "/b/2", "/b:2", "/3", "/b/3", "/b~2:2"]
    assert ids(tmp_path / "d" / "b.jsonl") == ["/2", "/b:2", "/3"]


@given(
    st.dictionaries(
        st.sampled_from(["a.jsonl", "b.jsonl", "a.txt", "c/a.txt", "c/b.jsonl", "d/a.jsonl"]),
        st.lists(st.sampled_from(IDS), min_size=1, max_size=5, unique=True),
        min_size=1,
    )
)
def test_ids_are_always_unique(files: dict[str, list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        texts = {name: GOOD if name.endswith("txt") else "".join(map(row, names)) for name, names in files.items()}
        found = ids(write(Path(folder), texts), skip_bad=True)
        assert len(set(found)) == len(found)


def test_format_overrides_detection(tmp_path: Path) -> None:
    write(tmp_path / "d", {"passages.txt": "anna had a cat . ben liked anna\n", "README.md": "", "q.txt": GOOD})
    with pytest.raises(InputError, match=r"passages.txt: no question found in any known format.*--format: .*lambada"):
        list(read_examples(tmp_path / "d" / "passages.txt"))
    assert ids(tmp_path / "d" / "passages.txt", format="lambada") == ["/passages:1"]
    with pytest.raises(InputError, match="did you mean 'lambada'"):
        list(read_examples(tmp_path / "d" / "passages.txt", format="lambda"))


def test_a_format_for_a_whole_folder_does_not_apply_to_its_readme(tmp_path: Path) -> None:
    raw = "some words\n" * 5000
    write(tmp_path / "d", {"README.txt": "1 Read\n2 me\n", "raw.txt": raw, "q.txt": BAD + GOOD})
    (tmp_path / "d" / "picture.png").write_bytes(b"\x89PNG")
    report = ReadReport()
    assert ids(tmp_path / "d", format="cbt", skip_bad=True, report=report) == ["/q:2"]
    assert report.faults == 1
    assert report.first_ignored == ["README.txt", "picture.png (empty or not UTF-8 text)", "raw.txt"]


def test_data_without_a_question_are_reported_with_a_remedy(tmp_path: Path) -> None:
    write(tmp_path / "d", {"a.txt": "words\n", "b.txt": "words\n", "bad.txt": BAD})
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.txt").write_bytes(GOOD.replace("Anna", "Zoë").encode("latin-1"))
    for path, options, message in (
        (
            "d",
            {"only": "[ab].txt"},
            r"d: no question found in any known format in 2 files \(a.txt, b.txt\); .* babi, cbt",
        ),
        ("d", {"only": "x*"}, r"no file matches 'x\*'"),
        ("d/bad.txt", {"skip_bad": True}, r"not one question could be read; the first fault is .*bad.txt:2"),
        ("d/a.txt", {"format": "jsonl"}, r"a.txt:1: not JSON"),
        ("empty", {}, "there is no file in it"),
        ("latin.txt", {}, r"latin.txt:1: byte 0xeb is not UTF-8"),
        ("nowhere", {}, "nowhere: cannot be opened"),
    ):
        with pytest.raises(InputError, match=message) as error:
            ids(tmp_path / path, **options)
        assert "\n" not in str(error.value)


def test_a_truncated_archive_is_reported_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tgz"
    with tarfile.open(path, "w:gz", compresslevel=0) as archive:
        for number in range(2000):
            info = tarfile.TarInfo(f"q{number}.txt")
            info.size = len(GOOD)
            archive.addfile(info, io.BytesIO(GOOD.encode()))
    path.write_bytes(path.read_bytes()[:1_000_000])
    found = read_examples(path)
    assert next(found)[1].id == "q0:1"
    with pytest.raises(InputError, match=r"a\.tgz.*damaged or incomplete"):
        list(found)


@pytest.mark.skipif(not SHARED.exists(), reason="needs the shared data")
def test_the_official_files() -> None:
    found = [example for _, example in read_examples(SHARED / "cbt", only="cbtest*")]
    assert len(found) == 2000
    assert sum(len(example.words) for example in found) / 2000 == 411.5795  # the data set's own statistics
    assert sum(len(example.question) for example in found) / 2000 == 25.688
    assert (min(len(example.words) for example in found), max(len(example.words) for example in found)) == (189, 801)
    assert {len(example.candidates) for example in found} == {10}
    assert all(example.answer in example.words for example in found)

    cmrc = [example for _, example in read_examples(SHARED / "cmrc2017")]
    assert len(cmrc) == 2000 and all(example.answer in example.words for example in cmrc)
    assert [example for _, example in read_examples(SHARED / "cmrc2017" / "cloze.valid.doc_query.xz")] == cmrc

    lambada = [example for _, example in read_examples(SHARED / "lambada")]
    assert len(lambada) == 4869
    assert sum(len(example.document) > 1 for example in lambada) > 4500

    report = ReadReport()
    tasks = {
        part.group
        for part, _ in read_examples(SHARED / "babi" / "babi-en-valid-10k.tar.xz", only="*_valid*", report=report)
    }
    assert tasks == {f"qa{number}" for number in range(1, 21)}
    assert report.examples == 20_002 and report.ignored == 0
