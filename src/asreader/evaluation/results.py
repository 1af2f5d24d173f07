"""prediction files of many runs -> the rows of the paper's result tables (sections 5.2 and 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asreader.errors import InputError
from asreader.evaluation import ensembling
from asreader.evaluation.ensembling import Aligned
from asreader.evaluation.metrics import scores

BEST = 0.2
"""The part of all readers whose mean the paper reports beside the best one."""
AVERAGED = 0.7
"""The part of all readers that the paper's average ensemble takes."""

PUBLISHED: dict[str, dict[str, tuple[float, ...]]] = {
    "cnn": {"single": (0.686, 0.695), "best": (0.684, 0.699), "average": (0.739, 0.754), "greedy": (0.745, 0.748)},
    "dailymail": {
        "single": (0.750, 0.739),
        "best": (0.745, 0.735),
        "average": (0.781, 0.771),
        "greedy": (0.787, 0.777),
    },
    "cbt-ne": {"single": (0.738, 0.686), "best": (0.733, 0.684), "average": (0.745, 0.706), "greedy": (0.762, 0.710)},
    "cbt-cn": {"single": (0.688, 0.634), "best": (0.677, 0.632), "average": (0.711, 0.689), "greedy": (0.724, 0.675)},
}
"""Validation and test accuracy of the Attention Sum Reader in the paper."""
PUBLISHED_TOP = {"cnn": (0.855, 0.948), "dailymail": (0.876, 0.948), "cbt-ne": (0.869, 0.968), "cbt-cn": (0.825, 0.954)}
"""Of its greedy ensemble: the answer among the best 2, the best 5, on test data."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; what is not known is None."""

    name: str
    valid: float | None
    test: float | None = None
    paper_valid: float | None = None
    paper_test: float | None = None


def find(folders: Sequence[Path]) -> list[Path]:
    """All runs in or under the folders that have predicted their validation data, sorted."""
    found = sorted({path.parent.parent for folder in folders for path in folder.rglob("predictions/valid.jsonl")})
    if not found:
        names = ", ".join(map(str, folders))
        raise InputError(f"{names}: no run with predictions/valid.jsonl in it; train some, or name their folder")
    return found


def rows(runs: Sequence[Path], paper: str | None = None) -> list[Row]:
    """What the paper reports of its readers, of these runs. Test data count if every run has predicted them."""
    valid = ensembling.aligned([run / "predictions" / "valid.jsonl" for run in runs])
    paths = [run / "predictions" / "test.jsonl" for run in runs]
    test = ensembling.aligned(paths) if all(path.is_file() for path in paths) else None
    alone = valid.accuracies()
    ranked = sorted(range(len(runs)), key=lambda reader: -alone[reader])
    best = ranked[: max(1, math.ceil(BEST * len(runs)))]
    averaged, greedy = ensembling.best_share(valid, AVERAGED), ensembling.greedy(valid)
    published = PUBLISHED.get(paper or "", {})

    def row(name: str, key: str, of: Sequence[int], together: bool) -> Row:
        ours = [None if data is None else _accuracy(data, of, together) for data in (valid, test)]
        return Row(name, ours[0], ours[1], *published.get(key, (None, None)))

    return [
        row("single reader, the best on validation data", "single", ranked[:1], False),
        row(f"mean of the best {BEST:.0%} ({len(best)} of {len(runs)})", "best", best, False),
        row(f"average ensemble of the best {AVERAGED:.0%} ({len(averaged)})", "average", averaged, True),
        row(f"greedy ensemble ({len(greedy)})", "greedy", greedy, True),
        *_tops(valid, test, greedy, PUBLISHED_TOP.get(paper or "", (None, None))),
        *_spread(valid, test),
    ]


def _accuracy(data: Aligned, members: Sequence[int], together: bool) -> float:
    if together:
        return scores(data.predictions(members)).accuracy
    return float(np.mean(data.accuracies()[list(members)]))


def _tops(valid: Aligned, test: Aligned | None, members: Sequence[int], published: Sequence[float | None]) -> list[Row]:
    on_valid = scores(valid.predictions(members))
    on_test = None if test is None else scores(test.predictions(members))
    return [
        Row(
            f"greedy ensemble, answer in the best {top}",
            on_valid.accuracy_at[top],
            None if on_test is None else on_test.accuracy_at[top],
            paper_test=paper,
        )
        for top, paper in zip((2, 5), published, strict=True)
    ]


def _spread(valid: Aligned, test: Aligned | None) -> list[Row]:
    """How far apart the runs are: the paper saw 0.6 to 2.5 points between runs of equal settings."""
    if len(valid.probabilities) < 2:
        return []
    alone = [None if data is None else data.accuracies() for data in (valid, test)]
    deviations = (None if one is None else float(one.std(ddof=1)) for one in alone)
    ranges = (None if one is None else float(one.max() - one.min()) for one in alone)
    return [Row("standard deviation between runs", *deviations), Row("best minus worst run", *ranges)]
