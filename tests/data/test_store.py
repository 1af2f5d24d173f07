from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.data.example import Example
from asreader.data.store import Encoder, Store, encode_examples, open_store
from asreader.errors import InputError

WORD = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=4)
SENTENCE = st.lists(WORD, min_size=1, max_size=5).map(tuple)
PHRASE = st.lists(WORD, max_size=3).map(" ".join)


@st.composite
def examples(draw: st.DrawFn) -> Example:
    candidates = draw(st.lists(PHRASE, max_size=5).map(tuple))
    answer = draw(st.none() | (st.sampled_from(candidates) if candidates else PHRASE))
    document = draw(st.lists(SENTENCE, min_size=1, max_size=4).map(tuple))
    return Example(draw(WORD), document, draw(SENTENCE), candidates, answer)


def write_store(folder: Path, questions: list[Example]) -> Path:
    folder.mkdir(parents=True)
    encoder = Encoder(folder)
    for example in questions:
        encoder.add(example)
    encoder.close("test")
    return folder


def has_same_examples(store: Store, questions: list[Example]) -> bool:
    return len(store) == len(questions) and [store.decode_example(n) for n in range(len(store))] == questions


@given(st.lists(examples(), max_size=6))
def test_decoded_examples_equal_the_originals(questions: list[Example]) -> None:
    assert has_same_examples(encode_examples(questions), questions)


@given(questions=st.lists(examples(), max_size=6))
def test_a_store_on_disk_equals_one_in_memory(
    tmp_path_factory: pytest.TempPathFactory, questions: list[Example]
) -> None:
    folder = write_store(tmp_path_factory.mktemp("store") / "s", questions)
    store = open_store(folder)
    assert has_same_examples(store, questions)
    memory = encode_examples(questions)
    assert store.lexicon == memory.lexicon
    assert store.count_words() == memory.count_words()
    assert list(store.answerable) == list(memory.answerable)


@given(examples())
def test_answerable_means_the_answer_is_in_the_document(example: Example) -> None:
    parts = (example.answer or "").split()
    words = list(example.words)
    is_in_document = bool(parts) and any(words[i : i + len(parts)] == parts for i in range(len(words)))
    assert encode_examples([example]).answerable[0] == is_in_document


def make_windows(sentences: int, width: int = 20) -> list[Example]:
    book = [tuple(f"w{n}-{index}" for index in range(20)) for n in range(sentences)]
    return [Example(str(n), tuple(book[n : n + width]), ("?",)) for n in range(sentences - width)]


def test_overlapping_windows_store_each_sentence_once(tmp_path: Path) -> None:
    folder = write_store(tmp_path / "s", make_windows(220))
    assert len(open_store(folder).columns["sentences"]) == 219 * 20
    assert (folder / "documents").stat().st_size == 200 * 20 * 4


def test_columns_stay_aligned_when_many_examples_are_flushed(tmp_path: Path) -> None:
    questions = [Example(str(n), ((f"a{n % 7}", "b"),), ("q", f"x{n % 3}"), ("b", "c d"), "b") for n in range(9000)]
    store = open_store(write_store(tmp_path / "s", questions))
    assert all(store.decode_example(n) == questions[n] for n in (0, 4095, 4096, 8191, 8192, 8999))


def test_every_damaged_file_is_refused(tmp_path: Path) -> None:
    folder = write_store(tmp_path / "s", make_windows(25))
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        if whole:
            path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
            with pytest.raises(InputError, match="prepare"):
                open_store(folder)
        path.write_bytes(whole[: len(whole) // 2] if whole else b"x")
        with pytest.raises(InputError, match="prepare"):
            open_store(folder)
        path.unlink()
        with pytest.raises(InputError, match="prepare"):
            open_store(folder)
        path.write_bytes(whole)
    open_store(folder)


def test_another_version_is_refused(tmp_path: Path) -> None:
    folder = write_store(tmp_path / "s", make_windows(25))
    index = json.loads((folder / "store.json").read_text())
    (folder / "store.json").write_text(json.dumps(index | {"version": 99}))
    with pytest.raises(InputError, match="version 99"):
        open_store(folder)


def _count_private_kilobytes(folder: Path, results: multiprocessing.Queue[int]) -> None:
    store = open_store(folder)
    int(store.columns["sentences"].sum())  # touch every page
    private, mapped = 0, False  # anonymous pages of a file mapping are private copies of this process
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ", 1)[0] and not line.split(" ", 1)[0].endswith(":"):
            mapped = line.endswith(str(folder / "sentences"))
        if mapped and line.startswith("Anonymous:"):
            private += int(line.split()[1])
    results.put(private)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs /proc/self/smaps")
def test_processes_share_the_mapped_pages(tmp_path: Path) -> None:
    folder = write_store(tmp_path / "s", make_windows(2000))
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[int] = context.Queue()
    readers = [context.Process(target=_count_private_kilobytes, args=(folder, results)) for _ in range(2)]
    for process in readers:
        process.start()
    private = [results.get(timeout=60) for _ in readers]
    for process in readers:
        process.join()
    assert private == [0, 0]
