"""text -> words and sentences, compared with the Children's Book Test: reproduce/text.py CBT_VALID RAW_FOLDER [BOOKS]

words      Each sentence of CBT_VALID (cbt_valid.txt) is joined into ordinary text, tokenised again and compared.
           Joining writes straight quotation marks, attached to the quoted text; brackets become () [] {}; full stops,
           commas and clitics ('s, n't) attach to the word before, two hyphens to both sides; a full stop that occurs
           twice, after an abbreviation, is written once.
sentences  The raw books of RAW_FOLDER, cleaned and split, against the same books in CBT_VALID. A sentence end is right
           if both end a sentence after the same word of the aligned texts; text that only one has is not counted.
speed      Cleaning and splitting the books of BOOKS (or RAW_FOLDER) on one core.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, chain
from pathlib import Path

from asreader.cloze.books.cleaning import clean_text, read_books
from asreader.data.example import Sentence
from asreader.data.source_file import make_source_file
from asreader.data.text import tokenizer

OPENING = {"``": '"', "`": "'", "-LRB-": "(", "-LSB-": "[", "-LCB-": "{", "$": "$"}
CLOSING = {"''": '"', "'": "'", "-RRB-": ")", "-RSB-": "]", "-RCB-": "}"}
CLOSE_UP = re.compile(r"n't|'(?:s|m|d|ll|re|ve|n)|[.,;:%]|\.\.\.|[!?]+|--", re.IGNORECASE)
ANCHOR = 6
"""Length in words of a run that occurs once in each of two texts and aligns them."""
LONGEST_GAP = 3000
"""Maximum number of words between two anchors that are compared; longer gaps are text that only one has."""


def join_words(sentence: Sentence) -> str:
    """Words -> ordinary text."""
    text, close, quoting = "", True, False
    for word, following in zip(sentence, (*sentence[1:], ""), strict=True):
        if word == "." and text.endswith("."):
            continue
        # The data write the quote that opens 'I see as a closing one; text has it before the word.
        opens = word in OPENING or (word == "'" and not quoting and following in ("I", "A", "O"))
        quoting = opens if word in ("`", "'") else quoting
        close = close or (word in CLOSING and not opens) or bool(CLOSE_UP.fullmatch(word))
        text += ("" if close else " ") + (OPENING | CLOSING).get(word, word)
        close = opens or word == "--" or (word in ("'t", "'T") and following in ("is", "was"))
    return text


def find_anchors(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs of indices where both texts have the same unique run: the longest series that increases in both."""
    our_runs, their_runs = _find_unique_runs(ours), _find_unique_runs(theirs)
    pairs = [(index, their_runs[run]) for run, index in our_runs.items() if run in their_runs]
    tails: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, index) in enumerate(pairs):
        length = bisect_left(tails, index)
        before.append(last[length - 1] if length else -1)
        tails[length : length + 1] = [index]
        last[length : length + 1] = [number]
    series = []
    number = last[-1] if last else -1
    while number >= 0:
        series.append(pairs[number])
        number = before[number]
    yield from reversed(series)


def _find_unique_runs(words: Sequence[str]) -> dict[tuple[str, ...], int]:
    runs = list(zip(*(words[shift:] for shift in range(ANCHOR)), strict=False))
    counts = Counter(runs)
    return {run: index for index, run in enumerate(runs) if counts[run] == 1}


def align_words(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs of indices of the same word in both texts, in order."""
    a, b = 0, 0
    for next_a, next_b in chain(find_anchors(ours, theirs), [(len(ours), len(theirs))]):
        if max(next_a - a, next_b - b) <= LONGEST_GAP:
            blocks = SequenceMatcher(None, ours[a:next_a], theirs[b:next_b], autojunk=False).get_matching_blocks()
            yield from ((a + block.a + step, b + block.b + step) for block in blocks for step in range(block.size))
        a, b = next_a, next_b


def compare_sentences(ours: Sequence[Sentence], theirs: Sequence[Sentence]) -> dict[str, float]:
    """Precision and recall of our sentence ends against theirs."""
    our_words, their_words = list(chain.from_iterable(ours)), list(chain.from_iterable(theirs))
    our_ends, their_ends = ({end - 1 for end in accumulate(map(len, cut))} for cut in (ours, theirs))
    pairs = list(align_words(our_words, their_words))
    right = sum(a in our_ends and b in their_ends for a, b in pairs)
    return {
        "words_aligned": round(len(pairs) / len(their_words), 4),
        "precision": round(right / sum(a in our_ends for a, _ in pairs), 4),
        "recall": round(right / sum(b in their_ends for _, b in pairs), 4),
        "sentences_equal": round(sum((Counter(ours) & Counter(theirs)).values()) / len(theirs), 4),
    }


def find_counterpart(ours: Sequence[Sentence], theirs: Sequence[Sequence[Sentence]]) -> Sequence[Sentence]:
    """The book that contains most of our sentences."""
    known = frozenset(ours)
    return max(theirs, key=lambda book: len(known.intersection(book)))


def measure_round_trip(sentences: Sequence[Sentence]) -> dict[str, float]:
    """Fraction of sentences whose words are the same after joining and tokenising."""
    joins = {"of_ordinary_text": join_words, "of_words_and_spaces": " ".join}
    return {
        name: round(sum(tokenizer.tokenize(join(sentence)) == sentence for sentence in sentences) / len(sentences), 4)
        for name, join in joins.items()
    }


def main(cbt: Path, raw: Path, folder: Path) -> None:
    theirs = [book.sentences for book in read_books(make_source_file(cbt, cbt.name))]
    print(json.dumps({"benchmark": "words", **measure_round_trip(list(chain.from_iterable(theirs)))}))
    for path in sorted(raw.glob("*.txt")):
        for headings in ("drop", "keep"):
            text = clean_text(path.read_text(encoding="utf-8"), str(path), headings)
            for paragraphs, joined in {"flow together": text, "end sentences": text.replace("\n", "\n\n")}.items():
                ours = tokenizer.tokenize_sentences(joined)
                setting = {"book": path.stem, "headings": headings, "paragraphs": paragraphs}
                print(
                    json.dumps(
                        {"benchmark": "sentences", **setting, **compare_sentences(ours, find_counterpart(ours, theirs))}
                    )
                )
    start = time.perf_counter()
    all_books = chain.from_iterable(
        read_books(make_source_file(path, path.name)) for path in sorted(folder.glob("*.txt"))
    )
    words = sum(sum(map(len, book.sentences)) for book in all_books)
    seconds = time.perf_counter() - start
    row = {"words": words, "seconds": round(seconds, 1), "words_per_second": round(words / seconds)}
    print(json.dumps({"benchmark": "text to sentences", **row}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("valid", type=Path, metavar="CBT_VALID")
    parser.add_argument("raw", type=Path, metavar="RAW_FOLDER")
    parser.add_argument("books", type=Path, metavar="BOOKS", nargs="?", help="default: RAW_FOLDER")
    options = parser.parse_args()
    main(options.valid, options.raw, options.books or options.raw)
