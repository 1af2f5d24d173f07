from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from asreader.kernels.single import STEPS, Ordered, last, ordered, whole
from torch import Tensor, nn

LENGTHS = (3, STEPS, STEPS + 1, 1, 3 * STEPS, 5)


def weights() -> Ordered:
    torch.manual_seed(0)
    return ordered(nn.GRU(8, 16, batch_first=True, bidirectional=True))


def sequences() -> list[Tensor]:
    return [torch.randint(0, 30, (length,)) for length in LENGTHS]


@torch.no_grad()
def test_who_reads_in_a_room_does_not_feel_who_was_there_before() -> None:
    known, table = weights(), nn.Embedding(30, 8)
    for rows in sequences():
        alone = whole(weights(), table, rows)
        again = whole(known, table, rows)
        assert torch.equal(again[0], alone[0])
        assert torch.equal(again[1], alone[1])
        assert torch.equal(last(known, table, rows), alone[1])
    assert len(known.rooms) == 1


@torch.no_grad()
def test_what_was_read_stays_when_the_room_is_used_again() -> None:
    known, table = weights(), nn.Embedding(30, 8)
    first, second = sequences()[:2]
    found = (*whole(known, table, first), last(known, table, first))
    copies = [tensor.clone() for tensor in found]
    last(known, table, second)
    assert all(map(torch.equal, found, copies))


def test_what_is_read_outside_inference_mode_can_be_learned_from() -> None:
    known, table = weights(), nn.Embedding(30, 8)
    with torch.inference_mode():
        last(known, table, sequences()[0])  # the room was made in that mode
    with torch.no_grad():
        states, final = whole(known, table, sequences()[0])
        alone = last(known, table, sequences()[0])
    assert not any(tensor.is_inference() for tensor in (states, final, alone))


def test_threads_read_at_the_same_time_what_one_reads_alone() -> None:
    known, table = weights(), nn.Embedding(30, 8)

    def read(rows: Tensor) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            return last(known, table, rows), whole(known, table, rows)[0]

    many = sequences() * 20
    alone = list(map(read, many))
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(alone, pool.map(read, many), strict=True):
            assert all(map(torch.equal, one, other))
    assert 1 <= len(known.rooms) <= 4


@torch.no_grad()
def test_who_fails_leaves_the_others_their_rooms() -> None:
    known, table = weights(), nn.Embedding(30, 8)
    rows = sequences()[0]
    before = last(known, table, rows)
    with pytest.raises(IndexError):
        last(known, table, rows + 30)
    assert torch.equal(last(known, table, rows), before)
