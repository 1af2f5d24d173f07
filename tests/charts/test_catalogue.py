"""Figures: every number against plain loops over the questions, and which figures are left out."""

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
from asreader.evaluation.breakdowns.reliability import MAX_MISTAKES
from asreader.evaluation.breakdowns.systems import System
from asreader.evaluation.ensembles import AlignedPredictions
from asreader.evaluation.metrics import compute_wilson_interval
from asreader.evaluation.predictions import Prediction

NAMES = ("Ada", "Bo", "Cy", "lamp", "1907", "New York", "@entity4", "oil")
KNOWN = Vocabulary(("Ada", "lamp", "1907"), unknown=2, entities=1)


@dataclass(frozen=True)
class Sample:
    """A system with its examples and predictions."""

    system: System
    examples: list[Example]
    predictions: list[tuple[Prediction, ...]]  # of each run

    def right(self) -> list[list[bool]]:
        """Whether each run answers each question correctly, without arrays."""
        return [
            [self.predicted_answer(run, index) == example.answer for index, example in enumerate(self.examples)]
            for run in self.runs
        ]

    @property
    def runs(self) -> range:
        return range(len(self.system.runs))

    def predicted_answer(self, run: int, index: int) -> str:
        return find_best(self.predictions[run][index])[0]

    def confidence(self, run: int, index: int) -> float:
        return find_best(self.predictions[run][index])[1]


def find_best(prediction: Prediction) -> tuple[str, float]:
    """The most probable candidate, the first one of ties."""
    pairs = list(zip(prediction.candidates, prediction.probabilities.tolist(), strict=True))
    return max(pairs, key=lambda pair: pair[1])


def make_sample(
    name: str, random: Random, count: int, runs: int, varied: bool = True, data: str = "generated"
) -> Sample:
    """Random questions and answers from few words, so that ties and repetitions are common."""
    examples = []
    for number in range(count):
        candidates = tuple(random.sample(NAMES, random.randint(2, 8) if varied else 5))
        words = [word for _ in range(random.randint(2, 25)) for word in random.choice((*candidates, "and")).split()]
        document = (tuple(words[:2]), tuple(words[2:]))
        examples.append(Example(f"q{number}", document, ("XXXXX",), candidates, random.choice(candidates)))
    runs_predictions = [tuple(draw_prediction(example, random) for example in examples) for _ in range(runs)]
    names = tuple(f"seed-{run + 1}" for run in range(runs))
    return Sample(
        System(name, names, align(runs_predictions), slices.describe_questions(data, examples), KNOWN),
        examples,
        runs_predictions,
    )


def draw_prediction(example: Example, random: Random) -> Prediction:
    weights = [random.choice((0, 1, 2, 4)) + 3 * (word == example.answer) for word in example.candidates]
    total = sum(weights) or 1
    return Prediction(example.id, example.answer, example.candidates, [weight / total for weight in weights])  # type: ignore[arg-type]


def align(runs: Sequence[Sequence[Prediction]]) -> AlignedPredictions:
    """Write predictions to files and read them aligned."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jsonl" for number in range(len(runs))]
        for path, predicted in zip(paths, runs, strict=True):
            predictions.write_predictions(path, predicted)
        return ensembles.align_predictions(paths)


parameters = st.tuples(st.integers(0, 999), st.integers(1, 45), st.integers(1, 3), st.booleans())


def find_figure(name: str, samples: Sequence[Sample]) -> Figure | None:
    figures = build_figures([sample.system for sample in samples], lambda line: None)
    return next((figure for figure in figures if figure.name == name), None)


def compute_accuracy(sample: Sample, weights: dict[int, float]) -> tuple[Cell, ...]:
    """Questions, accuracy and its interval of a group, as the docstring of the slices module says, in loops."""
    total = sum(weights.values())
    if not total:
        return 0, None, None, None
    accuracies = [sum(weight for index, weight in weights.items() if run[index]) / total for run in sample.right()]
    mean = sum(accuracies) / len(accuracies)
    effective = total**2 / sum(weight**2 for weight in weights.values())
    if 0 < mean < 1:
        between = sum((accuracy - mean) ** 2 for accuracy in accuracies) / max(1, len(accuracies) - 1) / len(accuracies)
        effective = mean * (1 - mean) / (mean * (1 - mean) / effective + between)
    return total, mean, *compute_wilson_interval(min(mean, 1), max(1, math.floor(effective + 1e-9)))


def assert_same_rows(actual: Sequence[Sequence[Cell]], expected: Sequence[Sequence[Cell]]) -> None:
    """Assert equal rows, with numbers equal up to rounding."""
    assert len(actual) == len(expected)
    for actual_row, expected_row in zip(actual, expected, strict=True):
        assert len(actual_row) == len(expected_row)
        for cell, wanted in zip(actual_row, expected_row, strict=True):
            assert cell == (pytest.approx(wanted, abs=1e-6) if isinstance(wanted, float) else wanted)


def tabulate_buckets(
    sample: Sample, value: Callable[[Example], int | None], keep_together: bool
) -> list[tuple[Cell, ...]]:
    """Buckets of the questions by a value, by indices in a sorted list."""
    ranked = sorted(
        (measured, index) for index, example in enumerate(sample.examples) if (measured := value(example)) is not None
    )
    buckets = defaultdict(list)
    sizes = [len(ranked) // 10 + (number < len(ranked) % 10) for number in range(10)]
    ends = [sum(sizes[: number + 1]) for number in range(10)]
    for rank, (measured, index) in enumerate(ranked):
        if keep_together:
            equal = [position for position, (other, _) in enumerate(ranked) if other == measured]
            bucket = 10 * (2 * equal[0] + len(equal)) // (2 * len(ranked))
        else:
            bucket = next(number for number, end in enumerate(ends) if rank < end)
        buckets[bucket].append((measured, index))
    rows: list[tuple[Cell, ...]] = []
    for number, bucket in enumerate(sorted(buckets), start=1):
        inside = [measured for measured, _ in buckets[bucket]]
        weights = {index: 1.0 for _, index in buckets[bucket]}
        rows.append((number, sum(inside) / len(inside), min(inside), max(inside), *compute_accuracy(sample, weights)))
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
@given(parameters)
def test_accuracy_by_length_candidates_and_distance(parameters: tuple[int, int, int, bool]) -> None:
    seed, count, runs, varied = parameters
    samples = [
        make_sample("one", Random(seed), count, runs, varied),
        make_sample("two", Random(seed + 1), count + 3, 1, data="other"),
    ]
    for name, value, keep_together in (
        ("accuracy-by-length", length, False),
        ("accuracy-by-candidates", lambda example: len(example.candidates), True),
        ("accuracy-by-distance", distance, True),
    ):
        drawn = samples
        if keep_together:
            drawn = [sample for sample in samples if len({value(example) for example in sample.examples}) > 1]
        figure = find_figure(name, samples)
        if name == "accuracy-by-candidates" and not drawn:
            assert figure is None
            continue
        if name == "accuracy-by-distance":
            drawn = [sample for sample in samples if any(distance(example) is not None for example in sample.examples)]
        assert figure is not None
        expected = [
            (sample.system.name, *row) for sample in drawn for row in tabulate_buckets(sample, value, keep_together)
        ]
        assert_same_rows(figure.table.rows, expected)


def rank_answer(example: Example) -> dict[int, float]:
    """The ranks of the answer among the candidates by frequency, each with its weight."""
    words = " ".join(("", *example.words, "")).replace(" ", "  ")
    counts = {word: words.count(f" {word.replace(' ', '  ')} ") for word in example.candidates}
    first = 1 + sum(times > counts[example.answer or ""] for times in counts.values())
    tied = sum(times == counts[example.answer or ""] for times in counts.values())
    return dict.fromkeys(range(first, first + tied), 1 / tied)


@settings(max_examples=15)
@given(parameters)
def test_accuracy_and_counts_by_rank(parameters: tuple[int, int, int, bool]) -> None:
    seed, count, runs, varied = parameters
    sample = make_sample("one", Random(seed), count, runs, varied)
    ranks = [rank_answer(example) for example in sample.examples]
    rows, counts = [], []
    for n in range(1, 11):
        weights = {index: parts[n] for index, parts in enumerate(ranks) if n in parts}
        up_to = {index: sum(part for rank, part in parts.items() if rank <= n) for index, parts in enumerate(ranks)}
        rows.append(
            (
                "one",
                n,
                *compute_accuracy(sample, weights),
                *compute_accuracy(sample, {index: part for index, part in up_to.items() if part}),
            )
        )
        counts.append(("generated", n, sum(weights.values()), sum(weights.values()) / count))
    figure = find_figure("accuracy-by-answer-rank", [sample])
    other_figure = find_figure("answer-ranks", [sample])
    assert figure and other_figure
    assert_same_rows(figure.table.rows, rows)
    assert_same_rows(other_figure.table.rows, counts)


@settings(max_examples=15)
@given(parameters)
def test_distributions(parameters: tuple[int, int, int, bool]) -> None:
    seed, count, _, varied = parameters
    samples = [
        make_sample("one", Random(seed), count, 1, varied),
        make_sample("two", Random(seed + 1), count + 3, 1, data="other"),
    ]
    first = samples[0]
    twin = Sample(
        System("twin", ("run",), first.system.aligned, first.system.questions), first.examples, first.predictions
    )
    for name, value in (("lengths", length), ("candidates", lambda example: len(example.candidates))):
        figure = find_figure(name, [*samples, twin])  # two systems on the same questions: one distribution
        if figure is None:
            assert name == "candidates" and all(len({value(e) for e in sample.examples}) == 1 for sample in samples)
            continue
        assert len(set(figure.table.column("data"))) <= 2
        for row in figure.table.iterate_records():
            examples = samples[0 if row["data"] == "generated" else 1].examples
            stop = math.inf if row["to"] is None else row["to"]
            inside = [example for example in examples if row["from"] <= value(example) < stop]  # type: ignore[operator]
            assert (row["questions"], row["share"]) == (len(inside), len(inside) / len(examples))


@settings(max_examples=15)
@given(parameters)
def test_calibration_and_coverage_pool_runs(parameters: tuple[int, int, int, bool]) -> None:
    seed, count, runs, varied = parameters
    sample = make_sample("one", Random(seed), count, runs, varied)
    right = sample.right()
    answers = [(sample.confidence(run, index), right[run][index]) for run in sample.runs for index in range(count)]
    ranked = sorted(answers, key=lambda answer: answer[0])
    rows, error = [], 0.0
    sizes = [len(ranked) // 10 + (number < len(ranked) % 10) for number in range(10)]
    for number, size in enumerate(filter(None, sizes), start=1):
        inside, ranked = ranked[:size], ranked[size:]
        confidence = sum(answer[0] for answer in inside) / size
        accuracy = sum(answer[1] for answer in inside) / size
        error += size * abs(confidence - accuracy) / len(answers)
        rows.append(
            ("one", number, confidence, size / runs, accuracy, *compute_wilson_interval(accuracy, max(1, size // runs)))
        )
    figure = find_figure("calibration", [sample])
    assert figure
    assert_same_rows(figure.table.rows, [(*row, error) for row in rows])

    covered = find_figure("accuracy-by-coverage", [sample])
    assert covered
    for row in covered.table.iterate_records():
        least = float(row["least confidence"] or 0)
        answered = [is_right for confidence, is_right in answers if confidence >= least]
        accuracy = sum(answered) / len(answered)
        assert row["answered"] == pytest.approx(len(answered) / len(answers))
        assert row["questions"] == pytest.approx(len(answered) / runs)
        assert row["accuracy"] == pytest.approx(accuracy)
        assert (row["low"], row["high"]) == pytest.approx(
            compute_wilson_interval(accuracy, max(1, len(answered) // runs))
        )
    coverages = covered.table.column("answered")
    assert coverages == sorted(set(coverages)) and coverages[-1] == 1  # type: ignore[type-var]
    confidences = [confidence for confidence, _ in answers]
    for fiftieths in range(1, 51):  # the highest confidence that answers this fraction is always in the table
        enough = {c for c in confidences if 50 * sum(other >= c for other in confidences) >= fiftieths * len(answers)}
        assert max(enough) in covered.table.column("least confidence")


@settings(max_examples=15)
@given(parameters)
def test_accuracy_by_answer_type_and_vocabulary(parameters: tuple[int, int, int, bool]) -> None:
    seed, count, runs, varied = parameters
    sample = make_sample("one", Random(seed), count, runs, varied)
    kinds = {"@entity4": "@entity", "New York": "several words", "1907": "number", "lamp": "lower case"}
    kinds |= {"Ada": "capitalised", "Bo": "capitalised", "Cy": "capitalised", "oil": "lower case"}
    order = ("@entity", "several words", "number", "capitalised", "lower case")
    groups = defaultdict(dict)
    unknown = dict[int, float]()
    for index, example in enumerate(sample.examples):
        groups[kinds[example.answer or ""]][index] = 1
        if example.answer in ("Bo", "Cy", "New York", "oil"):
            unknown[index] = 1
    figure = find_figure("accuracy-by-answer-type", [sample])
    assert (figure is None) == (len(groups) == 1)
    if figure:
        assert_same_rows(
            figure.table.rows,
            [("one", kind, *compute_accuracy(sample, groups[kind])) for kind in order if kind in groups],
        )
    other_figure = find_figure("accuracy-by-known-answer", [sample])
    assert (other_figure is None) == (not unknown)
    if other_figure:
        known = {index: 1.0 for index in range(count) if index not in unknown}
        assert_same_rows(
            other_figure.table.rows,
            [
                ("one", "known", *compute_accuracy(sample, known)),
                ("one", "unknown", *compute_accuracy(sample, unknown)),
            ],
        )


@settings(max_examples=15)
@given(parameters)
def test_run_agreement_and_confident_mistakes(parameters: tuple[int, int, int, bool]) -> None:
    seed, count, runs, varied = parameters
    sample = make_sample("one", Random(seed), count, runs, varied)
    right = sample.right()
    counts = [sum(sum(run[index] for run in right) == number for index in range(count)) for number in range(runs + 1)]
    figure = find_figure("runs-right", [sample])
    pairs = find_figure("runs-alike", [sample])
    if runs == 1:
        assert figure is None and pairs is None
    else:
        assert figure and pairs
        assert_same_rows(
            figure.table.rows, [("one", number, total, total / count) for number, total in enumerate(counts)]
        )
        expected = []
        for a in sample.runs:
            for b in sample.runs:
                alike = [
                    sample.predicted_answer(a, index) == sample.predicted_answer(b, index) for index in range(count)
                ]
                expected.append(("one", f"seed-{a + 1}", f"seed-{b + 1}", sum(alike) / count))
        assert_same_rows(pairs.table.rows, expected)
    mistakes = []
    for index, example in enumerate(sample.examples):
        means = [
            sum(float(run[index].probabilities[candidate]) for run in sample.predictions) / runs
            for candidate in range(len(example.candidates))
        ]
        predicted, confidence = find_best(Prediction("", None, example.candidates, means))  # type: ignore[arg-type]
        if predicted != example.answer:
            mistakes.append((-round(confidence, 6), index, predicted))
    other_figure = find_figure("confident-mistakes", [sample])
    assert (other_figure is None) == (not mistakes)
    if other_figure:
        surest = sorted(mistakes)[:MAX_MISTAKES]
        examples = sample.examples
        assert [
            round(float(confidence or 0), 5) for confidence in other_figure.table.column("confidence")
        ] == pytest.approx([-confidence for confidence, _, _ in surest], abs=1e-4)
        wrong = {(examples[index].id, examples[index].answer, predicted) for _, index, predicted in mistakes}
        assert {tuple(row[1:4]) for row in other_figure.table.rows} <= wrong


def test_missing_figures_are_reported_in_one_line_each() -> None:
    sample = make_sample("one", Random(1), 30, 1, varied=False)
    bare = System(sample.system.name, ("run",), sample.system.aligned, sample.system.questions)
    left_out: list[str] = []
    drawn = [figure.name for figure in build_figures([bare], left_out.append)]
    missing = ["accuracy-by-candidates", "candidates", "accuracy-by-known-answer", "runs-right", "runs-alike"]
    assert sorted([*drawn, *missing]) == sorted(FIGURE_BUILDERS)
    assert [line.partition(":")[0] for line in left_out] == missing
    assert "the same number of candidates (5)" in left_out[0]
    assert all("\n" not in line for line in left_out)


def test_system_that_is_not_drawn_is_named_in_the_caption() -> None:
    samples = [make_sample("same", Random(1), 30, 1, varied=False), make_sample("other", Random(2), 30, 1, data="news")]
    figure = find_figure("accuracy-by-candidates", samples)
    assert figure
    assert set(figure.table.column("system")) == {"other"}
    assert "Not drawn" in figure.caption and "same" in figure.caption
    assert figure.order == ("same", "other")  # so that its style is the same in every figure


def test_figures_need_a_system() -> None:
    with pytest.raises(ValueError, match="no system"):
        build_figures([])
