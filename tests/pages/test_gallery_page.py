from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.cloze.stories.generator import stories
from asreader.data.example import GAP, Example
from asreader.data.formats import jsonl
from asreader.data.loading import prepare
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.evaluation.predictions import Prediction
from asreader.inference.reader import Reader
from asreader.pages import gallery_page, question_filter
from asreader.pages.filter_options import AnswerSelection, QuestionOrder
from asreader.pages.question_filter import AnsweredQuestion, QuestionFilter, select_questions
from asreader.system.markup import visible

NAMES = ("Ana", "Bo", "Cy", "Di")
HOSTILE = "<script>alert(1)</script>"


def case(number: int, shares: tuple[float, ...], answer: str | None, words: str = "Ana met Bo .") -> AnsweredQuestion:
    example = Example(f"q{number}", (tuple(words.split()),), (GAP, "slept"), NAMES[: len(shares)], answer)
    return AnsweredQuestion(example, Prediction(example.id, answer, example.candidates, np.array(shares)))


CASES = st.lists(
    st.tuples(
        st.lists(st.sampled_from((0.0, 0.1, 0.2, 0.5)), min_size=2, max_size=4).map(tuple),
        st.sampled_from(("Ana", "Bo", None)),
        st.sampled_from(("Ana met Bo .", "Cy slept", "Ana", "Bo Bo Bo Cy")),
    ),
    max_size=12,
).map(lambda rows: [case(number, *row) for number, row in enumerate(rows)])


def slow(known: list[AnsweredQuestion], wish: QuestionFilter) -> list[str]:
    """The same, in plain steps."""
    rows = []
    for place, one in enumerate(known):
        shares, names = list(one.prediction.probabilities), one.prediction.candidates
        top = shares.index(max(shares))
        said, answer = names[top], one.prediction.answer
        support = None if answer is None else shares[names.index(answer)]
        right = None if answer is None else said == answer
        wanted = {
            AnswerSelection.every: True,
            AnswerSelection.right: right is True,
            AnswerSelection.wrong: right is False,
            AnswerSelection.surprising: right is not None,
        }
        if not wanted[wish.show]:
            continue
        if not wish.least <= shares[top] <= wish.most:
            continue
        if wish.word and wish.word not in (*one.example.words, *one.example.question, *one.example.candidates):
            continue
        if wish.answer and wish.answer not in (said, answer):
            continue
        order = wish.order or {
            AnswerSelection.every: QuestionOrder.data,
            AnswerSelection.surprising: QuestionOrder.surprise,
        }.get(wish.show, QuestionOrder.confidence)
        key = {
            QuestionOrder.data: 0, QuestionOrder.confidence: -shares[top], QuestionOrder.doubt: shares[top],
            QuestionOrder.surprise: 9 if support is None else support, QuestionOrder.length: -len(one.example.words),
        }[order]  # fmt: skip
        rows.append((key, place, one.example.id))
    return [id for _, _, id in sorted(rows)][: wish.top]


WISHES = st.builds(
    QuestionFilter,
    show=st.sampled_from(AnswerSelection),
    word=st.sampled_from(("", "Cy", "slept", "Zoe")),
    answer=st.sampled_from(("", "Ana", "Bo")),
    least=st.sampled_from((0.0, 0.15)),
    most=st.sampled_from((0.3, 1.0)),
    order=st.sampled_from((None, *QuestionOrder)),
    top=st.integers(1, 6),
)


@given(CASES, WISHES)
def test_the_wanted_questions_in_the_wanted_order(known: list[AnsweredQuestion], wish: QuestionFilter) -> None:
    assert [one.example.id for one in select_questions(known, wish)] == slow(known, wish)


def test_a_word_is_found_in_any_case_and_as_an_entitys_name() -> None:
    example = Example("q", (("@entity1", "slept"),), (GAP,), ("@entity1",), "@entity1", {"@entity1": "Ana Berg"})
    one = AnsweredQuestion(example, Prediction("q", "@entity1", ("@entity1",), np.array([1.0])))
    assert one.has("SLEPT") and one.has("berg") and one.has("@entity1") and not one.has("Ber")
    assert one.answers("Ana Berg") and one.answers("@entity1") and not one.answers("slept")


def test_an_answer_that_is_no_candidate_has_no_support() -> None:
    one = case(1, (0.6, 0.4), "Zoe")
    assert one.support == 0.0 and one.right is False
    assert case(1, (0.6, 0.4), None).right is None


def test_questions_are_paired_by_id_whatever_the_order() -> None:
    known = [case(n, (0.6, 0.4), "Ana") for n in range(3)]
    asked, said = [one.example for one in known], [one.prediction for one in known]
    found = question_filter.match_predictions(asked, [said[2], said[0]])
    assert [one.example.id for one in found] == ["q0", "q2"]
    with pytest.raises(InputError, match="other candidates"):
        question_filter.match_predictions(asked, [Prediction("q1", "Ana", ("Ana", "Zoe"), np.array([0.5, 0.5]))])


def test_a_store_and_its_data_give_the_same_questions(tmp_path: Path) -> None:
    made = list(stories(5, 3))
    (tmp_path / "valid.jsonl").write_text("".join(map(jsonl.line, made)))
    prepare([tmp_path / "valid.jsonl"], tmp_path / "stores", format=None, only=None, skip_bad=False)
    assert list(question_filter.read_questions(tmp_path / "valid.jsonl")) == made
    assert list(question_filter.read_questions(tmp_path / "stores", split="valid")) == made


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader.load("bundled", "cpu")


def written(reader: Reader, out: Path, asked: list[Example], wish: QuestionFilter) -> str:
    gallery_page.write_gallery(out, reader, f"{HOSTILE} on data", gallery_page.answer_questions(reader, asked), wish)
    return out.read_text(encoding="utf-8")


def test_the_page_shows_every_wanted_question(reader: Reader, tmp_path: Path, parsed: Any) -> None:
    asked = list(stories(30, 5))
    page = parsed(written(reader, tmp_path / "g.html", asked, QuestionFilter(top=7)))
    page.check()
    shown = page.all("article")
    assert len(shown) == 7
    for example in asked[:7]:
        assert example.id in page.text
    said = {one.id: one for one in reader.evaluate(cases_store(asked)).predictions}
    for own, example in zip(shown, asked, strict=False):
        prediction = said[example.id]
        right = prediction.candidates[prediction.best] == example.answer
        assert own["data-verdict"] == ("right" if right else "wrong")
        assert float(own["data-confidence"]) == pytest.approx(prediction.probabilities.max(), abs=1e-5)


def cases_store(asked: list[Example]) -> Any:
    from asreader.data.store import encode

    return encode(asked)


def test_saved_predictions_are_taken_as_they_are(reader: Reader, tmp_path: Path) -> None:
    asked = list(stories(4, 5))
    said = [Prediction(e.id, e.answer, e.candidates, np.eye(len(e.candidates))[0]) for e in asked]
    predictions.write(tmp_path / "said.jsonl", said)
    known = gallery_page.answer_questions(reader, asked, tmp_path / "said.jsonl")
    assert [one.chosen for one in known] == [e.candidates[0] for e in asked]
    with pytest.raises(InputError, match="no question"):
        gallery_page.answer_questions(reader, list(stories(2, 99)), tmp_path / "said.jsonl")


def test_nothing_that_fits_is_said(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="widen the filters"):
        written(reader, tmp_path / "g.html", list(stories(3, 5)), QuestionFilter(word="aardvark"))
    assert not (tmp_path / "g.html").exists()


def hostile() -> list[Example]:
    words = (HOSTILE, "\u202e\u2069evil", "\x00\x1b[0m", "x" * 100_000, "'\"><img/src=x/onerror=alert(1)>", "😀")
    return [Example(f"{HOSTILE}\u202e{n}", (words, words), (*words, GAP), words, words[n % 5]) for n in range(3)]


def test_hostile_text_is_text(reader: Reader, tmp_path: Path, parsed: Any) -> None:
    page = parsed(written(reader, tmp_path / "g.html", hostile(), QuestionFilter()))
    page.check()
    assert page.text.count(HOSTILE) > 20 and visible("\u202e\u2069evil") in page.text
    assert (tmp_path / "g.html").stat().st_size < 200_000


def test_names_stand_for_entities(reader: Reader, tmp_path: Path, parsed: Any) -> None:
    words = ("@entity1", "met", "@entity2", ".")
    asked = [Example("q", (words,), (GAP, "slept"), ("@entity1", "@entity2"), "@entity2", {"@entity2": "Ana Berg"})]
    page = parsed(written(reader, tmp_path / "g.html", asked, QuestionFilter()))
    assert "Ana Berg" in page.text and "@entity2" not in page.text and "@entity1" in page.text


def test_keys_lead_from_question_to_question(browser: Any, reader: Reader, tmp_path: Path) -> None:
    written(reader, tmp_path / "g.html", [*stories(6, 5), *hostile()], QuestionFilter())
    visit = browser.open(tmp_path / "g.html", width=400)
    here = "document.activeElement.closest('.case')?.id"
    for key, place in (("j", "q1"), ("j", "q2"), ("j", "q3"), ("k", "q2")):
        browser.press(key)
        assert browser.value(here) == place
    browser.press("/")
    assert browser.value("document.activeElement.tagName") == "INPUT"
    shown = "[...document.querySelectorAll('.case')].filter(one => !one.hidden).map(one => one.id).join()"
    browser.value("const i = document.activeElement; i.value = 'alert'; i.dispatchEvent(new Event('input'))")
    assert browser.value(shown) == "q7,q8,q9"
    browser.value("i.value = ''; i.dispatchEvent(new Event('input'))")
    browser.value(
        "const s = document.querySelectorAll('select')[1]; s.value = 'doubt'; s.dispatchEvent(new Event('input'))"
    )
    sure = "[...document.querySelectorAll('.case')].map(one => Number(one.dataset.confidence))"
    assert browser.value(sure) == sorted(browser.value(sure))
    assert browser.value("document.documentElement.scrollWidth") == 400
    assert not visit.complaints and [url for url in visit.requests if not url.startswith("file:")] == []


def test_names_come_from_the_data_and_stay_in_jsonl(tmp_path: Path) -> None:
    parts = (
        "http://a.example/",
        "@entity0 met @entity1 .",
        "@placeholder slept",
        "@entity1",
        "@entity0:Bo\n@entity1:Ana: B",
    )
    (tmp_path / "a.question").write_text("\n\n".join(parts))
    (example,) = question_filter.read_questions(tmp_path / "a.question")
    assert example.names == {"@entity0": "Bo", "@entity1": "Ana: B"}
    (tmp_path / "b.jsonl").write_text(jsonl.line(example))
    (again,) = question_filter.read_questions(tmp_path / "b.jsonl")
    assert again == example and again.names == example.names
    (tmp_path / "c.jsonl").write_text(
        '{"document": ["a"], "question": ["XXXXX"], "entities": {"a": 3, "b": "Bo", "c": " "}}'
    )
    (odd,) = question_filter.read_questions(tmp_path / "c.jsonl")
    assert odd.names == {"b": "Bo"}


@pytest.mark.parametrize("text", ["0.5", "a:b", "0.9:0.1", "-1:1", "0:nan"])
def test_a_range_that_is_none_is_said(text: str, reader: Reader, tmp_path: Path) -> None:
    from asreader.cli.report import gallery as command

    with pytest.raises(InputError, match="--confidence"):
        command("bundled", tmp_path, tmp_path / "g.html", confidence=text)


def test_the_command_writes_what_was_asked_for(tmp_path: Path, parsed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from asreader.cli.report import Show as Shown
    from asreader.cli.report import gallery as command

    (tmp_path / "q.jsonl").write_text("".join(map(jsonl.line, stories(40, 6))))
    command(
        "bundled", tmp_path / "q.jsonl", tmp_path / "g.html", show=Shown.right, top=3, confidence="0.5:", device="cpu"
    )
    page = parsed((tmp_path / "g.html").read_text(encoding="utf-8"))
    assert [own["data-verdict"] for own in page.all("article")] == ["right"] * 3
    assert "3 questions" in capsys.readouterr().out
