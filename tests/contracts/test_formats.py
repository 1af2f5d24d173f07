"""The contract of every format: claim only its own files, read them from any container, never crash."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader import plugins
from asreader.data.dataset import ReadReport, read_examples
from asreader.data.example import Example, find_problem
from asreader.data.formats import cbt
from asreader.data.source_file import make_memory_file, make_source_file
from asreader.errors import InputError

arrow, parquet_files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

CBT = """\
1 Anna had a cat .
2 Ben had a dog .
3 XXXXX fed the cat .\tAnna\t\tAnna|Ben|cat

1 The dog ran off .
2 Ben ran behind .
3 Then XXXXX came back .\tdog\t\tdog|Ben
"""
STORY = """\
http://news.example/{number}

@entity0 met @entity1 in @entity2 . they spoke .

see http://more.example/ for @entity3 's words

@placeholder met @entity1

@entity0

@entity0:Anna
@entity1:Ben
@entity2:Rome
@entity3:Carla
"""
ROW = {
    "sentences": ["Anna slept .", "Ben woke ."],
    "question": "XXXXX woke .",
    "options": ["Anna", "Ben"],
    "answer": "Ben",
}


def parquet() -> bytes:
    stream = io.BytesIO()
    parquet_files.write_table(arrow.Table.from_pylist([ROW] * 20), stream)
    return stream.getvalue()


SAMPLES: dict[str, dict[str, bytes]] = {
    "babi": {"qa1_train.txt": b"1 Mary went out.\n2 Where is Mary? \tout\t1\n1 Bo came in.\n2 Who came in?\tBo\t1\n"},
    "cbt": {"cbtest_NE_train.txt": CBT.encode(), "mine.txt": CBT.encode()},
    "cmrc2017": {"cloze.valid.doc_query": "1 ||| 小 猫 睡 着 。\n<qid_0> ||| XXXXX 睡 着 。\n".encode()},
    "cnn_dailymail": {
        "0a1b.question": STORY.format(number=1).encode(),
        "many.txt": "".join(STORY.format(number=number) for number in range(3)).encode(),
    },
    "huggingface_cbt": {
        "train-00000-of-00001.parquet": parquet(),
        "rows.jsonl": (json.dumps(ROW) + "\n").encode() * 3,
        "rows.json": json.dumps([ROW] * 3, indent=1).encode(),
    },
    "jsonl": {
        "mine.jsonl": b'{"document": [["Anna", "slept", "."]], "question": ["XXXXX", "slept"], "answer": "Anna"}\n' * 3,
        "texts.jsonl": b'{"id": 7, "question": "___ slept.", "document": "Anna slept. Ben woke.", "answer": "Anna"}\n',
    },
    "lambada": {"lambada_test_plain_text.txt": b"anna had a cat . ben liked the cat of anna\n" * 3},
}
CASES = [(name, file) for name, files in SAMPLES.items() for file in files]
EVERY = pytest.mark.parametrize(("name", "file"), CASES)


def test_every_format_has_a_sample() -> None:
    assert sorted(SAMPLES) == plugins.list_plugins("data.formats")


@EVERY
def test_a_sample_is_claimed_by_its_format_alone(tmp_path: Path, name: str, file: str) -> None:
    (tmp_path / file).write_bytes(SAMPLES[name][file])
    head = make_source_file(tmp_path / file, file).read_head()
    assert [other for other in SAMPLES if plugins.load_plugin("data.formats", other).detect(file, head)] == [name]


@EVERY
def test_every_container_gives_the_same_examples(tmp_path: Path, name: str, file: str) -> None:
    data = SAMPLES[name][file]
    plain = tmp_path / "plain" / file
    plain.parent.mkdir()
    plain.write_bytes(data)
    (tmp_path / f"{file}.gz").write_bytes(gzip.compress(data))
    (tmp_path / f"{file}.xz").write_bytes(lzma.compress(data))
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        archive.add(plain, f"inner/{file}")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zip_file:
        zip_file.write(plain, f"inner/{file}")
    expected = list(read_examples(plain))
    assert expected == list(read_examples(plain, format=name))
    for container in ("plain", f"{file}.gz", f"{file}.xz", "a.tgz", "a.zip"):
        assert list(read_examples(tmp_path / container)) == expected
    check_examples([example for _, example in expected])


@EVERY
def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path, name: str, file: str) -> None:
    data = SAMPLES[name][file]
    if file.endswith(".parquet"):
        return
    (tmp_path / file).write_bytes(data)
    expected = list(read_examples(tmp_path / file))
    (tmp_path / file).write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    assert list(read_examples(tmp_path / file)) == expected


@EVERY
def test_a_truncated_file_gives_questions_faults_or_a_one_line_error(tmp_path: Path, name: str, file: str) -> None:
    data = SAMPLES[name][file]
    for part in range(20):
        cut = data[: len(data) * part // 20]
        for suffix, packed in (("", cut), (".gz", gzip.compress(data)[: len(data) * part // 20])):
            (tmp_path / (file + suffix)).write_bytes(packed)
            check_readable(tmp_path / (file + suffix), None)
            check_readable(tmp_path / (file + suffix), name)
            (tmp_path / (file + suffix)).unlink()


PIECES = [data.decode(errors="replace").split("\n") for files in SAMPLES.values() for data in files.values()]
KEYS = ["id", "document", "question", "sentences", "options", "candidates", "answer"]
LINE = st.one_of(
    st.text(),
    st.sampled_from([line for lines in PIECES for line in lines]),
    st.from_regex(r"\A(\d{1,2}|<qid_\d>)( \|\|\||) .*(XXXXX)?.*(\t.*){0,4}\Z"),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner),
        max_leaves=8,
    ).map(json.dumps),
)


@pytest.mark.parametrize("name", SAMPLES)
@given(lines=st.lists(LINE, max_size=12))
def test_garbage_gives_faults_or_an_input_error(name: str, lines: list[str]) -> None:
    module = plugins.load_plugin("data.formats", name)
    data = "\n".join(lines).encode("utf-8", "replace")
    for file in SAMPLES[name]:
        source = make_memory_file(file, file, data)
        module.detect(file, source.read_head())
        try:
            items = list(module.read(source))
        except InputError:
            continue
        assert all(isinstance(item, Example) or item.line >= 1 for item in items)
        check_examples([item for item in items if isinstance(item, Example)])


@pytest.mark.parametrize("name", ["cbt", "jsonl"])
@given(data=st.data())
def test_a_formatted_example_is_read_back(name: str, data: st.DataObject) -> None:
    module = plugins.load_plugin("data.formats", name)
    example = data.draw(examples())
    try:
        text: str = module.format_example(example)
    except InputError as error:
        assert module is cbt and "JSONL" in str(error)
        return
    (back,) = module.read(make_memory_file("a.txt", "a.txt", text.encode()))
    assert (back.document, back.question, back.candidates, back.answer) == (
        example.document,
        example.question,
        example.candidates,
        example.answer,
    )
    assert name == "cbt" or back == example


@st.composite
def examples(draw: st.DrawFn) -> Example:
    word = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(lambda w: w.split() == [w])
    sentence = st.lists(word, max_size=5).map(tuple)
    document = draw(st.lists(sentence, min_size=1, max_size=4).map(tuple).filter(any))
    question = (*draw(sentence), "XXXXX", *draw(sentence))
    surface = st.lists(word, max_size=2).map(" ".join) | st.sampled_from(["|", "a|b", ""])
    candidates = tuple(draw(st.lists(surface, max_size=5)))
    answers = [candidate for candidate in candidates if candidate]
    answer = draw(st.none() | (st.sampled_from(answers) if answers else word if not candidates else st.none()))
    return Example(draw(word), document, question, candidates, answer)


def check_examples(found: list[Example]) -> None:
    """Every Example is valid, words have no white space, ids are unique."""
    for example in found:
        assert find_problem(example) is None
        assert all(word.split() == [word] for sentence in (*example.document, example.question) for word in sentence)
    assert len({example.id for example in found}) == len(found)


def check_readable(path: Path, name: str | None) -> None:
    try:
        check_examples([example for _, example in read_examples(path, format=name, skip_bad=True, report=ReadReport())])
    except InputError as error:
        assert "\n" not in str(error) and path.name in str(error)
