from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from asreader import readers
from asreader.attention import html_view, shades, terminal_view
from asreader.cloze.stories.generator import generate_stories
from asreader.data.example import GAP, Example
from asreader.data.store import encode_examples
from asreader.data.vocabulary import build_vocabulary
from asreader.errors import InputError
from asreader.inference.answer import Answer
from asreader.inference.reader import ALLOCATOR, Reader, pick_device

EXAMPLES = list(generate_stories(20, seed=5))
STORY = "Ana gave the apple to Bo. Bo thanked Ana and went to New York. In New York it rained."


def reader(question_at: str = "apart") -> Reader:
    words = build_vocabulary(encode_examples(EXAMPLES).count_words(), min_count=2, unknown=10)
    torch.manual_seed(1)
    network = readers.build("attention_sum", words.size, {"embedding": 6, "hidden": 5})
    for parameter in network.parameters():
        parameter.data *= 2
    return Reader(network.eval(), words, question_at=question_at)


@pytest.mark.parametrize("question_at", ["apart", "before", "after", "around"])
def test_one_question_is_answered_as_in_a_batch(question_at: str) -> None:
    asked = reader(question_at)
    predictions = asked.evaluate(encode_examples(EXAMPLES)).predictions
    for example, prediction in zip(EXAMPLES, predictions, strict=True):
        answer = asked.answer(example.words, example.question, example.candidates)
        assert prediction.candidates == example.candidates
        assert answer.answer == prediction.candidates[prediction.best]
        ranked = {choice.word: choice.probability for choice in answer.candidates}
        np.testing.assert_allclose(
            [ranked[word] for word in prediction.candidates], prediction.probabilities, atol=1e-6
        )


@pytest.mark.parametrize("question_at", ["apart", "before", "after", "around"])
def test_a_document_read_once_answers_like_one_read_each_time(question_at: str) -> None:
    asked = reader(question_at)
    book = asked.read(STORY)
    for question in ("XXXXX thanked Ana.", "Bo lives in ____.", "@placeholder rained"):
        assert book.answer(question) == asked.answer(STORY, question)


def test_the_document_is_encoded_once() -> None:
    asked = reader()
    reads = 0

    def count(*_: object) -> None:
        nonlocal reads
        reads += 1

    asked.network.document_encoder.register_forward_hook(count)  # type: ignore[union-attr, operator]
    book = asked.read(STORY)
    for _ in range(3):
        book.answer("XXXXX thanked Ana.")
    assert reads == 1


def test_answers_are_those_of_the_weights_of_now() -> None:
    asked, other = reader(), reader()
    question = "XXXXX thanked Ana."
    before = asked.answer(STORY, question)
    for parameter in other.network.parameters():
        parameter.data *= 1.7
    asked.network.load_state_dict(other.network.state_dict())
    assert asked.answer(STORY, question) == other.answer(STORY, question) != before


def test_nothing_to_propose_is_no_answer() -> None:
    answer = reader().answer("... -- !", "XXXXX thanked Ana.")
    assert (answer.answer, answer.candidates) == (None, ())


def test_two_threads_read_a_store_like_one() -> None:
    asked, store = reader(), encode_examples(list(generate_stories(150, seed=9)))
    alone = asked.evaluate(store)
    torch.set_num_threads(2)
    try:
        shared = asked.evaluate(store)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert shared.loss == pytest.approx(alone.loss, abs=1e-12)
    for one, other in zip(alone.predictions, shared.predictions, strict=True):
        assert one.id == other.id
        assert (one.probabilities == other.probabilities).all()


def test_threads_that_ask_at_the_same_time_get_the_answers_of_one() -> None:
    book = reader().read(STORY)
    asked = [
        (f"XXXXX {words} Ana.", given) for words in ("thanked", "gave New York to") for given in (None, ["Bo", "Ana"])
    ]
    alone = [book.answer(*question) for question in asked]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda question: book.answer(*question), asked * 25)) == alone * 25


def test_support_is_the_attention_on_the_positions_of_a_candidate() -> None:
    answer = reader().answer(STORY, "XXXXX lives there.", ["Ana", "New York", "Bo", "Paris"])
    support = {choice.word: sum(answer.attention[place] for place in choice.positions) for choice in answer.candidates}
    total = sum(support.values())
    for choice in answer.candidates:
        assert choice.probability == pytest.approx(support[choice.word] / total, abs=1e-6)
    places = {choice.word: choice.positions for choice in answer.candidates}
    assert [answer.tokens[place] for place in places["New York"]] == ["New", "York", "New", "York"]
    assert places["Paris"] == ()
    assert answer.confidence == max(choice.probability for choice in answer.candidates)


def test_without_candidates_every_word_is_one() -> None:
    answer = reader().answer(STORY, "XXXXX thanked Ana.")
    assert {choice.word for choice in answer.candidates} == {w for w in answer.tokens if w.isalnum()}
    assert sum(choice.probability for choice in answer.candidates) == pytest.approx(1, abs=1e-5)


def test_candidates_come_back_as_they_were_written() -> None:
    answer = reader().answer("Ana's dog barked. Bo ran.", "XXXXX barked.", ["Ana's dog", "Bo"])
    found = {choice.word: len(choice.positions) for choice in answer.candidates}
    assert found == {"Ana's dog": 3, "Bo": 1}


def test_no_candidate_in_the_document_is_no_answer() -> None:
    answer = reader().answer(STORY, "XXXXX thanked Ana.", ["Paris", "Rome"])
    assert answer.answer is None
    assert answer.confidence == 0.0
    assert answer.as_json()["answer"] is None
    terminal_view.render_terminal(answer)


@pytest.mark.parametrize(("document", "question"), [("", "who?"), (" \n", "who?"), ("Ana ran.", ""), ([], "who?")])
def test_nothing_to_read_or_ask_is_said(document: str, question: str) -> None:
    with pytest.raises(InputError, match="empty"):
        reader().answer(document, question)


def test_json_has_the_fixed_fields() -> None:
    answer = reader().answer(STORY, "XXXXX thanked Ana.")
    document = answer.as_json(top=2)
    assert set(document) == {"answer", "confidence", "sure", "candidates", "tokens", "attention"}
    assert len(document["candidates"]) == 2  # type: ignore[arg-type]
    assert len(document["tokens"]) == len(document["attention"])  # type: ignore[arg-type]


def test_unknown_words_are_counted_over_documents() -> None:
    asked = reader()
    examples = [Example("a", (("the", "zzz"), ("the",)), (GAP,)), Example("b", (("zzz", "yyy"),), (GAP,))]
    assert asked.evaluate(encode_examples(examples)).unknown_words == 3 / 5


def test_the_loss_is_the_mean_over_questions_whose_answer_has_support() -> None:
    examples = [
        Example("a", (("Ana", "thanked", "Bo"),), (GAP, "thanked", "Bo"), ("Ana", "Bo"), "Ana"),
        Example("b", (("Ana", "thanked", "Bo"),), (GAP, "thanked", "Bo"), ("Ana", "Cy"), "Cy"),
        Example("c", (("Ana", "thanked", "Bo"),), (GAP, "thanked", "Ana"), ("Ana", "Bo"), "Bo"),
        Example("d", (("Ana", "thanked", "Bo"),), (GAP, "thanked", "Bo"), ("Ana", "Bo")),
    ]
    asked, store = reader(), encode_examples(examples)
    ((numbers, batch, reading),) = asked.read_store(store)
    losses = [-float(reading.log_probabilities[list(numbers).index(n), place]) for n, place in ((0, 0), (2, 1))]
    assert batch.answers[np.argsort(numbers)].tolist() == [0, 1, 1, -1]
    assert asked.evaluate(store).loss == pytest.approx(sum(losses) / 2)


def test_predictions_have_the_candidates_of_the_data_in_its_order() -> None:
    """Also where other questions of the batch have more candidates, or where they are proposed from the document."""
    examples = [
        Example("a", (("Bo", "thanked", "Ana", "and", "Bo"),), (GAP,), ("Cy", "Bo", "Ana", "and"), "Bo"),
        Example("b", (("Bo", "thanked", "Ana"),), (GAP,), ("Ana",), "Ana"),
        Example("c", (("Bo", ".", "Ana", "Bo"),), (GAP,)),
    ]
    predictions = reader().evaluate(encode_examples(examples)).predictions
    assert [prediction.id for prediction in predictions] == ["a", "b", "c"]
    assert [prediction.candidates for prediction in predictions] == [example.choices for example in examples]
    assert [prediction.answer for prediction in predictions] == ["Bo", "Ana", None]
    for prediction in predictions:
        assert len(prediction.probabilities) == len(prediction.candidates)
        assert prediction.probabilities.sum() == pytest.approx(1, abs=1e-6)


def test_a_device_that_is_not_there_is_said() -> None:
    for name in ("cuda:99", "warp"):
        with pytest.raises(InputError, match="device"):
            pick_device(name)


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run"):
        Reader.load(tmp_path)


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&amp;",
    "\u202eevil",
    "😀" * 50,
    "x" * 100_000,
]


def hostile() -> Answer:
    return reader().answer(HOSTILE, ["<b>", GAP], HOSTILE)


def test_html_of_hostile_text_is_text() -> None:
    page = html_view.render_answer_page(hostile())
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert "http:" not in page
    terminal_view.render_terminal(hostile())


def test_the_strongest_sentence_is_the_one_with_most_attention_on_the_answer() -> None:
    answer = reader().answer(STORY, "XXXXX thanked Ana.", ["Ana", "Bo"])
    chosen = shades.find_strongest_sentence(answer)
    starts = np.cumsum([0, *map(len, answer.document)])
    weights = [
        sum(answer.attention[p] for p in answer.candidates[0].positions if starts[n] <= p < starts[n + 1])
        for n in range(len(answer.document))
    ]
    assert chosen == int(np.argmax(weights))


def test_questions_whose_answer_is_not_in_the_document_can_be_left_out() -> None:
    examples = [
        Example("a", (("Ana", "thanked", "Bo"),), (GAP, "thanked", "Bo"), ("Ana", "Bo"), "Ana"),
        Example("b", (("Ana", "thanked", "Bo"),), (GAP, "thanked", "Bo"), ("Ana", "Cy"), "Cy"),
    ]
    store = encode_examples(examples)
    whole = reader().evaluate(store)
    part = whole.answerable(store)
    assert [prediction.id for prediction in part.predictions] == ["a"]
    assert (whole.answer_not_in_document, part.answer_not_in_document) == (1, 0)
    assert part.scores.questions == 1


def test_memory_of_a_gpu_may_grow_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch looks at its settings when a GPU is first used, so they must be there before."""
    for name in ALLOCATOR:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    seen: list[str | None] = []
    monkeypatch.setattr(torch, "empty", lambda *_, **__: seen.append(os.environ.get(ALLOCATOR[0])))
    pick_device("cpu")
    pick_device("cuda")
    assert seen == [None, "expandable_segments:True"]
    monkeypatch.delenv(ALLOCATOR[0])
    monkeypatch.setenv(ALLOCATOR[1], "max_split_size_mb:64")
    pick_device("cuda:0")
    assert ALLOCATOR[0] not in os.environ
