from __future__ import annotations

import json
import random
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.cloze.news.article_questions import (
    NewsQuestion,
    find_highlight_entities,
    format_jsonl_line,
    format_question_file,
    make_article_questions,
    question_file_name,
    restore_names,
    strip_boilerplate,
)
from asreader.cloze.news.articles import Article
from asreader.data.dataset import read_examples
from asreader.data.example import GAP, Example, find_problem
from asreader.data.formats import cnn_dailymail, jsonl
from asreader.data.source_file import make_source_file

TEXT = """Tilda Brankov has won the Fjord Prize in Oslo. The jury praised Brankov for her bridges. Her rival Otto
Dresch, who built the Zelbrig tower in Vienna, sent flowers. "Tilda is the best of us," Dresch told the Oslo Courier on
Monday. The Saudi-led group of engineers will meet Mr. Dresch in May."""
NAMED = ["Tilda Brankov", "Fjord Prize", "Oslo", "Otto Dresch", "Zelbrig", "Vienna", "Oslo Courier", "Saudi"]
ARTICLE = Article(
    "bridge", TEXT, ("Brankov wins the prize for bridges", "Dresch sends flowers to Brankov", "It was a fine day .")
)


def made(article: Article = ARTICLE, seed: int = 0, lowercase: bool = False) -> list[NewsQuestion]:
    return list(make_article_questions(article, seed, lowercase))


def by_answer(found: list[NewsQuestion]) -> dict[str, NewsQuestion]:
    return {f"{question.example.id} {question.names[question.example.answer or '']}": question for question in found}


def test_one_question_for_each_entity_that_highlight_and_article_share() -> None:
    asked = {
        answer: " ".join(restore_names(question.example.question, question.names))
        for answer, question in by_answer(made()).items()
    }
    assert asked == {
        "bridge:1.1 Tilda Brankov": "XXXXX wins the prize for bridges",
        "bridge:2.1 Otto Dresch": "XXXXX sends flowers to Tilda Brankov",
        "bridge:2.2 Tilda Brankov": "Otto Dresch sends flowers to XXXXX",
    }


def test_every_mention_is_anonymous_and_candidates_are_the_documents_entities() -> None:
    for question in made():
        example = question.example
        text = " ".join((*example.words, *example.question))
        assert not re.search("Brankov|Tilda|Dresch|Oslo|Zelbrig|Vienna|Saudi", text)
        assert sorted(question.names.values()) == sorted(NAMED)
        assert example.candidates == tuple(dict.fromkeys(word for word in example.words if word in question.names))
        assert find_problem(example) is None and example.answer in example.candidates
        assert sorted(question.names) == sorted(f"@entity{number}" for number in range(len(question.names)))


def test_an_entity_of_the_highlight_alone_is_anonymous_but_no_candidate() -> None:
    article = Article("x", TEXT, ("Wilma Strand says Brankov deserved the prize",))
    (question,) = made(article)
    label = next(label for label, name in question.names.items() if name == "Wilma Strand")
    assert label in question.example.question and label not in question.example.candidates
    assert find_highlight_entities(article) == {"Wilma Strand": False, "Tilda Brankov": True}


def test_an_answer_mentioned_twice_gives_two_gaps() -> None:
    (question,) = made(Article("x", TEXT, ("Brankov says that Tilda Brankov sleeps well",)))
    assert question.example.question.count(GAP) == 2


def test_a_highlight_of_names_alone_asks_nothing() -> None:
    assert not made(Article("x", TEXT, ("Tilda Brankov , Otto Dresch , Vienna now",)))


def test_gap_and_entity_marks_of_the_text_are_removed() -> None:
    strange = "Look at @entity3 and @placeholder and XXXXX and ____ here. " + TEXT
    for question in made(Article("x", strange, ("Brankov wins the prize @entity3 for bridges @placeholder",))):
        assert question.example.question.count(GAP) == 1
        assert {word for word in question.example.words if word.startswith("@entity")} <= set(question.names)
        assert GAP not in question.example.words and "@placeholder" not in question.example.words


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(CNN)The race began.", "The race began."),
        ("(CNN) -- The race began.", "The race began."),
        ("OSLO, Norway (CNN) -- The race began.", "OSLO, Norway\n\nThe race began."),
        ("(Bridge Weekly)The race began.", "The race began."),
        ("By . Tilda Brankov . PUBLISHED: . 12:00 EST, 3 June 2013 . The race began.", "The race began."),
        (
            "By . Tilda Brankov . and Otto Dresch . PUBLISHED: . 07:27 EST, 3 June 2013 . | . UPDATED: . "
            "12:10 EST, 4 June 2013 . The race began.",
            "The race began.",
        ),
        ("By . Tilda Brankov . The race began.", "The race began."),
        ("Last updated at 11:24 AM on 12th December 2011 . The race began.", "The race began."),
        ("The Bridge Union (BU) met.", "The Bridge Union (BU) met."),
        ("The race (a long one) began.", "The race (a long one) began."),
        ("The list was long. Updated 3 June 2013, it grew.", "The list was long. Updated 3 June 2013, it grew."),
        ("By noon the race had begun.", "By noon the race had begun."),
    ],
)
def test_boilerplate_at_the_head_is_left_out(text: str, wanted: str) -> None:
    assert strip_boilerplate(text).strip() == wanted


def test_credits_are_left_out() -> None:
    (question, *_) = made(Article("x", f"{TEXT} Wilma Strand contributed to this report.", ARTICLE.highlights))
    assert "Wilma Strand" not in question.names.values()


def test_words_stay_as_written_unless_lower_case_is_wanted() -> None:
    for plain, lower in zip(made(), made(lowercase=True), strict=True):
        assert lower.example.words == tuple(map(str.lower, plain.example.words)) != plain.example.words
        assert lower.example.question == tuple(word if word == GAP else word.lower() for word in plain.example.question)
        assert (lower.names, lower.example.answer) == (plain.names, plain.example.answer)


NAMES = ["Tilda Brankov", "Otto Dresch", "Wilma Strand", "Zelbrig", "Vienna", "the Bank of Oslo", "NATO", "Quillmere"]
CLAUSES = [
    "{} thanked {} .",
    "People near {} heard of {} .",
    "It rained , so {} left {} alone .",
    "They saw {} and {} .",
]


@st.composite
def stories(draw: st.DrawFn) -> Article:
    def line() -> str:
        clause, first, second = (draw(st.sampled_from(choice)) for choice in (CLAUSES, NAMES, NAMES))
        return clause.format(first, second)

    text = " ".join(line() for _ in range(draw(st.integers(1, 12))))
    return Article(f"story {draw(st.integers(0, 99))}", text, tuple(line() for _ in range(draw(st.integers(1, 3)))))


@given(stories(), st.integers(0, 5))
def test_putting_the_names_back_gives_one_text_for_all_questions(article: Article, seed: int) -> None:
    found = made(article, seed)
    assert len({restore_names(question.example.words, question.names) for question in found}) <= 1
    for question in found:
        example = question.example
        assert example.answer in example.words and GAP in example.question
        assert example.answer not in example.question
        shown = " ".join(restore_names(example.words, question.names))
        assert shown == " ".join(shown.split()) and "@entity" not in shown


@given(st.lists(stories(), min_size=1, max_size=4, unique_by=lambda article: article.id), st.integers(0, 5))
def test_order_of_the_articles_changes_nothing(articles: list[Article], seed: int) -> None:
    def everything(order: list[Article]) -> dict[str, str]:
        return {
            question.example.id: format_jsonl_line(question)
            for article in order
            for question in make_article_questions(article, seed)
        }

    assert everything(articles) == everything(random.Random(seed).sample(articles, len(articles)))


@given(stories())
def test_another_seed_only_renames_entities(article: Article) -> None:
    for one, other in zip(made(article, 1), made(article, 2), strict=True):
        assert restore_names(one.example.words, one.names) == restore_names(other.example.words, other.names)
        assert restore_names(one.example.question, one.names) == restore_names(other.example.question, other.names)
        assert restore_names(one.example.candidates, one.names) == restore_names(other.example.candidates, other.names)
        assert one.names[one.example.answer or ""] == other.names[other.example.answer or ""]


def test_entities_are_renumbered_for_every_question() -> None:
    numbers = {tuple(sorted(question.names.items())) for seed in range(5) for question in made(seed=seed)}
    assert len(numbers) > 10


@given(stories(), st.booleans())
def test_both_files_give_the_question_back(article: Article, lowercase: bool) -> None:
    for question in made(article, lowercase=lowercase):
        with tempfile.TemporaryDirectory() as folder:
            row, file = Path(folder) / "news.jsonl", Path(folder) / question_file_name(question)
            row.write_text(format_jsonl_line(question), encoding="utf-8")
            file.write_text(format_question_file(question), encoding="utf-8")
            (from_row,) = jsonl.read(make_source_file(row, row.name))
            (from_file,) = cnn_dailymail.read(make_source_file(file, file.name))
        assert from_row == question.example
        assert isinstance(from_file, Example)
        assert from_file.words == question.example.words
        assert from_file.question == question.example.question
        assert from_file.candidates == question.example.candidates
        assert from_file.answer == question.example.answer


def test_the_files_are_recognised_and_keep_the_names(tmp_path: Path) -> None:
    found = made()
    for question in found:
        (tmp_path / question_file_name(question)).write_text(format_question_file(question), encoding="utf-8")
    (tmp_path / "all.txt").write_text("\n".join(map(format_question_file, found)), encoding="utf-8")
    (tmp_path / "all.jsonl").write_text("".join(map(format_jsonl_line, found)), encoding="utf-8")
    assert len(list(read_examples(tmp_path))) == 3 * len(found)
    assert json.loads(format_jsonl_line(found[0]))["entities"] == found[0].names
    assert format_question_file(found[0]).splitlines()[-1].startswith("@entity")
    lines = format_question_file(found[0]).split("\n\n")[4].split("\n")
    assert dict(line.split(":", 1) for line in lines if line) == found[0].names
