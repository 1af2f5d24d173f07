"""Every number of every figure against loops over the questions; what is left out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asreader.charts.catalogue import FIGURE_BUILDERS, build_figures
from asreader.charts.figure_spec import Figure
from asreader.data.example import Example
from asreader.data.vocabulary import Vocabulary
from asreader.evaluation import ensembles, predictions
from asreader.evaluation.breakdowns import slices
from asreader.evaluation.breakdowns.breakdown_table import Cell
from asreader.evaluation.breakdowns.reliability import MISTAKES
from asreader.evaluation.breakdowns.systems import System
from asreader.evaluation.ensembles import Aligned
from asreader.evaluation.metrics import wilson
from asreader.evaluation.predictions import Prediction

NAMES = ("Ada", "Bo", "Cy", "lamp", "1907", "New York", "@entity4", "oil")
KNOWN = Vocabulary(("Ada", "lamp", "1907"), unknown=2, entities=1)


@dataclass(frozen=True)
class Made:
    """A system and what it was made of."""

    system: System
    examples: list[Example]
    predictions: list[tuple[Prediction, ...]]  # of each run

    def right(self) -> list[list[bool]]:
        """Runs by questions, told without any array."""
        return [[self.said(run, place) == one.answer for place, one in enumerate(self.examples)] for run in self.runs]

    @property
    def runs(self) -> range:
        return range(len(self.system.runs))

    def said(self, run: int, place: int) -> str:
        return _best(self.predictions[run][place])[0]

    def confidence(self, run: int, place: int) -> float:
        return _best(self.predictions[run][place])[1]


def _best(one: Prediction) -> tuple[str, float]:
    """The most probable candidate, the first of equals."""
    pairs = list(zip(one.candidates, one.probabilities.tolist(), strict=True))
    return max(pairs, key=lambda pair: pair[1])


def made(name: str, random: Random, count: int, runs: int, varied: bool = True, data: str = "made") -> Made:
    """Questions and answers drawn at random: few words, so that ties and repetitions are common."""
    examples = []
    for number in range(count):
        candidates = tuple(random.sample(NAMES, random.randint(2, 8) if varied else 5))
        words = [word for _ in range(random.randint(2, 25)) for word in random.choice((*candidates, "and")).split()]
        document = (tuple(words[:2]), tuple(words[2:]))
        examples.append(Example(f"q{number}", document, ("XXXXX",), candidates, random.choice(candidates)))
    said = [tuple(_drawn(example, random) for example in examples) for _ in range(runs)]
    names = tuple(f"seed-{run + 1}" for run in range(runs))
    return Made(System(name, names, aligned(said), slices.questions(data, examples), KNOWN), examples, said)


def _drawn(example: Example, random: Random) -> Prediction:
    weights = [random.choice((0, 1, 2, 4)) + 3 * (word == example.answer) for word in example.candidates]
    total = sum(weights) or 1
    return Prediction(example.id, example.answer, example.candidates, [weight / total for weight in weights])  # type: ignore[arg-type]


def aligned(runs: Sequence[Sequence[Prediction]]) -> Aligned:
    """As if read from files."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jsonl" for number in range(len(runs))]
        for path, said in zip(paths, runs, strict=True):
            predictions.write(path, said)
        return ensembles.aligned(paths)


several = st.tuples(st.integers(0, 999), st.integers(1, 45), st.integers(1, 3), st.booleans())


def figure(name: str, those: Sequence[Made]) -> Figure | None:
    found = {one.name: one for one in build_figures([one.system for one in those], lambda line: None)}
    return found.get(name)


def shared(one: Made, weights: dict[int, float]) -> tuple[Cell, ...]:
    """Questions, accuracy and its interval of a group, as the docstring of `slices.share` says, in loops."""
    total = sum(weights.values())
    if not total:
        return 0, None, None, None
    each = [sum(part for place, part in weights.items() if run[place]) / total for run in one.right()]
    mean = sum(each) / len(each)
    effective = total**2 / sum(part**2 for part in weights.values())
    if 0 < mean < 1:
        between = sum((own - mean) ** 2 for own in each) / max(1, len(each) - 1) / len(each)
        effective = mean * (1 - mean) / (mean * (1 - mean) / effective + between)
    return total, mean, *wilson(min(mean, 1), max(1, math.floor(effective + 1e-9)))


def same(found: Sequence[Sequence[Cell]], expected: Sequence[Sequence[Cell]]) -> None:
    """Equal rows, numbers up to rounding."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert len(ours) == len(theirs)
        for one, two in zip(ours, theirs, strict=True):
            assert one == (pytest.approx(two, abs=1e-6) if isinstance(two, float) else two)


def bucketed(one: Made, value: Callable[[Example], int | None], whole: bool) -> list[tuple[Cell, ...]]:
    """Buckets of the questions by a value, in the slow way: places in a sorted list."""
    ranked = sorted((own, place) for place, example in enumerate(one.examples) if (own := value(example)) is not None)
    buckets = defaultdict(list)
    sizes = [len(ranked) // 10 + (number < len(ranked) % 10) for number in range(10)]
    ends = [sum(sizes[: number + 1]) for number in range(10)]
    for at, (own, place) in enumerate(ranked):
        if whole:
            equal = [position for position, (other, _) in enumerate(ranked) if other == own]
            bucket = 10 * (2 * equal[0] + len(equal)) // (2 * len(ranked))
        else:
            bucket = next(number for number, end in enumerate(ends) if at < end)
        buckets[bucket].append((own, place))
    rows: list[tuple[Cell, ...]] = []
    for number, bucket in enumerate(sorted(buckets), start=1):
        inside = [own for own, _ in buckets[bucket]]
        weights = {place: 1 for _, place in buckets[bucket]}
        rows.append((number, sum(inside) / len(inside), min(inside), max(inside), *shared(one, weights)))
    return rows


def length(example: Example) -> int:
    return sum(map(len, example.document))


def distance(example: Example) -> int | None:
    parts = (example.answer or "").split()
    for behind in range(length(example) - len(parts) + 1):
        words = list(example.words)[: len(example.words) - behind]
        if words[-len(parts) :] == parts:
            return behind
    return None


@settings(max_examples=15)
@given(several)
def test_buckets_of_length_candidates_and_distance(wanted: tuple[int, int, int, bool]) -> None:
    seed, count, runs, varied = wanted
    those = [made("one", Random(seed), count, runs, varied), made("two", Random(seed + 1), count + 3, 1, data="other")]
    for name, value, whole in (
        ("accuracy-by-length", length, False),
        ("accuracy-by-candidates", lambda example: len(example.candidates), True),
        ("accuracy-by-distance", distance, True),
    ):
        drawn = [one for one in those if whole is False or len({value(example) for example in one.examples}) > 1]
        found = figure(name, those)
        if name == "accuracy-by-candidates" and not drawn:
            assert found is None
            continue
        if name == "accuracy-by-distance":
            drawn = [one for one in those if any(distance(example) is not None for example in one.examples)]
        assert found is not None
        same(found.table.rows, [(one.system.name, *row) for one in drawn for row in bucketed(one, value, whole)])


def rank(example: Example) -> dict[int, float]:
    """The places of the answer among the candidates by frequency, each with its part."""
    words = " ".join(("", *example.words, "")).replace(" ", "  ")
    often = {word: words.count(f" {word.replace(' ', '  ')} ") for word in example.candidates}
    first = 1 + sum(times > often[example.answer or ""] for times in often.values())
    tied = sum(times == often[example.answer or ""] for times in often.values())
    return dict.fromkeys(range(first, first + tied), 1 / tied)


@settings(max_examples=15)
@given(several)
def test_accuracy_and_counts_by_rank(wanted: tuple[int, int, int, bool]) -> None:
    seed, count, runs, varied = wanted
    one = made("one", Random(seed), count, runs, varied)
    ranks = [rank(example) for example in one.examples]
    rows, counts = [], []
    for n in range(1, 11):
        own = {place: parts[n] for place, parts in enumerate(ranks) if n in parts}
        up_to = {place: sum(part for at, part in parts.items() if at <= n) for place, parts in enumerate(ranks)}
        rows.append(("one", n, *shared(one, own), *shared(one, {at: part for at, part in up_to.items() if part})))
        counts.append(("made", n, sum(own.values()), sum(own.values()) / count))
    found = figure("accuracy-by-answer-rank", [one])
    told = figure("answer-ranks", [one])
    assert found and told
    same(found.table.rows, rows)
    same(told.table.rows, counts)


@settings(max_examples=15)
@given(several)
def test_distributions(wanted: tuple[int, int, int, bool]) -> None:
    seed, count, _, varied = wanted
    those = [made("one", Random(seed), count, 1, varied), made("two", Random(seed + 1), count + 3, 1, data="other")]
    first = those[0]
    twin = Made(System("twin", ("run",), first.system.said, first.system.questions), first.examples, first.predictions)
    for name, value in (("lengths", length), ("candidates", lambda example: len(example.candidates))):
        found = figure(name, [*those, twin])  # two systems on the same questions: one distribution
        if found is None:
            assert name == "candidates" and all(len({value(e) for e in one.examples}) == 1 for one in those)
            continue
        assert len(set(found.table.column("data"))) <= 2
        for row in found.table.records():
            examples = those[0 if row["data"] == "made" else 1].examples
            stop = math.inf if row["to"] is None else row["to"]
            inside = [example for example in examples if row["from"] <= value(example) < stop]  # type: ignore[operator]
            assert (row["questions"], row["share"]) == (len(inside), len(inside) / len(examples))


@settings(max_examples=15)
@given(several)
def test_calibration_and_coverage_pool_the_runs(wanted: tuple[int, int, int, bool]) -> None:
    seed, count, runs, varied = wanted
    one = made("one", Random(seed), count, runs, varied)
    right = one.right()
    answers = [(one.confidence(run, at), right[run][at]) for run in one.runs for at in range(count)]
    ranked = sorted(answers, key=lambda answer: answer[0])
    rows, error = [], 0.0
    sizes = [len(ranked) // 10 + (number < len(ranked) % 10) for number in range(10)]
    for number, size in enumerate(filter(None, sizes), start=1):
        inside, ranked = ranked[:size], ranked[size:]
        sure, good = sum(answer[0] for answer in inside) / size, sum(answer[1] for answer in inside) / size
        error += size * abs(sure - good) / len(answers)
        rows.append(("one", number, sure, size / runs, good, *wilson(good, max(1, size // runs))))
    found = figure("calibration", [one])
    assert found
    same(found.table.rows, [(*row, error) for row in rows])

    covered = figure("accuracy-by-coverage", [one])
    assert covered
    for row in covered.table.records():
        kept = [good for sure, good in answers if sure >= row["least confidence"]]  # type: ignore[operator]
        assert row["answered"] == pytest.approx(len(kept) / len(answers))
        assert row["questions"] == pytest.approx(len(kept) / runs)
        assert row["accuracy"] == pytest.approx(sum(kept) / len(kept))
        assert (row["low"], row["high"]) == pytest.approx(wilson(sum(kept) / len(kept), max(1, len(kept) // runs)))
    shares = covered.table.column("answered")
    assert shares == sorted(set(shares)) and shares[-1] == 1  # type: ignore[type-var]
    for wanted_share in range(1, 51):  # the highest confidence that gives as many answers is always there
        enough = {sure for sure, _ in answers if 50 * sum(c >= sure for c, _ in answers) >= wanted_share * len(answers)}
        assert max(enough) in covered.table.column("least confidence")


@settings(max_examples=15)
@given(several)
def test_kinds_and_known_words(wanted: tuple[int, int, int, bool]) -> None:
    seed, count, runs, varied = wanted
    one = made("one", Random(seed), count, runs, varied)
    kinds = {"@entity4": "@entity", "New York": "several words", "1907": "number", "lamp": "lower case"}
    kinds |= {"Ada": "capitalised", "Bo": "capitalised", "Cy": "capitalised", "oil": "lower case"}
    order = ("@entity", "several words", "number", "capitalised", "lower case")
    groups = defaultdict(dict)
    strange = dict[int, float]()
    for place, example in enumerate(one.examples):
        groups[kinds[example.answer or ""]][place] = 1
        if example.answer in ("Bo", "Cy", "New York", "oil"):
            strange[place] = 1
    found = figure("accuracy-by-answer-type", [one])
    assert (found is None) == (len(groups) == 1)
    if found:
        same(found.table.rows, [("one", kind, *shared(one, groups[kind])) for kind in order if kind in groups])
    told = figure("accuracy-by-known-answer", [one])
    assert (told is None) == (not strange)
    if told:
        known = {place: 1.0 for place in range(count) if place not in strange}
        same(told.table.rows, [("one", "known", *shared(one, known)), ("one", "unknown", *shared(one, strange))])


@settings(max_examples=15)
@given(several)
def test_runs_and_mistakes(wanted: tuple[int, int, int, bool]) -> None:
    seed, count, runs, varied = wanted
    one = made("one", Random(seed), count, runs, varied)
    right = one.right()
    counts = [sum(sum(run[at] for run in right) == number for at in range(count)) for number in range(runs + 1)]
    found = figure("runs-right", [one])
    pairs = figure("runs-alike", [one])
    if runs == 1:
        assert found is None and pairs is None
    else:
        assert found and pairs
        same(found.table.rows, [("one", number, total, total / count) for number, total in enumerate(counts)])
        expected = []
        for a in one.runs:
            for b in one.runs:
                alike = [one.said(a, at) == one.said(b, at) for at in range(count)]
                expected.append(("one", f"seed-{a + 1}", f"seed-{b + 1}", sum(alike) / count))
        same(pairs.table.rows, expected)
    mistakes = []
    for place, example in enumerate(one.examples):
        means = [
            sum(float(said[place].probabilities[at]) for said in one.predictions) / runs
            for at in range(len(example.candidates))
        ]
        said, sure = _best(Prediction("", None, example.candidates, means))  # type: ignore[arg-type]
        if said != example.answer:
            mistakes.append((-round(sure, 6), place, said))
    told = figure("confident-mistakes", [one])
    assert (told is None) == (not mistakes)
    if told:
        surest = sorted(mistakes)[:MISTAKES]
        asked = one.examples
        assert [round(float(sure or 0), 5) for sure in told.table.column("confidence")] == pytest.approx(
            [-sure for sure, _, _ in surest], abs=1e-4
        )
        wrong = {(asked[place].id, asked[place].answer, said) for _, place, said in mistakes}
        assert {tuple(row[1:4]) for row in told.table.rows} <= wrong


def test_what_cannot_be_drawn_is_said_in_a_line() -> None:
    one = made("one", Random(1), 30, 1, varied=False)
    bare = System(one.system.name, ("run",), one.system.said, one.system.questions)
    left_out: list[str] = []
    drawn = [figure.name for figure in build_figures([bare], left_out.append)]
    absent = ["accuracy-by-candidates", "candidates", "accuracy-by-known-answer", "runs-right", "runs-alike"]
    assert sorted([*drawn, *absent]) == sorted(FIGURE_BUILDERS)
    assert [line.partition(":")[0] for line in left_out] == absent
    assert "the same number of candidates (5)" in left_out[0]
    assert all("\n" not in line for line in left_out)


def test_a_system_whose_data_cannot_give_a_slice_is_named() -> None:
    those = [made("same", Random(1), 30, 1, varied=False), made("other", Random(2), 30, 1, data="news")]
    found = figure("accuracy-by-candidates", those)
    assert found
    assert set(found.table.column("system")) == {"other"}
    assert "Not drawn" in found.caption and "same" in found.caption
    assert found.order == ("same", "other")  # so that it looks as in every other figure


def test_there_must_be_a_system() -> None:
    with pytest.raises(ValueError, match="no system"):
        build_figures([])
