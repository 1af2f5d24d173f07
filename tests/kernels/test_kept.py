from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from asreader.kernels.kept import Kept
from torch import Tensor, nn


class Counted:
    """Makes the sum of a tensor, and counts how often."""

    def __init__(self) -> None:
        self.kept: Kept[float] = Kept()
        self.times = 0

    def of(self, source: Tensor) -> float:
        def make() -> float:
            self.times += 1
            return float(source.detach().sum())

        return self.kept.of([source], make)


def _in_place(weight: nn.Parameter) -> None:
    with torch.no_grad():
        weight[1] = 7


def _elsewhere(weight: nn.Parameter) -> None:
    weight.data = weight.data.clone().fill_(7)


def test_it_is_made_once_while_nothing_changes() -> None:
    weight, counted = nn.Parameter(torch.ones(3)), Counted()
    assert [counted.of(weight) for _ in range(3)] == [3, 3, 3]
    with torch.inference_mode():
        assert counted.of(weight) == 3
    assert counted.times == 1


@pytest.mark.parametrize("change", [_in_place, _elsewhere])
def test_it_is_made_again_after_a_change(change: Callable[[nn.Parameter], None]) -> None:
    weight, counted = nn.Parameter(torch.ones(3)), Counted()
    counted.of(weight)
    change(weight)
    assert counted.of(weight) == counted.of(weight) == float(weight.detach().sum()) > 3
    assert counted.times == 2


def test_new_numbers_cannot_come_to_lie_where_the_old_ones_lay() -> None:
    """A freed tensor's memory is given to the next one of its size, whose count of changes is the same."""
    weight, counted = nn.Parameter(torch.ones(4096)), Counted()
    counted.of(weight)
    for value in range(2, 6):
        weight.data = torch.zeros(0)  # frees the numbers, if nobody holds them
        weight.data = torch.full((4096,), float(value))
        assert counted.of(weight) == 4096 * value


def test_tensors_whose_changes_are_not_counted_are_never_kept() -> None:
    with torch.inference_mode():
        weight, counted = torch.ones(3), Counted()
        counted.of(weight)
        weight += 1
        assert counted.of(weight) == 6


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda kept: pickle.loads(pickle.dumps(kept))])
def test_a_copy_begins_with_nothing(copied: Callable[[Kept[float]], Kept[float]]) -> None:
    weight, counted = nn.Parameter(torch.ones(3)), Counted()
    counted.of(weight)
    assert copied(counted.kept).of([weight], lambda: 5.0) == 5
