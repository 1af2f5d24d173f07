"""Books in files, folders and archives -> questions: names, workers, leaks, mistakes."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from asreader.cloze.books.book_maker import BookMaker, find_books, make_books
from asreader.cloze.books.window_questions import QuestionRecipe
from asreader.cloze.making_job import MakingJob, MakingSummary
from asreader.cloze.stories.generator import generate_stories
from asreader.data.dataset import read_examples
from asreader.data.example import Example
from asreader.errors import InputError

MAKER = BookMaker(QuestionRecipe("cn"), "lexical", "cbt")


def sentences(seed: int) -> list[str]:
    """A book of 60 small stories, one sentence a line, its words apart; without direct speech."""
    return [" ".join(words) for story in generate_stories(60, seed) for words in story.document if "``" not in words]


def prose(seed: int) -> str:
    """The same as ordinary text, in paragraphs."""
    plain = [line.replace(" .", ".").replace(" ,", ",").replace(" 's", "'s") for line in sentences(seed)]
    return "\n\n".join(" ".join(plain[start : start + 5]) for start in range(0, len(plain), 5))


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    for seed in range(3):
        (folder / f"book{seed}.txt").write_text(prose(seed))
    return folder


def made(path: Path | list[Path], out: Path, maker: BookMaker = MAKER, **how: object) -> MakingSummary:
    keep = {name: how.pop(name) for name in ("only", "exclude", "without") if name in how}
    return make_books(
        path if isinstance(path, list) else [path], MakingJob(out, **({"workers": 1} | how)), maker, **keep
    )  # type: ignore[arg-type]


def questions(path: Path) -> list[Example]:
    return [example for _, example in read_examples(path)]


def test_a_folder_an_archive_and_one_tokenised_file_give_the_same_questions(library: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "library.tar.xz", "w:xz") as archive:
        for path in sorted(library.iterdir()):
            archive.add(path, path.name)
    tokenised = "".join(f"_BOOK_TITLE_ : book{seed}.txt.out\n" + "\n".join(sentences(seed)) + "\n" for seed in range(3))
    (tmp_path / "one.txt").write_text(tokenised)
    first, second, third = (tmp_path / f"{name}.jsonl" for name in "abc")
    maker = BookMaker(QuestionRecipe("cn"), "lexical", "jsonl")
    made(library, first, maker)
    made(tmp_path / "library.tar.xz", second, maker)
    made(tmp_path / "one.txt", third, maker)
    assert first.read_bytes() == second.read_bytes() == third.read_bytes()
    assert {example.id.split(":")[0] for example in questions(first)} == {"book0", "book1", "book2"}


@pytest.mark.parametrize("how", [{"workers": 2}, {"workers": 2, "executor": "ray"}])
def test_workers_change_nothing(library: Path, tmp_path: Path, how: dict[str, object]) -> None:
    made(library, tmp_path / "one.txt")
    made(library, tmp_path / "many.txt", **how)
    assert (tmp_path / "one.txt").read_bytes() == (tmp_path / "many.txt").read_bytes()


def test_a_book_does_not_change_what_is_made_of_another(library: Path, tmp_path: Path) -> None:
    maker = BookMaker(QuestionRecipe("cn"), "lexical", "jsonl")
    made(library, tmp_path / "all.jsonl", maker)
    made([library / "book2.txt", library / "book0.txt"], tmp_path / "two.jsonl", maker)
    together = questions(tmp_path / "all.jsonl")
    assert questions(tmp_path / "two.jsonl") == [
        *(example for example in together if example.id.startswith("book2:")),
        *(example for example in together if example.id.startswith("book0:")),
    ]


def test_another_seed_draws_other_candidates_for_the_same_questions(library: Path, tmp_path: Path) -> None:
    made(library, tmp_path / "0.txt")
    made(library, tmp_path / "1.txt", BookMaker(QuestionRecipe("cn", seed=1), "lexical", "cbt"))
    first, second = questions(tmp_path / "0.txt"), questions(tmp_path / "1.txt")
    assert [example.question for example in first] == [example.question for example in second]
    assert [example.candidates for example in first] != [example.candidates for example in second]


def test_two_books_with_the_same_name_get_unique_names(library: Path, tmp_path: Path) -> None:
    names = [text.name for text in find_books([library, library / "book1.txt"])]
    assert names == ["book0", "book1", "book2", "book1~2"]
    made([library, library / "book1.txt"], tmp_path / "out.jsonl", BookMaker(QuestionRecipe("cn"), "lexical", "jsonl"))
    ids = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(set(ids)) == len(ids)


def test_no_question_repeats_what_is_excluded(library: Path, tmp_path: Path) -> None:
    held_out = tmp_path / "held_out.txt"
    held_out.write_text("\n".join(sentences(9)[:40] + sentences(1)[100:130]) + "\n")
    summary = made(library, tmp_path / "clean.txt", exclude=[held_out])
    assert any(note.startswith("book1: ") and "stand in excluded texts" in note for note in summary.notes)
    leaked = {tuple(line.split()) for line in sentences(1)[103:127] if len(line.split()) > 11}
    assert leaked
    for example in questions(tmp_path / "clean.txt"):
        assert leaked.isdisjoint(example.document)
    made(library, tmp_path / "whole.txt")
    assert any(not leaked.isdisjoint(example.document) for example in questions(tmp_path / "whole.txt"))
    assert not list(tmp_path.glob(".*"))


def test_questions_can_be_excluded_too(library: Path, tmp_path: Path) -> None:
    made(library / "book1.txt", tmp_path / "cbtest_NE_test.txt")
    summary = made(library, tmp_path / "clean.txt", exclude=[tmp_path / "cbtest_NE_test.txt"])
    assert [note.split(":")[0] for note in summary.notes].count("book1") == 1
    remaining = {example.id.split(":")[0] for example in questions(tmp_path / "clean.txt")}
    assert len(questions(tmp_path / "clean.txt")) > 100 and remaining


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x89PNG\r\n\0\0\0", "binary"),
        (b"", "no running text"),
        ("Der Müller schlief. ".encode("latin-1") * 50, "not UTF-8"),
        (b"word " * 300_000, "without the end of a sentence"),
    ],
)
def test_a_bad_book_is_named_and_can_be_left_out(library: Path, tmp_path: Path, content: bytes, reason: str) -> None:
    good, out = tmp_path / "good.txt", tmp_path / "out.txt"
    made(library, good)
    (library / "book1x.txt").write_bytes(content)
    with pytest.raises(InputError, match=r"book1x.txt[^\n]*or skip it with --skip-bad$") as error:
        made(library, out)
    assert reason in str(error.value)
    summary = made(library, out, skip_bad=True)
    assert (summary.pieces, summary.bad) == (3, 1)
    assert out.read_bytes() == good.read_bytes()


def test_books_left_out_by_name_are_as_if_not_there(library: Path, tmp_path: Path) -> None:
    out, expected = tmp_path / "out.jsonl", tmp_path / "expected.jsonl"
    maker = BookMaker(QuestionRecipe("cn"), "lexical", "jsonl")
    assert made(library, out, maker, without=["book[02]", "no such book"]).pieces == 1
    made(library / "book1.txt", expected, maker)
    assert out.read_bytes() == expected.read_bytes()
    with pytest.raises(InputError, match="no question could be made"):
        made(library, tmp_path / "none.jsonl", maker, without=["book*"])


def test_a_folder_without_texts(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, only, reason in (
        (tmp_path / "empty", None, "there is no file in it"),
        (tmp_path, "*.md", "no file matches"),
        (tmp_path / "nothing", None, "cannot be opened"),
    ):
        with pytest.raises(InputError, match=reason):
            made(path, tmp_path / "out.txt", only=only)
    assert {path.name for path in tmp_path.iterdir()} == {"empty"}


def test_a_text_too_short_for_a_question(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("A cat sat. It slept.")
    with pytest.raises(InputError, match="no question could be made"):
        made(tmp_path / "short.txt", tmp_path / "out.txt")
    assert not (tmp_path / "out.txt").exists()


def test_chinese_goes_through_the_same_maker(tmp_path: Path) -> None:
    places = ["北京", "上海", "广州", "天津", "重庆", "南京", "杭州", "成都", "武汉", "西安", "苏州", "青岛"]
    journeys = zip(places * 4, places[5:] + places * 4, strict=False)
    text = "".join(f"老师从{here}坐火车去{there}看朋友。" for here, there in journeys)
    (tmp_path / "book.txt").write_text(text)
    made(tmp_path / "book.txt", tmp_path / "out.txt", BookMaker(QuestionRecipe("ne"), "jieba", "cbt"))
    found = questions(tmp_path / "out.txt")
    assert len(found) > 20
    assert all(example.answer in places and set(example.candidates) <= set(places) for example in found)
    assert all("老师" in example.words and "朋友" in example.words for example in found)
