"""texts such as reader.hidden=128,256 -> combinations of settings: all of them, random ones, or a grid that grows."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice, product

from asreader.errors import InputError

Choice = tuple[tuple[str, str], ...]
"""One combination: name and value of every setting on the grid."""

MOST_RAISES = 12
"""Of one upper bound: a grid whose accuracy goes up and down for ever is ended here."""
_DRAWS = 200
"""Draws for each wished combination before it is believed that there are no more."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included: whole ones, or fractions drawn evenly by their logarithm."""

    low: float
    high: float
    whole: bool

    def draw(self, share: float) -> str:
        """The number at this share of the range."""
        if self.whole:
            return str(int(self.low) + int(share * (self.high - self.low + 1)))
        if self.low <= 0:
            return f"{self.low + share * (self.high - self.low):.3g}"
        return f"{self.low * (self.high / self.low) ** share:.3g}"


@dataclass(frozen=True)
class Axis:
    """A setting, and the values it takes in a sweep."""

    name: str
    values: tuple[str, ...] = ()
    range: Range | None = None

    @property
    def text(self) -> str:
        """As it is written behind --grid."""
        return f"{self.range.low:g}..{self.range.high:g}" if self.range else ",".join(self.values)

    def draw(self, share: float) -> str:
        """One of the values."""
        return self.range.draw(share) if self.range else self.values[int(share * len(self.values))]


@dataclass(frozen=True)
class Growth:
    """A setting whose upper bound is raised by `step` for as long as that may help."""

    name: str
    step: int


def axis(text: str) -> Axis:
    """`section.key=value,value,...` or `section.key=low..high`."""
    name, _, values = (part.strip() for part in text.partition("="))
    if "." not in name or not values:
        raise InputError(f"--grid {text}: write section.key=value,value or section.key=low..high")
    low, dots, high = (part.strip() for part in values.partition(".."))
    if dots:
        return Axis(name, range=_range(text, low, high))
    chosen = tuple(part.strip() for part in values.split(","))
    if "" in chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"--grid {text}: a value is empty or stands there twice")
    return Axis(name, chosen)


def _range(text: str, low: str, high: str) -> Range:
    try:
        found = Range(float(low), float(high), whole=all(end.lstrip("-").isdigit() for end in (low, high)))
    except ValueError:
        raise InputError(f"--grid {text}: a range goes from a number to a number, as 0.0003..0.003") from None
    if not (math.isfinite(found.low) and math.isfinite(found.high) and found.low < found.high):
        raise InputError(f"--grid {text}: a range goes from a smaller number to a greater one")
    return found


def growth(text: str, axes: Sequence[Axis]) -> Growth:
    """`section.key=step` for a setting that is on the grid with whole numbers."""
    name, _, step = (part.strip() for part in text.partition("="))
    on_grid = next((axis for axis in axes if axis.name == name), None)
    if not step.isdigit() or int(step) < 1:
        raise InputError(f"--grow {text}: write section.key=step, where step is a whole number above 0")
    if on_grid is None or not all(value.isdigit() for value in on_grid.values) or on_grid.range:
        raise InputError(f"--grow {text}: {name} needs a --grid of whole numbers to start from, as {name}=128,256")
    return Growth(name, int(step))


def combinations(axes: Sequence[Axis]) -> list[Choice]:
    """All of them, the last setting changing fastest."""
    for ranged in (axis for axis in axes if axis.range):
        raise InputError(f"--grid {ranged.name}: a range has no end of values; --random K draws K combinations")
    return [
        tuple(zip((axis.name for axis in axes), values, strict=True))
        for values in product(*(axis.values for axis in axes))
    ]


def drawn(axes: Sequence[Axis], wanted: int, seed: int) -> list[Choice]:
    """So many different combinations, fewer if there are no more. The first ones are the same for a greater number."""
    return list(islice(_distinct(axes, seed, _DRAWS * wanted), wanted))


def _distinct(axes: Sequence[Axis], seed: int, draws: int) -> Iterator[Choice]:
    seen = set()
    for number in islice(count(), draws):
        share = random.Random(f"{seed}-{number}").random  # the one method whose sequence Python promises to keep
        found = tuple((axis.name, axis.draw(share())) for axis in axes)
        if found not in seen:
            seen.add(found)
            yield found


def raised(axis: Axis, step: int, best: Mapping[str, float]) -> Axis:
    """The axis with a higher upper bound, or as it is if accuracy falls consistently: at the last two bounds, it was no
    better than at the one before. `best` is the best accuracy at each value; without one (all failed) nothing grows."""
    values = sorted(axis.values, key=int)
    if values[-1] not in best:
        return axis
    reached = [best[value] for value in values if value in best][-3:]
    falls = len(reached) == 3 and reached[0] >= reached[1] >= reached[2]
    return axis if falls else replace(axis, values=(*axis.values, str(int(values[-1]) + step)))
