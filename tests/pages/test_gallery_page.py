"""Galleries: filter, order and page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.cloze.stories.generator import generate_stories
from asreader.data.dataset import prepare_stores
from asreader.data.example import GAP, Example
from asreader.data.formats import jsonl
from asreader.data.store import encode_examples
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.predictions import Prediction
from asreader.inference.reader import Reader
from asreader.pages import gallery_page
from asreader.pages.filter_options import AnswerSelection, QuestionOrder
from asreader.pages.question_filter import (
    AnsweredQuestion,
    QuestionFilter,
    match_predictions,
    read_questions,
    select_questions,
)
from asreader.system.markup import escape_controls

NAMES = ("Ana", "Bo", "Cy", "Di")
HOSTILE = "<script>alert(1)</script>"


def make_answered(
    number: int, probabilities: tuple[float, ...], answer: str | None, words: str = "Ana met Bo ."
) -> AnsweredQuestion:
    example = Example(f"q{number}", (tuple(words.split()),), (GAP, "slept"), NAMES[: len(probabilities)], answer)
    return AnsweredQuestion(example, Prediction(example.id, answer, example.candidates, np.array(probabilities)))


ANSWERED = st.lists(
    st.tuples(
        st.lists(st.sampled_from((0.0, 0.1, 0.2, 0.5)), min_size=2, max_size=4).map(tuple),
        st.sampled_from(("Ana", "Bo", None)),
        st.sampled_from(("Ana met Bo .", "Cy slept", "Ana", "Bo Bo Bo Cy")),
    ),
    max_size=12,
).map(lambda rows: [make_answered(number, *row) for number, row in enumerate(rows)])


def select_slowly(answered: list[AnsweredQuestion], question_filter: QuestionFilter) -> list[str]:
    """The ids of the selected questions, computed step by step."""
    default_orders = {
        AnswerSelection.every: QuestionOrder.data,
        AnswerSelection.surprising: QuestionOrder.surprise,
    }
    order = question_filter.order or default_orders.get(question_filter.selection, QuestionOrder.confidence)
    rows = []
    for index, question in enumerate(answered):
        example, prediction = question.example, question.prediction
        probabilities = dict(zip(prediction.candidates, prediction.probabilities.tolist(), strict=True))
        predicted = max(probabilities, key=probabilities.__getitem__)
        confidence = probabilities[predicted]
        is_right = None if prediction.answer is None else predicted == prediction.answer
        is_selected = {
            AnswerSelection.every: True,
            AnswerSelection.right: is_right is True,
            AnswerSelection.wrong: is_right is False,
            AnswerSelection.surprising: is_right is not None,
        }
        words = (*example.words, *example.question, *example.candidates)
        if not is_selected[question_filter.selection]:
            continue
        if not question_filter.min_confidence <= confidence <= question_filter.max_confidence:
            continue
        if question_filter.word and question_filter.word not in words:
            continue
        if question_filter.answer and question_filter.answer not in (predicted, prediction.answer):
            continue
        key = {
            QuestionOrder.data: 0,
            QuestionOrder.confidence: -confidence,
            QuestionOrder.doubt: confidence,
            QuestionOrder.surprise: 9 if prediction.answer is None else probabilities[prediction.answer],
            QuestionOrder.length: -len(example.words),
        }[order]
        rows.append((key, index, example.id))
    return [id for _, _, id in sorted(rows)][: question_filter.max_questions]


FILTERS = st.builds(
    QuestionFilter,
    selection=st.sampled_from(AnswerSelection),
    word=st.sampled_from(("", "Cy", "slept", "Zoe")),
    answer=st.sampled_from(("", "Ana", "Bo")),
    min_confidence=st.sampled_from((0.0, 0.15)),
    max_confidence=st.sampled_from((0.3, 1.0)),
    order=st.sampled_from((None, *QuestionOrder)),
    max_questions=st.integers(1, 6),
)


@given(ANSWERED, FILTERS)
def test_filter_selects_and_sorts_as_the_slow_one(
    answered: list[AnsweredQuestion], question_filter: QuestionFilter
) -> None:
    selected = select_questions(answered, question_filter)
    assert [question.example.id for question in selected] == select_slowly(answered, question_filter)


def test_word_matches_in_any_case_and_as_entity_name() -> None:
    example = Example("q", (("@entity1", "slept"),), (GAP,), ("@entity1",), "@entity1", {"@entity1": "Ana Berg"})
    question = AnsweredQuestion(example, Prediction("q", "@entity1", ("@entity1",), np.array([1.0])))
    assert (
        question.contains_word("SLEPT")
        and question.contains_word("berg")
        and question.contains_word("@entity1")
        and not question.contains_word("Ber")
    )
    assert question.has_answer("Ana Berg") and question.has_answer("@entity1") and not question.has_answer("slept")


def test_answer_that_is_not_a_candidate_has_probability_zero() -> None:
    question = make_answered(1, (0.6, 0.4), "Zoe")
    assert question.right_probability == 0.0 and question.is_right is False
    assert make_answered(1, (0.6, 0.4), None).is_right is None


def test_predictions_are_matched_by_id_in_any_order() -> None:
    answered = [make_answered(n, (0.6, 0.4), "Ana") for n in range(3)]
    examples = [question.example for question in answered]
    matched = match_predictions(examples, [answered[2].prediction, answered[0].prediction])
    assert [question.example.id for question in matched] == ["q0", "q2"]
    with pytest.raises(InputError, match="other candidates"):
        match_predictions(examples, [Prediction("q1", "Ana", ("Ana", "Zoe"), np.array([0.5, 0.5]))])


def test_prepared_data_give_the_same_questions(tmp_path: Path) -> None:
    examples = list(generate_stories(5, 3))
    (tmp_path / "valid.jsonl").write_text("".join(map(jsonl.format_example, examples)))
    prepare_stores([tmp_path / "valid.jsonl"], tmp_path / "stores", format=None, only=None, skip_bad=False)
    assert list(read_questions(tmp_path / "valid.jsonl")) == examples
    assert list(read_questions(tmp_path / "stores", split="valid")) == examples


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader.load("bundled", "cpu")


def render_gallery(reader: Reader, out: Path, examples: list[Example], question_filter: QuestionFilter) -> str:
    gallery_page.write_gallery(
        out, reader, f"{HOSTILE} on data", gallery_page.answer_questions(reader, examples), question_filter
    )
    return out.read_text(encoding="utf-8")


def test_page_shows_every_selected_question(reader: Reader, tmp_path: Path, parsed: Any) -> None:
    examples = list(generate_stories(30, 5))
    page = parsed(render_gallery(reader, tmp_path / "g.html", examples, QuestionFilter(max_questions=7)))
    page.check()
    articles = page.all("article")
    assert len(articles) == 7
    for example in examples[:7]:
        assert example.id in page.text
    predicted = {prediction.id: prediction for prediction in reader.evaluate(encode_examples(examples)).predictions}
    for attributes, example in zip(articles, examples, strict=False):
        prediction = predicted[example.id]
        right = prediction.candidates[prediction.best] == example.answer
        assert attributes["data-verdict"] == ("right" if right else "wrong")
        assert float(attributes["data-confidence"]) == pytest.approx(prediction.probabilities.max(), abs=1e-5)


def test_saved_predictions_are_used_unchanged(reader: Reader, tmp_path: Path) -> None:
    examples = list(generate_stories(4, 5))
    predicted = [Prediction(e.id, e.answer, e.candidates, np.eye(len(e.candidates))[0]) for e in examples]
    predictions.write_predictions(tmp_path / "predictions.jsonl", predicted)
    answered = gallery_page.answer_questions(reader, examples, tmp_path / "predictions.jsonl")
    assert [question.predicted_answer for question in answered] == [e.candidates[0] for e in examples]
    with pytest.raises(InputError, match="no question"):
        gallery_page.answer_questions(reader, list(generate_stories(2, 99)), tmp_path / "predictions.jsonl")


def test_filter_without_match_is_an_error(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="widen the filters"):
        render_gallery(reader, tmp_path / "g.html", list(generate_stories(3, 5)), QuestionFilter(word="aardvark"))
    assert not (tmp_path / "g.html").exists()


def make_hostile_examples() -> list[Example]:
    words = (HOSTILE, "\u202e\u2069evil", "\x00\x1b[0m", "x" * 100_000, "'\"><img/src=x/onerror=alert(1)>", "😀")
    return [Example(f"{HOSTILE}\u202e{n}", (words, words), (*words, GAP), words, words[n % 5]) for n in range(3)]


def test_hostile_text_is_escaped(reader: Reader, tmp_path: Path, parsed: Any) -> None:
    page = parsed(render_gallery(reader, tmp_path / "g.html", make_hostile_examples(), QuestionFilter()))
    page.check()
    assert page.text.count(HOSTILE) > 20 and escape_controls("\u202e\u2069evil") in page.text
    assert (tmp_path / "g.html").stat().st_size < 200_000


def test_entities_are_shown_under_their_names(reader: Reader, tmp_path: Path, parsed: Any) -> None:
    words = ("@entity1", "met", "@entity2", ".")
    examples = [Example("q", (words,), (GAP, "slept"), ("@entity1", "@entity2"), "@entity2", {"@entity2": "Ana Berg"})]
    page = parsed(render_gallery(reader, tmp_path / "g.html", examples, QuestionFilter()))
    assert "Ana Berg" in page.text and "@entity2" not in page.text and "@entity1" in page.text


def test_keys_move_between_questions(browser: Any, reader: Reader, tmp_path: Path) -> None:
    render_gallery(reader, tmp_path / "g.html", [*generate_stories(6, 5), *make_hostile_examples()], QuestionFilter())
    visit = browser.open(tmp_path / "g.html", width=400)
    here = "document.activeElement.closest('.case')?.id"
    for key, entry in (("j", "q1"), ("j", "q2"), ("j", "q3"), ("k", "q2")):
        browser.press(key)
        assert browser.evaluate(here) == entry
    browser.press("/")
    assert browser.evaluate("document.activeElement.tagName") == "INPUT"
    shown = "[...document.querySelectorAll('.case')].filter(one => !one.hidden).map(one => one.id).join()"
    browser.evaluate("const i = document.activeElement; i.value = 'alert'; i.dispatchEvent(new Event('input'))")
    assert browser.evaluate(shown) == "q7,q8,q9"
    browser.evaluate("i.value = ''; i.dispatchEvent(new Event('input'))")
    browser.evaluate(
        "const s = document.querySelectorAll('select')[1]; s.value = 'doubt'; s.dispatchEvent(new Event('input'))"
    )
    sure = "[...document.querySelectorAll('.case')].map(one => Number(one.dataset.confidence))"
    assert browser.evaluate(sure) == sorted(browser.evaluate(sure))
    assert browser.evaluate("document.documentElement.scrollWidth") == 400
    assert not visit.messages and [url for url in visit.requests if not url.startswith("file:")] == []


def test_entity_names_are_read_from_the_data_and_kept_in_jsonl(tmp_path: Path) -> None:
    parts = (
        "http://a.example/",
        "@entity0 met @entity1 .",
        "@placeholder slept",
        "@entity1",
        "@entity0:Bo\n@entity1:Ana: B",
    )
    (tmp_path / "a.question").write_text("\n\n".join(parts))
    (example,) = read_questions(tmp_path / "a.question")
    assert example.names == {"@entity0": "Bo", "@entity1": "Ana: B"}
    (tmp_path / "b.jsonl").write_text(jsonl.format_example(example))
    (again,) = read_questions(tmp_path / "b.jsonl")
    assert again == example and again.names == example.names
    (tmp_path / "c.jsonl").write_text(
        '{"document": ["a"], "question": ["XXXXX"], "entities": {"a": 3, "b": "Bo", "c": " "}}'
    )
    (odd,) = read_questions(tmp_path / "c.jsonl")
    assert odd.names == {"b": "Bo"}


@pytest.mark.parametrize("text", ["0.5", "a:b", "0.9:0.1", "-1:1", "0:nan"])
def test_bad_confidence_range_is_an_error(text: str, reader: Reader, tmp_path: Path) -> None:
    from asreader.cli.gallery_command import gallery as command

    with pytest.raises(InputError, match="--confidence"):
        command("bundled", tmp_path, tmp_path / "g.html", confidence=text)


def test_command_writes_the_selected_questions(tmp_path: Path, parsed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from asreader.cli.gallery_command import gallery as command

    (tmp_path / "q.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(40, 6))))
    command(
        "bundled",
        tmp_path / "q.jsonl",
        tmp_path / "g.html",
        show=AnswerSelection.right,
        top=3,
        confidence="0.5:",
        device="cpu",
    )
    page = parsed((tmp_path / "g.html").read_text(encoding="utf-8"))
    assert [attributes["data-verdict"] for attributes in page.all("article")] == ["right"] * 3
    assert "3 questions" in capsys.readouterr().out
