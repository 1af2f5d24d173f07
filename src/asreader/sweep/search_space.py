"""texts such as reader.hidden=128,256 -> combinations of settings: the full grid, random samples, or a growing grid."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice, product

from asreader.errors import InputError

Combination = tuple[tuple[str, str], ...]
"""Name and value of every setting on the grid."""

MAX_RAISES = 12
"""Limit on how often one upper bound is raised, for grids whose accuracy never falls twice in a row."""
_DRAWS_PER_SAMPLE = 200
"""Draws for each requested combination before the space counts as exhausted."""


@dataclass(frozen=True)
class ValueRange:
    """Numbers from `low` to `high`, both included: integers, or fractions sampled uniformly in their logarithm."""

    low: float
    high: float
    whole: bool

    def interpolate(self, fraction: float) -> str:
        """The number at this fraction of the range."""
        if self.whole:
            return str(int(self.low) + int(fraction * (self.high - self.low + 1)))
        if self.low <= 0:
            return f"{self.low + fraction * (self.high - self.low):.3g}"
        return f"{self.low * (self.high / self.low) ** fraction:.3g}"


@dataclass(frozen=True)
class GridAxis:
    """A setting and the values it takes in a sweep."""

    name: str
    values: tuple[str, ...] = ()
    range: ValueRange | None = None

    @property
    def text(self) -> str:
        """The values as written after --grid."""
        return f"{self.range.low:g}..{self.range.high:g}" if self.range else ",".join(self.values)

    def pick_value(self, fraction: float) -> str:
        """The value at this fraction of the range or list."""
        return self.range.interpolate(fraction) if self.range else self.values[int(fraction * len(self.values))]


@dataclass(frozen=True)
class GridGrowth:
    """A setting whose upper bound is raised by `step` while accuracy may still improve."""

    name: str
    step: int


def parse_axis(text: str) -> GridAxis:
    """`section.key=value,value,...` or `section.key=low..high` as an axis."""
    name, _, values = (part.strip() for part in text.partition("="))
    if "." not in name or not values:
        raise InputError(f"--grid {text}: write section.key=value,value or section.key=low..high")
    low, dots, high = (part.strip() for part in values.partition(".."))
    if dots:
        return GridAxis(name, range=_parse_range(text, low, high))
    items = tuple(part.strip() for part in values.split(","))
    if "" in items or len(set(items)) < len(items):
        raise InputError(f"--grid {text}: a value is empty or listed twice")
    return GridAxis(name, items)


def _parse_range(text: str, low: str, high: str) -> ValueRange:
    try:
        value_range = ValueRange(float(low), float(high), whole=all(end.lstrip("-").isdigit() for end in (low, high)))
    except ValueError:
        raise InputError(f"--grid {text}: a range goes from a number to a number, such as 0.0003..0.003") from None
    is_finite = math.isfinite(value_range.low) and math.isfinite(value_range.high)
    if not (is_finite and value_range.low < value_range.high):
        raise InputError(f"--grid {text}: a range goes from a smaller number to a larger one")
    return value_range


def parse_growth(text: str, axes: Sequence[GridAxis]) -> GridGrowth:
    """`section.key=step`, for a setting with integers on the grid."""
    name, _, step = (part.strip() for part in text.partition("="))
    axis = next((axis for axis in axes if axis.name == name), None)
    if not step.isdigit() or int(step) < 1:
        raise InputError(f"--grow {text}: write section.key=step, where step is an integer above 0")
    if axis is None or not all(value.isdigit() for value in axis.values) or axis.range:
        raise InputError(f"--grow {text}: {name} needs a --grid of integers to start from, such as {name}=128,256")
    return GridGrowth(name, int(step))


def list_combinations(axes: Sequence[GridAxis]) -> list[Combination]:
    """All combinations; the last setting changes fastest."""
    for axis in axes:
        if axis.range:
            raise InputError(f"--grid {axis.name}: a range cannot be listed; --random K samples K combinations")
    return [
        tuple(zip((axis.name for axis in axes), values, strict=True))
        for values in product(*(axis.values for axis in axes))
    ]


def sample_combinations(axes: Sequence[GridAxis], wanted: int, seed: int) -> list[Combination]:
    """Up to `wanted` distinct random combinations. A larger number extends the list of a smaller one."""
    return list(islice(_sample_distinct(axes, seed, _DRAWS_PER_SAMPLE * wanted), wanted))


def _sample_distinct(axes: Sequence[GridAxis], seed: int, draws: int) -> Iterator[Combination]:
    seen = set()
    for number in islice(count(), draws):
        draw = random.Random(f"{seed}-{number}").random  # the only method whose sequence Python keeps across versions
        combination = tuple((axis.name, axis.pick_value(draw())) for axis in axes)
        if combination not in seen:
            seen.add(combination)
            yield combination


def raise_upper_bound(axis: GridAxis, step: int, best: Mapping[str, float]) -> GridAxis:
    """The axis with one more value, or unchanged if accuracy falls consistently or the last bound has no accuracy.

    Accuracy falls consistently when each of the last two bounds was no better than the one before. `best` maps a value
    to its best accuracy; values whose runs all failed are missing.
    """
    values = sorted(axis.values, key=int)
    if values[-1] not in best:
        return axis
    recent = [best[value] for value in values if value in best][-3:]
    falls = len(recent) == 3 and recent[0] >= recent[1] >= recent[2]
    return axis if falls else replace(axis, values=(*axis.values, str(int(values[-1]) + step)))
