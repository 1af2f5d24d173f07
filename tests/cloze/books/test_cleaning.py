from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.cloze.books import cleaning
from asreader.cloze.books.cleaning import Book, clean_text, is_tokenised, read_books
from asreader.data.discovery import find_files
from asreader.data.source_file import SourceFile, make_source_file
from asreader.errors import InputError

PROSE = (
    "Long before the mill had a wheel, an old heron kept watch over the pond and counted the frogs every evening,\n"
    "and nobody who lived near the water would have gone to bed without asking him how many there were that day."
)
MORE = (
    'The miller laughed when he heard of it. "A heron that counts!" said he. But he came down the next evening all\n'
    "the same, with a lantern in one hand and a slate in the other, and he sat down upon the bank to wait for him."
)
LINES = [" ".join(PROSE.split()), " ".join(MORE.split())]


def member(folder: Path, text: str | bytes, name: str = "heron.txt") -> SourceFile:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return make_source_file(path, name)


def cleaned(text: str, headings: cleaning.Headings = "drop") -> list[str]:
    return [line for line in clean_text(text, "heron.txt", headings).split("\n") if line]


STORY = f"CHAPTER I\n\nTHE POND\n\n{PROSE}\n\n{MORE}\n"
FRAMES = {
    "nothing": STORY,
    "new header and footer": (
        "The Project Gutenberg eBook of The Heron\n\nTitle: The Heron\n\nLanguage: English\n\n"
        "*** START OF THE PROJECT GUTENBERG EBOOK THE HERON ***\n\nProduced by Some People\nand Others\n\n\n"
        f"{STORY}\n\n*** END OF THE PROJECT GUTENBERG EBOOK THE HERON ***\n\nUpdated. {PROSE}"
    ),
    "footer in words": f"{STORY}\n\nEnd of the Project Gutenberg EBook of The Heron, by Nobody\n\n{PROSE}",
    "old small print": (
        f"{PROSE}\n\n*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*\n\n\nThe Heron\n\nby Nobody\n\n"
        f"{STORY}\n\nEnd of Project Gutenberg's The Heron, by Nobody\n\nMore of it.\n"
    ),
    "title page": (
        f"THE HERON\n\nBY\n\nA. NOBODY\n\nAuthor of 'The Frog'\n\nLONDON\n1901\n\n\nTO\nMY AUNT\n\n\n{STORY}"
    ),
    "contents": (
        "THE HERON\n\n\nCONTENTS\n\n     I. THE POND               1\n    II. THE MILL              17\n"
        f"   III. THE SLATE             30\n\n\n{STORY}"
    ),
    "contents with points": f"Contents.\n\nThe Pond . . . . 1\nThe Mill . . . . 17\nThe Slate . . . 30\n\n\n{STORY}",
    "contents apart": f"CONTENTS\n\nCHAPTER I\n\nThe Pond\n\nCHAPTER II\n\nThe Mill\n\n\n{STORY}",
    "illustrations": (
        "[Illustration: Cover]\n\nLIST OF ILLUSTRATIONS\n\n'He counted them, one by one'   _Frontispiece_\n\n"
        f"The miller with his slate    12\n\n\n{STORY}"
    ),
    "the end and adverts": f"{STORY}\n\nTHE END\n\n\nWe also sell slates.\n",
    "notes": f"{STORY}\n\nTRANSCRIBER'S NOTES\n\nTwo words were put right.\n",
    "windows": STORY.replace("\n", "\r\n"),
    "old mac": STORY.replace("\n", "\r"),
    "byte order mark": STORY,
}


@pytest.mark.parametrize("frame", FRAMES)
def test_front_and_back_matter_is_removed(frame: str) -> None:
    text = FRAMES[frame]
    if "the end" in frame or "notes" in frame:
        text = text.replace(PROSE, "\n\n".join([PROSE] * 6))
    assert list(dict.fromkeys(cleaned(text))) == LINES


MARKS = {
    "The _old_ heron had =one= rule.": "The old heron had one rule.",
    "The heron[1] slept.[A] He woke.{12} The end.(3)": "The heron slept. He woke. The end.",
    "The heron\n[Illustration: He slept\nin the [tall] reeds.]\nslept.": "The heron slept.",
    "The heron slept. [Footnote 1: Herons\ndo sleep.]": "The heron slept.",
    "The heron [Pg 12]slept {13}well.": "The heron slept well.",
    "The heron\n\n[Illustration]\n\nslept well.": "The heron slept well.",
    "The heron slept.\n\n       *       *       *\n\n17\n\nHe woke.": "The heron slept.\nHe woke.",
    "The heron slept under an elm-\ntree all af-\nternoon, the whole afternoon.": (
        "The heron slept under an elm-tree all afternoon, the whole afternoon."
    ),
    "The heron said\n    a rhyme,\n    a chime.": "The heron said a rhyme, a chime.",
    "Mr. ____ slept in snake_land.": "Mr. -- slept in snake_land.",
}


@pytest.mark.parametrize("text", MARKS)
def test_markup_is_removed(text: str) -> None:
    assert clean_text(f"{PROSE}\n\n{text}", "heron.txt") == f"{LINES[0]}\n{MARKS[text]}"


HEADS = [
    "CHAPTER II",
    "II",
    "Chapter 2. The Mill",
    "II. THE MILL",
    "THE MILL.",
    "The Mill and the Slate",
    "How the frogs were counted",
    "PREFACE",
    "Chapter the Second.",
]
TEXT = [
    '"NO!"',
    '"The Mill."',
    "He slept.",
    "The frogs, the frogs, the frogs,",
    "Then he said:",
    "HELP! Said the frog, and slept, and woke up, and slept again, all day long, and at night too.",
]


@pytest.mark.parametrize("head", HEADS)
def test_headings_are_dropped_or_kept_with_the_sentence_below(head: str) -> None:
    text = f"{PROSE}\n\n\n{head}\n\n{MORE}"
    assert clean_text(text, "heron.txt") == f"{LINES[0]}\n\n{LINES[1]}"
    assert clean_text(text, "heron.txt", "keep") == f"{LINES[0]}\n{head}\n{LINES[1]}"


@pytest.mark.parametrize("text", TEXT)
def test_text_that_is_not_a_heading_stays(text: str) -> None:
    assert cleaned(f"{PROSE}\n\n{text}\n\n{MORE}") == [LINES[0], text, LINES[1]]


def test_a_last_chapter_called_the_end_is_read() -> None:
    long = "\n\n".join([PROSE] * 20)
    assert cleaned(f"{long}\n\n\nCHAPTER IX\n\nTHE END\n\n{MORE}")[-1] == LINES[1]


def test_a_publisher_in_a_story_is_no_advert() -> None:
    long = "\n\n".join([PROSE] * 20)
    assert cleaned(f'{long}\n\n"The publishers sent it back."\n\n{MORE}')[-1] == LINES[1]


def test_chinese_books() -> None:
    prose = "很久以前，池塘边住着一只老鹭，他每天晚上都数青蛙，没有人不问他今天有多少只就去睡觉，大家都很喜欢他。"
    text = (
        f"鹭的故事\n\n目录\n\n第一章 池塘\n\n第二章 磨坊\n\n\n第一章 池塘\n\n{prose[:30]}\n{prose[30:]}\n\n他睡着了。\n"
    )
    assert clean_text(text, "heron.txt") == f"{prose}\n他睡着了。"


def test_a_raw_file_is_one_book_of_sentences(tmp_path: Path) -> None:
    (book,) = read_books(member(tmp_path, "\ufeff" + STORY))
    assert book.name == "heron"
    assert [sentence[-1] for sentence in book.sentences] == [".", ".", "''", ".", "."]
    assert book.sentences[1] == tuple("The miller laughed when he heard of it .".split())


def test_paragraphs_flow_together_and_headings_part_them(tmp_path: Path) -> None:
    text = f'{PROSE}\n\nThen he said:\n\n"Come!"\n\n\nCHAPTER II\n\n{MORE}\n\nTHE MILL\n\nHe slept.'
    said = ("Then", "he", "said", ":", "``", "Come", "!", "''")
    (dropped,) = read_books(member(tmp_path, text))
    assert dropped.sentences[1] == said
    assert dropped.sentences[-1] == ("He", "slept", ".")
    (kept,) = read_books(member(tmp_path, text), "keep")
    assert kept.sentences[-1] == ("THE", "MILL", "He", "slept", ".")
    assert kept.sentences[2][:4] == ("CHAPTER", "II", "The", "miller")


def test_a_short_text_is_a_book_too(tmp_path: Path) -> None:
    assert next(read_books(member(tmp_path, "He slept. She woke."))).sentences == (
        ("He", "slept", "."),
        ("She", "woke", "."),
    )


TOKENISED = (
    "_BOOK_TITLE_ : The_Heron.txt.out\nHe `` slept '' .\n\nShe wo n't , CHAPTER I .\n_BOOK_TITLE_ : Frog\nA frog !\n"
)


def test_tokenised_books_are_unchanged(tmp_path: Path) -> None:
    assert list(read_books(member(tmp_path, TOKENISED))) == [
        Book("The_Heron.txt.out", (("He", "``", "slept", "''", "."), tuple("She wo n't , CHAPTER I .".split()))),
        Book("Frog", (("A", "frog", "!"),)),
    ]


def test_tokenised_text_without_a_title_has_the_name_of_its_file(tmp_path: Path) -> None:
    lines = ["He `` slept '' .", "She wo n't go , said he .", "THE MILL", "1. 1. , a .b", "Oh !"] * 10
    (book,) = read_books(member(tmp_path, "\n".join(line for line in lines if line != "1. 1. , a .b")))
    assert (book.name, len(book.sentences)) == ("heron", 40)


def test_tokenised_text_is_detected() -> None:
    assert is_tokenised("小 猫 睡 了 。\n“ 好 ！ ” 他 说 。\n狐狸 笑 了 。\n")
    for raw in ("", STORY, "He slept.\nShe woke.\n", "THE MILL\nBY NOBODY\n\nA TALE\n", "小猫睡了。\n狐狸笑了。\n"):
        assert not is_tokenised(raw)


def test_tokenised_books_are_read_one_at_a_time() -> None:
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        for number in itertools.count():
            read += 1
            yield f"{cleaning.BOOK_TITLE} : {number}" if number % 10 == 0 else "A frog ."

    names = [name for name, _ in itertools.islice(cleaning.split_tokenised_books(lines()), 3)]
    assert names == ["0", "10", "20"]
    assert read == 31


MISTAKES = {
    "empty": (b"", "no running text is left"),
    "only a frame": (b"*** START OF THE PROJECT GUTENBERG EBOOK X ***\n\n* * *\n\n12\n", "no running text is left"),
    "binary": (b"PK\x03\x04\0\0" + b"\0" * 100, "a binary file"),
    "picture": (b"\x89PNG\r\n\0\0", "a binary file"),
    "latin-1": ("Ein alter Mönch schlief.\n".encode("latin-1"), "iconv"),
    "endless": (b"word " * 300_000, "over 1 MB without the end of a sentence"),
    "titles only": (b"_BOOK_TITLE_ : a\n_BOOK_TITLE_ : b\n", "titles of books and no text"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_one_line_that_names_the_file(mistake: str, tmp_path: Path) -> None:
    content, reason = MISTAKES[mistake]
    with pytest.raises(InputError) as caught:
        list(read_books(member(tmp_path, content)))
    assert str(caught.value).startswith(str(tmp_path / "heron.txt")) and "\n" not in str(caught.value)
    assert reason in str(caught.value)


def test_a_long_line_of_sentences_is_read(tmp_path: Path) -> None:
    assert len(next(read_books(member(tmp_path, "He slept. " * 120_000))).sentences) == 120_000


def test_members_of_a_folder_are_books(tmp_path: Path) -> None:
    member(tmp_path, STORY, "a.txt")
    member(tmp_path, TOKENISED, "b.txt")
    assert [book.name for found in find_files(tmp_path) for book in read_books(found)] == [
        "a",
        "The_Heron.txt.out",
        "Frog",
    ]


paragraph = st.lists(
    st.sampled_from("heron pond frog Miller slept counted evening the and of".split()), min_size=1, max_size=40
).map(lambda words: " ".join(words).capitalize() + ".")


@given(st.lists(paragraph, min_size=1, max_size=12))
def test_no_paragraph_of_prose_is_lost(paragraphs: list[str]) -> None:
    assert cleaned("\n\n".join([LINES[0], *paragraphs])) == [LINES[0], *paragraphs]


@given(st.lists(paragraph, min_size=1, max_size=12))
def test_cleaning_again_changes_nothing(paragraphs: list[str]) -> None:
    once = clean_text("\n\n".join([STORY, *paragraphs]), "heron.txt")
    assert clean_text(once.replace("\n", "\n\n"), "heron.txt") == once.replace("\n\n", "\n")


@given(st.text(alphabet="aB .!?\n_*[]{}\"'1I\r", max_size=200))
def test_any_text_is_cleaned_or_refused(text: str) -> None:
    try:
        running = clean_text(text, "heron.txt")
    except InputError as error:
        assert str(error).startswith("heron.txt: ")
    else:
        assert running.strip() == running != ""


@pytest.mark.parametrize(
    "unit", ["[Illustration ", "[Footnote [", "_", "=a", "a-\n", "\n", "* ", "1\n", "I. A\n\n", "[1", "a  "]
)
def test_no_text_takes_long(unit: str) -> None:
    start = time.process_time()
    clean_text(f"{PROSE}\n\n" + unit * 20_000 + f"\n\n{PROSE}", "heron.txt")
    assert time.process_time() - start < 2
