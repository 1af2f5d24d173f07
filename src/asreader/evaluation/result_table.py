"""prediction files of many runs -> the rows of the paper's result tables (sections 5.2 and 6), and what they leave out.

Every choice (the best run, an ensemble's members and weights, ranks) is made on validation data and then stands: test
figures and intervals are of what was chosen.
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
from asreader.evaluation import bootstrap, ensembles, published
from asreader.evaluation.bootstrap import Credits, Interval
from asreader.evaluation.ensembles import Aligned, Choice, Ensemble
from asreader.evaluation.metrics import TOPS
from asreader.evaluation.published import Published
from asreader.runs.seed_groups import SeedGroup, group_by_seed
from asreader.system.atomic_files import folders_below

BEST = 0.2
"""The part of all readers whose mean the paper reports beside the best one."""
AVERAGED = 0.7
"""The part of all readers that the paper's average ensemble takes."""
DRAWN = (1, 2, 5, 10, 20, 50, 100)
"""Of so many runs the expected best is told."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; what is not known is None. Rows of the same `part` belong together."""

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
class Verdicts:
    """What runs said of one split, and whether each run by itself is right: runs by questions."""

    said: Aligned
    alone: NDArray[np.bool_]

    def of(self, ensemble: Ensemble, top: int = 1) -> NDArray[np.bool_]:
        """Whether the ensemble is right, or has the answer among its best."""
        return self.said.right(ensemble.mixed(self.said), top)


@dataclass(frozen=True)
class Draft:
    """A row before it is computed: the credit that each question of a split gives; its mean is the figure."""

    part: str
    name: str
    credits: Callable[[Verdicts], Credits]
    paper: Published | None = None
    seeds: tuple[int, ...] = ()  # runs whose deviation is told
    test: bool = True  # whether it means anything on test data


def find(folders: Sequence[Path]) -> list[Path]:
    """All runs in or under the folders that have predicted their validation data, sorted."""
    below = {run for folder in folders for run in folders_below(folder)}
    found = sorted(run for run in below if (run / "predictions" / "valid.jsonl").is_file())
    if not found:
        names = ", ".join(map(str, folders))
        raise InputError(f"{names}: no run with predictions/valid.jsonl in it; train some, or name their folder")
    return found


def prediction_files(path: Path, split: str = "valid") -> list[Path]:
    """The prediction files meant by a file, a run or a folder of runs, in the order of their numbers."""
    if not path.exists():
        raise InputError(f"{path}: is not there; name a prediction file, a run or a folder of runs")
    if path.is_file():
        return [path]
    files = [_file(run, split) for run in sorted(find([path]), key=_counting)]
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: missing; `asreader evaluate {file.parent.parent} DATA --predictions` writes it")
    return files


def _counting(path: Path) -> list[tuple[int, str]]:
    """An order in which seed-2 comes before seed-10."""
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", str(path))]


def rows(runs: Sequence[Path], paper: str | None = None) -> list[Row]:
    """What the paper reports of its readers, of these runs. Test data count if every run has predicted them."""
    valid = _verdicts(runs, "valid")
    test = _verdicts(runs, "test") if all(_file(run, "test").is_file() for run in runs) else None
    drafts = list(_drafts(valid, group_by_seed(runs), paper or ""))
    on_valid = _figures(drafts, valid)
    on_test = [_Figure()] * len(drafts) if test is None else _figures(drafts, test, test=True)
    return [
        *(_row(draft, here, there) for draft, here, there in zip(drafts, on_valid, on_test, strict=True)),
        *_spread(valid, test),
        *(
            Row(name, None, None, other.valid, other.test, part="other systems")
            for name, other in published.OTHERS.get(paper or "", {}).items()
        ),
    ]


def _file(run: Path, split: str) -> Path:
    return run / "predictions" / f"{split}.jsonl"


def _verdicts(runs: Sequence[Path], split: str) -> Verdicts:
    said = ensembles.aligned([_file(run, split) for run in runs])
    return Verdicts(said, said.alone())


def _drafts(valid: Verdicts, shared: Sequence[SeedGroup], paper: str) -> Iterator[Draft]:
    said, told = valid.said, published.READER.get(paper, {})
    ranked, runs = ensembles.ranked(said), len(valid.alone)
    best = ranked[: max(1, math.ceil(BEST * runs))]
    single = ensembles.equal(ranked[:1])
    yield Draft("readers", "best single reader", _alone(ranked[:1]), told.get("single"))
    yield Draft("readers", f"mean of best {BEST:.0%} ({len(best)} of {runs})", _alone(best),
                told.get("best"))  # fmt: skip
    averaged, greedy = ensembles.best_share(said, AVERAGED), ensembles.greedy(said)
    weighted, everyone = ensembles.weighted(said), ensembles.everyone(said)
    yield _together(f"average ensemble, {AVERAGED:.0%}", averaged, told.get("average"))
    yield _together("average ensemble, all", everyone)
    yield _together("greedy ensemble", greedy, told.get("greedy"))
    yield from _crossed("greedy", said, ensembles.greedy)
    yield _together("weighted ensemble", weighted)
    yield from _crossed("weighted", said, ensembles.weighted)
    yield from _tops("single", single, {})
    yield from _tops("greedy", greedy, published.TOP.get(paper, {}))
    for number in (number for number in DRAWN if number < runs):
        yield Draft("best of n", f"expected best of {number} run{'s' * (number > 1)}", _best_of(ranked, number))
    for setting in shared:
        name = f"mean of {len(setting.runs)} seeds" + (f", {setting.name}" if setting.name else "")
        yield Draft("seeds", name, _alone(setting.runs), seeds=setting.runs)


def _alone(members: Sequence[int]) -> Callable[[Verdicts], Credits]:
    """The mean of some runs, each by itself."""
    return lambda data: np.asarray(data.alone[list(members)].mean(axis=0))


def _together(name: str, ensemble: Ensemble, paper: Published | None = None) -> Draft:
    return Draft("ensembles", f"{name} ({len(ensemble.members)})", lambda data: data.of(ensemble), paper)


def _crossed(name: str, said: Aligned, choice: Choice) -> Iterator[Draft]:
    verdicts = ensembles.cross_validated(said, choice)
    if verdicts is not None:
        yield Draft("ensembles", f"{name}, cross-validated", lambda _: verdicts, test=False)


def _tops(name: str, ensemble: Ensemble, paper: dict[int, float]) -> Iterator[Draft]:
    def among(top: int) -> Callable[[Verdicts], Credits]:
        return lambda data: data.of(ensemble, top)

    for top in TOPS:
        yield Draft("top k", f"{name}, answer in best {top}", among(top), Published(None, paper.get(top)))


def _best_of(ranked: Sequence[int], number: int) -> Callable[[Verdicts], Credits]:
    return lambda data: np.asarray(chances(len(ranked), number) @ data.alone[list(ranked)])


def chances(runs: int, drawn: int) -> NDArray[np.float64]:
    """For the best run, the second best and so on: how likely it is the best of so many drawn without replacement.

    The others of the draw must then all come from the runs below it.
    """
    return np.array([math.comb(runs - 1 - rank, drawn - 1) / math.comb(runs, drawn) for rank in range(runs)])


@dataclass(frozen=True, slots=True)
class _Figure:
    """What a draft comes to on one split; nothing where it does not apply."""

    value: float | None = None
    interval: Interval | None = None
    deviation: float | None = None


def _figures(drafts: Sequence[Draft], data: Verdicts, test: bool = False) -> list[_Figure]:
    """The figure of each draft on one split; all intervals come from the same draws of questions."""
    meant = [draft for draft in drafts if draft.test or not test]
    credits = np.array([draft.credits(data) for draft in meant], dtype=np.float64)
    found = {
        draft: _Figure(float(own.mean()), interval, _deviation(data, draft.seeds))
        for draft, own, interval in zip(meant, credits, bootstrap.intervals(credits), strict=True)
    }
    return [found.get(draft, _Figure()) for draft in drafts]


def _deviation(data: Verdicts, runs: Sequence[int]) -> float | None:
    return _std(data.alone[list(runs)].mean(axis=1)) if runs else None


def _row(draft: Draft, valid: _Figure, test: _Figure) -> Row:
    return Row(
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


def _spread(valid: Verdicts, test: Verdicts | None) -> list[Row]:
    """How far apart all runs are: the paper saw deviations of 0.6 to 2.5 points between runs of equal settings."""
    if len(valid.alone) < 2:
        return []
    here = valid.alone.mean(axis=1)
    there = None if test is None else test.alone.mean(axis=1)
    return [
        Row("standard deviation of all runs", _std(here), None if there is None else _std(there), part="spread"),
        Row(
            "best minus worst run", float(np.ptp(here)), None if there is None else float(np.ptp(there)), part="spread"
        ),
    ]


def _std(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1))
