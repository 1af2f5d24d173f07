"""Prediction files: exact round trips, all-or-nothing writing, errors that name the line."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asreader.errors import InputError
from asreader.evaluation.predictions import Prediction, mask_distinct_candidates, read_predictions, write_predictions

GOOD = '{"id":"q1","answer":"Anna","candidates":["Anna","Ben"],"probabilities":[0.25,0.75]}'
SHARE = st.floats(0, 1, width=32)


def prediction(id: str, shares: dict[str, float], answer: str | None = None) -> Prediction:
    return Prediction(id, answer, tuple(shares), np.array(list(shares.values()), dtype=np.float32))


def fields(found: Prediction) -> tuple[str, str | None, tuple[str, ...], bytes]:
    return found.id, found.answer, found.candidates, found.probabilities.tobytes()


@st.composite
def predictions(draw: st.DrawFn) -> list[Prediction]:
    ids = draw(st.lists(st.text(max_size=5), unique=True, max_size=5))
    return [
        prediction(
            id, draw(st.dictionaries(st.text(max_size=4), SHARE, max_size=5)), draw(st.none() | st.text(max_size=3))
        )
        for id in ids
    ]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
@given(made=predictions())
def test_what_is_written_is_read_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, made: list[Prediction]
) -> None:
    path = tmp_path_factory.mktemp("round") / f"trip.jsonl{suffix}"
    write_predictions(path, made)
    assert list(map(fields, read_predictions(path))) == list(map(fields, made))


def test_every_kind_of_float32_survives(tmp_path: Path) -> None:
    bits = np.random.default_rng(7).integers(0, np.float32(1).view(np.uint32), 20_000, dtype=np.uint32)
    values = np.concatenate([bits.view(np.float32), np.array([0, 1, 1e-45, 1.17549435e-38], dtype=np.float32)])
    write_predictions(tmp_path / "p.jsonl", [Prediction("q", None, tuple(map(str, range(len(values)))), values)])
    assert read_predictions(tmp_path / "p.jsonl")[0].probabilities.tobytes() == values.tobytes()


def test_a_line_is_plain_and_short(tmp_path: Path) -> None:
    write_predictions(tmp_path / "p.jsonl", [prediction("q", {"Šárka": 0.1, "b": 0.9}, "Šárka")])
    expected = '{"id":"q","answer":"Šárka","candidates":["Šárka","b"],"probabilities":[0.1,0.9]}\n'
    assert (tmp_path / "p.jsonl").read_text(encoding="utf-8") == expected


def test_compressed_files_are_really_compressed(tmp_path: Path) -> None:
    made = [prediction("q", {"a": 0.5}, "a")]
    for suffix, expand in ((".gz", gzip.decompress), (".xz", lzma.decompress)):
        write_predictions(tmp_path / f"p.jsonl{suffix}", made)
        assert json.loads(expand((tmp_path / f"p.jsonl{suffix}").read_bytes()))["id"] == "q"


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, failure: type[BaseException]
) -> None:
    path = tmp_path / "p.jsonl"
    write_predictions(path, [prediction("old", {"a": 1.0})])

    def interrupted() -> Iterator[Prediction]:
        yield prediction("new", {"a": 1.0})
        raise failure

    with pytest.raises(failure):
        write_predictions(path, interrupted())
    assert [found.id for found in read_predictions(path)] == ["old"]
    assert list(tmp_path.iterdir()) == [path]


def test_two_questions_of_one_id_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'q'"):
        write_predictions(tmp_path / "p.jsonl", [prediction("q", {"a": 1.0})] * 2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line of a prediction file"),
        ("[1, 2]", "expected an object"),
        ("[" * 100_000, "line of a prediction file"),
        ('{"id": 3, "candidates": [], "probabilities": []}', "expected an object"),
        ('{"id": "x", "candidates": "ab", "probabilities": [0.5, 0.5]}', "expected an object"),
        ('{"id": "x", "candidates": ["a"]}', "expected an object"),
        ('{"id": "x", "candidates": [1], "probabilities": [0.5]}', "not text"),
        ('{"id": "x", "candidates": ["a"], "probabilities": ["0.5"]}', "number"),
        ('{"id": "x", "candidates": ["a"], "probabilities": [true]}', "number"),
        ('{"id": "x", "candidates": ["a"], "probabilities": [NaN]}', "number"),
        ('{"id": "x", "candidates": ["a", "b"], "probabilities": [0.5, NaN]}', "number"),
        ('{"id": "x", "candidates": ["a"], "probabilities": [1e999]}', "number"),
        ('{"id": "x", "candidates": ["a"], "probabilities": [-0.5]}', "number"),
        ('{"id": "x", "candidates": ["a"], "probabilities": [1.5]}', "between 0 and 1"),
        ('{"id": "x", "candidates": ["a"], "probabilities": [0.5, 0.5]}', "1 candidates"),
        ('{"id": "x", "answer": 5, "candidates": ["a"], "probabilities": [0.5]}', "answer"),
        (GOOD, "'q1' occurs twice"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(f"{GOOD}\n\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_predictions(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.jsonl", b'{"id": "\xff"}'),
        ("p.jsonl.gz", b"no gzip"),
        ("p.jsonl.xz", b"no xz"),
        ("p.jsonl.gz", gzip.compress(GOOD.encode(), mtime=0)[:-12]),
        ("p.jsonl.xz", lzma.compress(GOOD.encode())[:-12]),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name):
        read_predictions(tmp_path / name)


def test_a_missing_file_or_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_predictions(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="directory"):
        read_predictions(tmp_path)


def test_a_missing_answer_is_unknown_and_other_fields_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"id":"q","candidates":["a"],"probabilities":[1],"note":[1]}', encoding="utf-8")
    assert read_predictions(tmp_path / "p.jsonl")[0].answer is None


def test_the_first_of_equals_is_chosen_whatever_the_answer_is() -> None:
    for answer in ("a", "b", "c", None):
        assert prediction("q", {"a": 0.2, "b": 0.4, "c": 0.4}, answer).best == 1


def test_later_copies_and_empty_candidates_are_never_chosen() -> None:
    candidates = ("", "a", "b", "a", " ")
    assert mask_distinct_candidates(candidates).tolist() == [False, True, True, False, False]
    made = Prediction("q", None, candidates, np.array([0.9, 0.1, 0.2, 0.8, 0.9], dtype=np.float32))
    assert made.ranking.tolist() == [2, 1]


def test_without_candidates_there_is_no_choice() -> None:
    with pytest.raises(ValueError, match="no candidate"):
        _ = prediction("q", {"": 1.0}).best


@given(st.dictionaries(st.text(min_size=1, max_size=3), SHARE, min_size=1, max_size=6), st.randoms())
def test_permuting_candidates_permutes_the_choice_among_equals(shares: dict[str, float], random: Random) -> None:
    made = prediction("q", shares)
    shuffled = list(shares)
    random.shuffle(shuffled)
    other = prediction("q", {word: shares[word] for word in shuffled})
    best = max((share for word, share in shares.items() if word.strip()), default=None)
    if best is not None:
        for found in (made, other):
            equals = [word for word in found.candidates if word.strip() and shares[word] == best]
            assert found.candidates[found.best] == equals[0]


def test_probabilities_cannot_be_changed_and_are_a_copy() -> None:
    given_values = np.array([0.5, 0.5], dtype=np.float32)
    made = Prediction("q", None, ("a", "b"), given_values)
    given_values[0] = 0
    assert made.probabilities.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        made.probabilities[0] = 0


@pytest.mark.parametrize("wrong", [[np.nan, 0.5], [np.inf, 0.5], [-0.1, 0.5], [0.5], [[0.5, 0.5]]])
def test_only_probabilities_make_a_prediction(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="probabilit"):
        Prediction("q", None, ("a", "b"), np.array(wrong, dtype=np.float32))
