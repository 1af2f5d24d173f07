"""prediction files of many runs -> the rows of the paper's result tables (sections 5.2 and 6), and what they leave out.

Every choice (the best run, the members and weights of an ensemble, ranks) is made on validation data only. Test figures
and intervals are those of what was chosen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asreader.errors import InputError
from asreader.evaluation import bootstrap, ensembles, published_accuracies
from asreader.evaluation.bootstrap import Credits, Interval
from asreader.evaluation.ensembles import AlignedPredictions, Ensemble, EnsembleMethod
from asreader.evaluation.metrics import TOP_K
from asreader.evaluation.published_accuracies import PublishedAccuracy
from asreader.runs.run_search import find_predicted_runs, locate_predictions
from asreader.runs.seed_groups import SeedGroup, group_by_seed

BEST_FRACTION = 0.2
"""Fraction of the readers, best first, whose mean accuracy the paper reports next to the best one."""
AVERAGE_FRACTION = 0.7
"""Fraction of the readers in the paper's average ensemble."""
BEST_OF = (1, 2, 5, 10, 20, 50, 100)
"""Numbers of runs for which the expected best is reported."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One row of a table; unknown figures are None. Rows of the same `part` belong together."""

    name: str
    valid: float | None
    test: float | None = None
    paper_valid: float | None = None
    paper_test: float | None = None
    valid_interval: Interval | None = None
    test_interval: Interval | None = None
    valid_deviation: float | None = None  # between seeds
    test_deviation: float | None = None
    part: str = ""


@dataclass(frozen=True, eq=False)
class SplitResults:
    """The predictions of all runs on one split, and which of them are correct: runs by questions."""

    predictions: AlignedPredictions
    correct: NDArray[np.bool_]

    def mark_correct(self, ensemble: Ensemble, top: int = 1) -> NDArray[np.bool_]:
        """Mask of the questions whose answer is among the ensemble's `top` most probable candidates."""
        return self.predictions.mark_correct(ensemble.mix_probabilities(self.predictions), top)


@dataclass(frozen=True)
class RowDraft:
    """A row before it is computed: `credits` gives the credit of each question of a split; their mean is the figure."""

    part: str
    name: str
    credits: Callable[[SplitResults], Credits]
    paper: PublishedAccuracy | None = None
    seeds: tuple[int, ...] = ()  # runs whose standard deviation is reported
    test: bool = True  # whether the row has a figure on test data


def find_prediction_files(path: Path, split: str = "valid") -> list[Path]:
    """The prediction files of a file, a run or a folder of runs; numbers in names are sorted as numbers."""
    if not path.exists():
        raise InputError(f"{path}: is not there; name a prediction file, a run or a folder of runs")
    if path.is_file():
        return [path]
    runs = sorted(find_predicted_runs([path]), key=_make_sort_key)
    for run in runs:
        file = locate_predictions(run, split)
        if not file.is_file():
            raise InputError(f"{file}: missing; `asreader evaluate {run} DATA --predictions` writes it")
    return [locate_predictions(run, split) for run in runs]


def _make_sort_key(path: Path) -> list[tuple[int, str]]:
    """Sorts seed-2 before seed-10."""
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", str(path))]


def build_rows(runs: Sequence[Path], paper: str | None = None) -> list[ResultRow]:
    """The rows that the paper reports, for these runs. Test figures are given if every run has test predictions."""
    valid = _load_results(runs, "valid")
    has_test = all(locate_predictions(run, "test").is_file() for run in runs)
    test = _load_results(runs, "test") if has_test else None
    drafts = list(_draft_rows(valid, group_by_seed(runs), paper or ""))
    on_valid = _compute_figures(drafts, valid)
    on_test = [_Figure()] * len(drafts) if test is None else _compute_figures(drafts, test, test=True)
    return [
        *(_make_row(draft, here, there) for draft, here, there in zip(drafts, on_valid, on_test, strict=True)),
        *_make_spread_rows(valid, test),
        *(
            ResultRow(name, None, None, other.valid, other.test, part="other systems")
            for name, other in published_accuracies.OTHER_SYSTEMS.get(paper or "", {}).items()
        ),
    ]


def _load_results(runs: Sequence[Path], split: str) -> SplitResults:
    predictions = ensembles.align_predictions([locate_predictions(run, split) for run in runs])
    return SplitResults(predictions, predictions.mark_correct_by_reader())


def _draft_rows(valid: SplitResults, settings: Sequence[SeedGroup], paper: str) -> Iterator[RowDraft]:
    published = published_accuracies.ATTENTION_SUM_READER.get(paper, {})
    ranked = ensembles.rank_readers(valid.predictions)
    runs = len(ranked)
    best = ranked[: max(1, math.ceil(BEST_FRACTION * runs))]
    best_name = f"mean of best {BEST_FRACTION:.0%} ({len(best)} of {runs})"
    greedy = ensembles.select_greedily(valid.predictions)
    yield RowDraft("readers", "best single reader", _average_runs(ranked[:1]), published.get("single"))
    yield RowDraft("readers", best_name, _average_runs(best), published.get("best"))
    yield from _draft_ensembles(valid.predictions, greedy, published)
    yield from _draft_top_k("single", ensembles.weight_equally(ranked[:1]), {})
    yield from _draft_top_k("greedy", greedy, published_accuracies.TOP_K_ACCURACY.get(paper, {}))
    for count in (count for count in BEST_OF if count < runs):
        yield RowDraft("best of n", f"expected best of {count} run{'s' * (count > 1)}", _expect_best(ranked, count))
    for setting in settings:
        name = f"mean of {len(setting.runs)} seeds" + (f", {setting.name}" if setting.name else "")
        yield RowDraft("seeds", name, _average_runs(setting.runs), seeds=setting.runs)


def _draft_ensembles(
    valid: AlignedPredictions, greedy: Ensemble, published: dict[str, PublishedAccuracy]
) -> Iterator[RowDraft]:
    average = ensembles.average_best_readers(valid, AVERAGE_FRACTION)
    yield _draft_ensemble(f"average ensemble, {AVERAGE_FRACTION:.0%}", average, published.get("average"))
    yield _draft_ensemble("average ensemble, all", ensembles.average_all_readers(valid))
    yield _draft_ensemble("greedy ensemble", greedy, published.get("greedy"))
    yield from _draft_cross_validated("greedy", valid, ensembles.select_greedily)
    yield _draft_ensemble("weighted ensemble", ensembles.fit_weights(valid))
    yield from _draft_cross_validated("weighted", valid, ensembles.fit_weights)


def _average_runs(runs: Sequence[int]) -> Callable[[SplitResults], Credits]:
    """The mean of some runs, each of them alone."""
    return lambda results: np.asarray(results.correct[list(runs)].mean(axis=0))


def _draft_ensemble(name: str, ensemble: Ensemble, paper: PublishedAccuracy | None = None) -> RowDraft:
    members = len(ensemble.members)
    return RowDraft("ensembles", f"{name} ({members})", lambda results: results.mark_correct(ensemble), paper)


def _draft_cross_validated(name: str, valid: AlignedPredictions, method: EnsembleMethod) -> Iterator[RowDraft]:
    correct = ensembles.cross_validate(valid, method)
    if correct is not None:
        yield RowDraft("ensembles", f"{name}, cross-validated", lambda _: correct, test=False)


def _draft_top_k(name: str, ensemble: Ensemble, paper: dict[int, float]) -> Iterator[RowDraft]:
    def mark_top(top: int) -> Callable[[SplitResults], Credits]:
        return lambda results: results.mark_correct(ensemble, top)

    for top in TOP_K:
        published = PublishedAccuracy(None, paper.get(top))
        yield RowDraft("top k", f"{name}, answer in best {top}", mark_top(top), published)


def _expect_best(ranked: Sequence[int], count: int) -> Callable[[SplitResults], Credits]:
    probabilities = compute_best_of_probabilities(len(ranked), count)
    return lambda results: np.asarray(probabilities @ results.correct[list(ranked)])


def compute_best_of_probabilities(runs: int, count: int) -> NDArray[np.float64]:
    """For each run, best first: the probability that it is the best of `count` runs drawn without replacement.

    All other runs of the draw must then come from the runs below it.
    """
    return np.array([math.comb(runs - 1 - rank, count - 1) / math.comb(runs, count) for rank in range(runs)])


@dataclass(frozen=True, slots=True)
class _Figure:
    """The value of a row on one split; None where the row does not apply."""

    value: float | None = None
    interval: Interval | None = None
    deviation: float | None = None


def _compute_figures(drafts: Sequence[RowDraft], results: SplitResults, test: bool = False) -> list[_Figure]:
    """The figure of each draft on one split; all intervals come from the same draws of questions."""
    applicable = [draft for draft in drafts if draft.test or not test]
    credits = np.array([draft.credits(results) for draft in applicable], dtype=np.float64)
    intervals = bootstrap.compute_mean_intervals(credits)
    figures = {
        draft: _Figure(float(row.mean()), interval, _compute_seed_deviation(results, draft.seeds))
        for draft, row, interval in zip(applicable, credits, intervals, strict=True)
    }
    return [figures.get(draft, _Figure()) for draft in drafts]


def _compute_seed_deviation(results: SplitResults, runs: Sequence[int]) -> float | None:
    return _compute_deviation(results.correct[list(runs)].mean(axis=1)) if runs else None


def _make_row(draft: RowDraft, valid: _Figure, test: _Figure) -> ResultRow:
    return ResultRow(
        name=draft.name,
        valid=valid.value,
        test=test.value,
        paper_valid=draft.paper.valid if draft.paper else None,
        paper_test=draft.paper.test if draft.paper else None,
        valid_interval=valid.interval,
        test_interval=test.interval,
        valid_deviation=valid.deviation,
        test_deviation=test.deviation,
        part=draft.part,
    )


def _make_spread_rows(valid: SplitResults, test: SplitResults | None) -> list[ResultRow]:
    """Spread of all runs; the paper reports deviations of 0.6 to 2.5 points between runs of equal settings."""
    if len(valid.correct) < 2:
        return []
    on_valid = valid.correct.mean(axis=1)
    on_test = None if test is None else test.correct.mean(axis=1)
    rows = {"standard deviation of all runs": _compute_deviation, "best minus worst run": _compute_range}
    return [
        ResultRow(name, measure(on_valid), None if on_test is None else measure(on_test), part="spread")
        for name, measure in rows.items()
    ]


def _compute_deviation(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1))


def _compute_range(values: NDArray[np.float64]) -> float:
    return float(np.ptp(values))
