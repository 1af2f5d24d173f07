from __future__ import annotations

from pathlib import Path

from asreader.baselines import predict_answers
from asreader.cloze import stories
from asreader.data.dataset import read_examples
from asreader.data.formats import jsonl
from asreader.evaluation import metrics

FOLDER = Path(stories.__file__).parent
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.txt"))}
ROWS = [jsonl.parse_object(line) for line in (FOLDER / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def test_there_are_a_few_thousand_words() -> None:
    assert len(TEXTS) >= 6
    assert 3_500 <= sum(len(text.split()) for text in TEXTS.values()) <= 5_000
    assert all(text.split("\n")[1] == "" for text in TEXTS.values())


def test_questions_are_about_the_stories_word_for_word() -> None:
    assert len({row["id"] for row in ROWS}) == len(ROWS) == 60
    for row in ROWS:
        assert row["document"] in TEXTS[row["id"].rpartition("-")[0]]
        assert row["question"].count("XXXXX") == 1


def test_answers_and_candidates_stand_in_the_document_and_counting_does_not_help() -> None:
    examples = [example for _, example in read_examples(FOLDER / "questions.jsonl")]
    for example in examples:
        assert example.answer in example.candidates
        assert set(example.candidates) <= set(example.words)
    assert metrics.score_predictions(predict_answers("maximum_frequency", examples), metrics.share_ties).accuracy < 0.4
