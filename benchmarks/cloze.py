"""Our questions beside those of the Children's Book Test: python benchmarks/cloze.py DATA WORK

DATA holds `cbt/cbt_valid.txt` (the tokenised validation books), `cbt/cbtest_NE_valid_2000ex.txt` (the official
questions made from them) and `books/cbt_train` (the 98 training books, a folder or an archive), perhaps compressed.
Prints

1. recall: which part of the official validation questions (same sentence, same gap) is among ours, how many questions
   we make from a window of 21 sentences, and which part of the official candidates is in our candidate class: named
   entities of the twenty sentences, or common nouns, from which both procedures fill up;
2. the same with every closed word list of the tagger cross-fitted: in each book only those words count that an official
   candidate list of another book holds;
3. maximum frequency on our questions from the validation books and on the official ones;
4. the training sets rebuilt from the 98 books beside the published statistics, and the time it took.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from asreader import baselines
from asreader.cloze.books.book_maker import BookMaker, find_books, make_books
from asreader.cloze.books.window_questions import (
    DOCUMENT_SENTENCES,
    QuestionRecipe,
    count_windows,
    make_window_questions,
)
from asreader.cloze.making_job import MakingJob
from asreader.cloze.tagging import NAMED, NOUN, WordClasses, lexical
from asreader.data.example import GAP, Example, Sentence
from asreader.data.reading import read
from asreader.data.statistics import statistics

LISTS = ("TIMES", "ORDINALS", "MEASURES", "ENTITY_LIST_WORDS", "_PLACES")
CN_KEEP = 0.74
"""Share of our common-noun questions that makes as many as the official file has."""
PUBLISHED = {
    "ne": {"questions": 108_719, "document_words": 433.08, "question_words": 28.01, "shortest": 106, "longest": 1338},
    "cn": {"questions": 120_769, "document_words": 469.80, "question_words": 30.42, "shortest": 72, "longest": 1338},
}


@dataclass(frozen=True)
class Placed:
    """An official question and where it stands: the book, the sentence, the word."""

    example: Example
    book: int
    sentence: int
    word: int


def placed(official: Sequence[Example], books: Sequence[Sequence[Sentence]]) -> Iterator[Placed]:
    """Official questions in the tokenised books, found by their last sentence and the one before."""
    where = defaultdict(list)
    for book, sentences in enumerate(books):
        for number in range(1, len(sentences)):
            where[sentences[number - 1], sentences[number]].append((book, number))
    for example in official:
        gap = example.question.index(GAP)
        whole = (*example.question[:gap], example.answer or "", *example.question[gap + 1 :])
        for book, number in where[example.document[-1], whole][:1]:
            yield Placed(example, book, number, gap)


def recall(official: Sequence[Placed], books: Sequence[Sequence[Sentence]], crossed: bool) -> dict[str, float]:
    """How our questions from the validation books meet the official ones."""
    made = found = candidates = in_class = named = 0
    for book, sentences in enumerate(books):
        with _lists_of_other_books(official, book) if crossed else _as_they_are():
            classes = lexical.classify_words(sentences)
        ids = {example.id for example in make_window_questions("b", sentences, classes, QuestionRecipe())}
        made += len(ids)
        for question in (question for question in official if question.book == book):
            found += f"b:{question.sentence + 1}:{question.word + 1}" in ids
            kinds = _kinds(sentences, classes, question.sentence)
            candidates += len(question.example.candidates)
            named += sum(word in kinds[NAMED] for word in question.example.candidates)
            in_class += sum(word in kinds[NAMED] | kinds[NOUN] for word in question.example.candidates)
    return {
        "recall": found / len(official),
        "questions_per_window": made / sum(count_windows(len(sentences)) for sentences in books),
        "candidates_named": named / candidates,
        "candidates_in_class": in_class / candidates,
    }


def _kinds(sentences: Sequence[Sentence], classes: Sequence[WordClasses], last: int) -> dict[str, set[str]]:
    kinds = defaultdict(set)
    for number in range(last - DOCUMENT_SENTENCES, last):
        for word, kind in zip(sentences[number], classes[number], strict=True):
            kinds[kind].add(word)
    return kinds


class _lists_of_other_books:
    """The closed lists of the tagger, cut down to words that official candidates of other books hold."""

    def __init__(self, official: Sequence[Placed], book: int) -> None:
        self.known = {word for other in official if other.book != book for word in other.example.candidates}
        self.whole = {name: getattr(lexical, name) for name in LISTS}

    def __enter__(self) -> None:
        for name, words in self.whole.items():
            setattr(lexical, name, words & self.known)

    def __exit__(self, *_: object) -> None:
        for name, words in self.whole.items():
            setattr(lexical, name, words)


class _as_they_are:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def profile(examples: Iterable[Example]) -> dict[str, object]:
    """What is published or known of the official files, of any questions."""
    found = statistics(examples)
    return {
        "questions": found.questions,
        "document_words": round(found.document_tokens.mean, 2),
        "shortest": found.document_tokens.min,
        "longest": found.document_tokens.max,
        "question_words": round(found.question_tokens.mean, 2),
        "candidates": found.candidates.mean,
        "candidate_missing": found.candidates_not_in_document,
        "vocabulary": found.vocabulary_lowercase,
        "lower_case_answers": round(found.lowercase_answers, 3),
        "answer_rank_1_2_3": [round(share, 3) for share in found.answer_ranks[:3]],
    }


def show(name: str, **row: object) -> None:
    print(json.dumps({"benchmark": name} | row), flush=True)


def main(data: Path, work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    valid, asked = next(data.glob("cbt/cbt_valid.txt*")), next(data.glob("cbt/cbtest_NE_valid*"))
    train = next(data.glob("books/cbt_train*"))
    books = [book.read_sentences() for book in find_books([valid])]
    official = [example for _, example in read(asked)]
    found = list(placed(official, books))
    for crossed in (False, True):
        shares = {name: round(share, 4) for name, share in recall(found, books, crossed).items()}
        show("cloze-recall", official=len(official), placed=len(found), cross_fitted=crossed, **shares)
    ours = [
        e
        for n, s in enumerate(books)
        for e in make_window_questions(str(n), s, lexical.classify_words(s), QuestionRecipe())
    ]
    for name, examples in (("official", official), ("ours", ours)):
        frequency = baselines.evaluate("maximum-frequency", iter(examples)).scores.accuracy
        show("cloze-valid", questions_of=name, maximum_frequency=round(frequency, 4), **profile(examples))
    for kind, keep in (("ne", 1.0), ("cn", CN_KEEP)):
        out = work / f"{kind}_train.txt"
        start = time.perf_counter()
        make_books([train], MakingJob(out), BookMaker(QuestionRecipe(kind, keep=keep), "lexical", "cbt"))
        seconds = round(time.perf_counter() - start, 1)
        show("cloze-train", type=kind, keep=keep, seconds=seconds, **profile(example for _, example in read(out)))
        show("cloze-train-published", type=kind, **PUBLISHED[kind])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
