"""books -> our questions compared with those of the Children's Book Test: python reproduce/cloze.py DATA WORK

DATA holds `cbt/cbt_valid.txt` (the tokenised validation books), `cbt/cbtest_NE_valid_2000ex.txt` (the official
questions made from them) and `books/cbt_train` (the 98 training books, a folder or an archive), compressed or not.
Prints

1. recall: the fraction of the official validation questions (same sentence, same gap) that are among ours, the number
   of questions per window of 21 sentences, and the fraction of the official candidates that are in our candidate class
   (named entities of the twenty sentences, or common nouns, which both procedures use to fill up);
2. the same with every closed word list of the tagger cross-fitted: in each book only words count that are in an
   official candidate list of another book;
3. maximum frequency on our questions from the validation books and on the official ones;
4. statistics of the training sets rebuilt from the 98 books and of the published ones, and the time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
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
from asreader.data.dataset import read_examples
from asreader.data.example import GAP, Example, Sentence
from asreader.data.statistics import compute_statistics

LISTS = ("TIMES", "ORDINALS", "MEASURES", "LISTED", "_PLACES")
CN_KEEP = 0.74
"""Fraction of our common-noun questions that gives as many as the official file has."""
PUBLISHED = {
    "ne": {"questions": 108_719, "document_words": 433.08, "question_words": 28.01, "shortest": 106, "longest": 1338},
    "cn": {"questions": 120_769, "document_words": 469.80, "question_words": 30.42, "shortest": 72, "longest": 1338},
}


@dataclass(frozen=True)
class LocatedQuestion:
    """An official question and its location: the book, the sentence, the word."""

    example: Example
    book: int
    sentence: int
    word: int


def locate_questions(official: Sequence[Example], books: Sequence[Sequence[Sentence]]) -> Iterator[LocatedQuestion]:
    """Find official questions in the tokenised books by their last sentence and the one before."""
    locations = defaultdict(list)
    for book, sentences in enumerate(books):
        for number in range(1, len(sentences)):
            locations[sentences[number - 1], sentences[number]].append((book, number))
    for example in official:
        gap = example.question.index(GAP)
        sentence = (*example.question[:gap], example.answer or "", *example.question[gap + 1 :])
        for book, number in locations[example.document[-1], sentence][:1]:
            yield LocatedQuestion(example, book, number, gap)


def measure_recall(
    official: Sequence[LocatedQuestion], books: Sequence[Sequence[Sentence]], is_cross_fitted: bool
) -> dict[str, float]:
    """Recall of the official questions by ours, and coverage of their candidates."""
    made = recalled = candidates = in_class = named = 0
    for book, sentences in enumerate(books):
        with _lists_from_other_books(official, book) if is_cross_fitted else nullcontext():
            classes = lexical.classify_words(sentences)
        ids = {example.id for example in make_window_questions("b", sentences, classes, QuestionRecipe())}
        made += len(ids)
        for question in (question for question in official if question.book == book):
            recalled += f"b:{question.sentence + 1}:{question.word + 1}" in ids
            words = _words_by_class(sentences, classes, question.sentence)
            candidates += len(question.example.candidates)
            named += sum(word in words[NAMED] for word in question.example.candidates)
            in_class += sum(word in words[NAMED] | words[NOUN] for word in question.example.candidates)
    return {
        "recall": recalled / len(official),
        "questions_per_window": made / sum(count_windows(len(sentences)) for sentences in books),
        "candidates_named": named / candidates,
        "candidates_in_class": in_class / candidates,
    }


def _words_by_class(sentences: Sequence[Sentence], classes: Sequence[WordClasses], last: int) -> dict[str, set[str]]:
    words = defaultdict(set)
    for number in range(last - DOCUMENT_SENTENCES, last):
        for word, kind in zip(sentences[number], classes[number], strict=True):
            words[kind].add(word)
    return words


class _lists_from_other_books:
    """Restrict the closed lists of the tagger to words among the official candidates of other books."""

    def __init__(self, official: Sequence[LocatedQuestion], book: int) -> None:
        self.known = {word for other in official if other.book != book for word in other.example.candidates}
        self.whole = {name: getattr(lexical, name) for name in LISTS}

    def __enter__(self) -> None:
        for name, words in self.whole.items():
            setattr(lexical, name, words & self.known)

    def __exit__(self, *_: object) -> None:
        for name, words in self.whole.items():
            setattr(lexical, name, words)


def describe_questions(examples: Iterable[Example]) -> dict[str, object]:
    """Statistics of any questions that are published or known for the official files."""
    summary = compute_statistics(examples)
    return {
        "questions": summary.questions,
        "document_words": round(summary.document_tokens.mean, 2),
        "shortest": summary.document_tokens.min,
        "longest": summary.document_tokens.max,
        "question_words": round(summary.question_tokens.mean, 2),
        "candidates": summary.candidates.mean,
        "candidate_missing": summary.candidates_not_in_document,
        "vocabulary": summary.vocabulary_lowercase,
        "lower_case_answers": round(summary.lowercase_answers, 3),
        "answer_rank_1_2_3": [round(fraction, 3) for fraction in summary.answer_ranks[:3]],
    }


def print_row(name: str, **row: object) -> None:
    print(json.dumps({"benchmark": name} | row), flush=True)


def main(data: Path, work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    valid, official_file = next(data.glob("cbt/cbt_valid.txt*")), next(data.glob("cbt/cbtest_NE_valid*"))
    train = next(data.glob("books/cbt_train*"))
    books = [text.read_sentences() for text in find_books([valid])]
    official = [example for _, example in read_examples(official_file)]
    located = list(locate_questions(official, books))
    for is_cross_fitted in (False, True):
        fractions = {
            name: round(fraction, 4) for name, fraction in measure_recall(located, books, is_cross_fitted).items()
        }
        print_row(
            "cloze-recall", official=len(official), placed=len(located), cross_fitted=is_cross_fitted, **fractions
        )
    ours = [
        e
        for n, s in enumerate(books)
        for e in make_window_questions(str(n), s, lexical.classify_words(s), QuestionRecipe())
    ]
    for name, examples in (("official", official), ("ours", ours)):
        frequency = baselines.evaluate_baseline("maximum-frequency", iter(examples)).scores.accuracy
        print_row(
            "cloze-valid", questions_of=name, maximum_frequency=round(frequency, 4), **describe_questions(examples)
        )
    for kind, keep in (("ne", 1.0), ("cn", CN_KEEP)):
        out = work / f"{kind}_train.txt"
        start = time.perf_counter()
        make_books([train], MakingJob(out), BookMaker(QuestionRecipe(kind, keep=keep), "lexical", "cbt"))
        seconds = round(time.perf_counter() - start, 1)
        print_row(
            "cloze-train",
            type=kind,
            keep=keep,
            seconds=seconds,
            **describe_questions(example for _, example in read_examples(out)),
        )
        print_row("cloze-train-published", type=kind, **PUBLISHED[kind])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("work", type=Path, metavar="WORK")
    options = parser.parse_args()
    main(options.data, options.work)
