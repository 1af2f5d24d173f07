from __future__ import annotations

import re
import subprocess
import sys
import time
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.data.text.tokenizer import tokenize, tokenize_question, tokenize_sentences

WORDS = {
    # quotation marks, double: straight, curly, doubled
    '"Come in," said Ada.': "`` Come in , '' said Ada .",
    "“Come in,” said Ada.": "`` Come in , '' said Ada .",
    "``Come in,'' said Ada.": "`` Come in , '' said Ada .",
    'He said "--no" and "...well" and ("yes").': "He said `` -- no '' and `` ... well '' and -LRB- `` yes '' -RRB- .",
    "\"'Go,' he told me,\" said Ada.": "`` ` Go , ' he told me , '' said Ada .",
    # quotation marks, single, and what only looks like them
    "'Come in,' said Ada.": "` Come in , ' said Ada .",
    "‘Come in,’ said Ada.": "` Come in , ' said Ada .",
    "`Come in,' said Ada.": "` Come in , ' said Ada .",
    "'I see,' said Ada.": "' I see , ' said Ada .",
    "‘I see,’ said Ada.": "` I see , ' said Ada .",
    "'Tis nine o'clock; give 'em the dogs' rock 'n' roll.": (
        "'T is nine o'clock ; give 'em the dogs ' rock 'n' roll ."
    ),
    "‘Tis late, ‘twas early.": "'T is late , 't was early .",
    "It was in the '90s, ol' boy.": "It was in the '90s , ol' boy .",
    # contractions
    "I can't, won't, don't, shan't, sha'n't.": "I ca n't , wo n't , do n't , sha n't , sha n't .",
    "I CAN'T. We cannot. I'm gonna.": "I CA N'T . We can not . I 'm gon na .",
    "Ada's cat, the Smiths' cat, he'd've gone.": "Ada 's cat , the Smiths ' cat , he 'd 've gone .",
    "Don’t you’ll we’re I’ve": "Do n't you 'll we 're I 've",
    "D'ye see more'n one bull's-eye?": "D' ye see more 'n one bull 's - eye ?",
    "O'Neil said ma'am, s'pose so": "O'Neil said ma'am , s'pose so",
    # points
    "Mr. Fox met Dr. J. K. Hall of St. Ives.": "Mr. Fox met Dr. J. K. Hall of St. Ives .",
    "He took vitamin B.": "He took vitamin B .",
    'It is I." So was I.': "It is I . '' So was I .",
    "Wait... what…? No.... Oh . . . yes": "Wait ... what ... ? No ... Oh ... yes",
    "What?! Yes!!": "What ?! Yes !!",
    "See No. 5, p. 7 of example.com or http://example.org/a_b.": (
        "See No. 5 , p. 7 of example.com or http://example.org/a_b ."
    ),
    # dashes, brackets, numbers
    "well-known--or so—he – she": "well-known -- or so -- he -- she",
    "a (b) [c] {d}": "a -LRB- b -RRB- -LSB- c -RSB- -LCB- d -RCB-",
    "1,000.50 at 10:30 on the 20th, $3 or 5%": "1,000.50 at 10:30 on the 20th , $ 3 or 5 %",
    # marks of the data
    "XXXXX's ex-XXXXX (@entity12's)": "XXXXX 's ex - XXXXX -LRB- @entity12 's -RRB-",
    # other scripts
    "Kostieï e\u0301te\u0301 हिन्दी да-да": "Kostieï e\u0301te\u0301 हिन्दी да-да",
    "so\u00adft zero\u200bwidth\ufeff no\u00a0break": "soft zerowidth no break",
    "": "",
}


@pytest.mark.parametrize("text", WORDS)
def test_words(text: str) -> None:
    assert " ".join(tokenize(text)) == WORDS[text]


SENTENCES = {
    "One day. Two days! Three?": ["One day .", "Two days !", "Three ?"],
    # As in CBT: every mark that ends a sentence ends it, whatever follows.
    "They tried, but, alas! nobody came.": ["They tried , but , alas !", "nobody came ."],
    '"Stop!" cried Ada. "Now."': ["`` Stop ! ''", "cried Ada .", "`` Now . ''"],
    "(He left.) She stayed.": ["-LRB- He left . -RRB-", "She stayed ."],
    "Mr. Fox came at 5 p.m. He left. It was 6 p.m. when": [
        "Mr. Fox came at 5 p.m. .",
        "He left .",
        "It was 6 p.m. when",
    ],
    'Nuts, figs, etc. The "U.S." and so on, etc.': ["Nuts , figs , etc. .", "The `` U.S. '' and so on , etc. ."],
    "Oh ... well, J. P. Hall. Yes... No.": ["Oh ... well , J. P. Hall .", "Yes ... No ."],
    "A TITLE\n\nThe first line\ngoes on.\r\n\r\nThe next": ["A TITLE", "The first line goes on .", "The next"],
    "What?! No! ! Yes": ["What ?!", "No ! !", "Yes"],
    " \n\n \n": [],
}


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences(text: str) -> None:
    assert [" ".join(sentence) for sentence in tokenize_sentences(text)] == SENTENCES[text]


@pytest.mark.parametrize("gap", ["XXXXX", "XXXXXXX", "@placeholder", "_____", "___"])
def test_tokenize_question_finds_every_gap_mark(gap: str) -> None:
    assert (
        " ".join(tokenize_question(f"The {gap}'s cat, Mr. {gap}. Where?")) == "The XXXXX 's cat , Mr. XXXXX . Where ?"
    )


CORES = (
    "the Fox said well-known don't can't cannot we'll Ada's dogs' o'clock 'tis 'em Mr. etc. p.m. U.S. J. I A gonna "
    "bull's-eye Unc' ol' 3.5 1,000 20th XXXXX @entity7 été ... -- * - ' n't 's `` '' -LRB- example.com d'ye sha'n't"
).split()
BEFORE = ["", "", "", '"', "'", "“", "‘", "(", "[", "--", "—", "\"'", "_", "$"]
AFTER = ["", "", "", ",", ".", "!", "?", '"', "'", '."', ",'", ".)", "…", "--", ";", "?!", "]"]
SPACES = [" ", " ", "  ", "\n"]
pieces = st.tuples(*map(st.sampled_from, (BEFORE, CORES, AFTER, SPACES))).map("".join)
typography = st.lists(pieces, max_size=12).map("".join)


@given(typography)
def test_tokenised_text_keeps_its_words(text: str) -> None:
    found = tokenize(text)
    assert tokenize(" ".join(found)) == found


@given(st.lists(st.sampled_from(["cannot", "CANNOT", "Gonna", "XXXXX", "X", "9", "nt", "don", "Ana"])).map("".join))
def test_a_single_word_is_tokenised_like_one_before_a_space(text: str) -> None:
    assert tokenize(text) == tokenize(f"{text} ")


@given(typography)
def test_a_tokenised_sentence_stays_one_sentence(text: str) -> None:
    for sentence in tokenize_sentences(text):
        assert tokenize_sentences(" ".join(sentence)) == (sentence,)


@given(typography.filter(lambda text: not any(short in text for short in ("etc.", "U.S.", "p.m.", "J."))))
def test_sentences_contain_the_words_of_the_text_in_order(text: str) -> None:
    assert tuple(chain.from_iterable(tokenize_sentences(text))) == tokenize(text)


def letters(text: str) -> list[str]:
    unbracketed = re.sub("-[LR][RSC]B-", " ", text)
    return [letter for letter in unbracketed if letter.isascii() and letter.isalnum()]


@given(st.text(max_size=60))
def test_words_contain_no_spaces_and_all_letters_of_the_text(text: str) -> None:
    found = tokenize(text)
    assert all(word and word.split() == [word] for word in found)
    assert letters(" ".join(found)) == letters(text)


@given(st.text(alphabet="ab .'\"", max_size=40), st.text(alphabet="ab .'\"", max_size=40))
def test_paragraphs_are_independent(first: str, second: str) -> None:
    assert tokenize_sentences(f"{first}\n\n{second}") == tokenize_sentences(first) + tokenize_sentences(second)


@pytest.mark.parametrize(
    "unit", ["a'", "x's-", "é's-", "a.", ". ", "' ", '"', "-", "X", "(", "etc. ", "1,", "\n ", "…"]
)
def test_tokenising_takes_linear_time(unit: str) -> None:
    start = time.process_time()
    assert all(word.split() == [word] for sentence in tokenize_sentences(unit * 30_000) for word in sentence)
    assert time.process_time() - start < 2


def test_the_tokenizer_imports_no_library() -> None:
    code = "import sys, asreader.data.text.tokenizer; sys.exit(bool({'nltk', 'jieba'} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", code], check=True)
